import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import type { Metrics } from '../../src/telemetry/metrics.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { plan } from './support/bench.js';
import { apply, configMap, ownedBy, widget } from './support/builders.js';
import { count, startedRunner, WATCHES } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

const panics = (metrics: Metrics): Promise<number> =>
  count(metrics, /reconcile_panics_total\{controller="widget"\} (\d+)/);

const throwing = (): never => {
  throw new TypeError('a bug');
};

describe('Runner, whatever is thrown', () => {
  it('counts a kind that throws, and tries its key again', async () => {
    const { deliver, reconciled, clock, metrics } = startedRunner((_, n) => (n < 3 ? throwing() : plan({})));
    await deliver(widget('web'));
    await clock.advance(15);
    expect(reconciled).toHaveLength(3);
    expect(await panics(metrics)).toBe(2);
  });

  it.each([
    ['a construct', { error: true }],
    ['a status function', { statusError: true }],
  ])('counts %s that throws, logs where, and tries again', async (_, where) => {
    const error = new OperatorError({
      ...{
        reason: 'StatusFailed',
        message: 'no',
        retry: 'backoff',
        isBug: true,
        cause: new TypeError('a bug'),
      },
    });
    const { deliver, reconciled, clock, metrics, lines } = startedRunner(() =>
      plan('error' in where ? { error } : { statusError: () => error }),
    );
    await deliver(widget('web'));
    await clock.advance(5);
    expect(reconciled).toHaveLength(2);
    expect(await panics(metrics)).toBe(2);
    const [line] = lines.filter(({ level }) => level === 'warn');
    expect(line?.fields).toMatchObject({ reason: 'StatusFailed', error: 'no', err: error.cause });
  });

  it.for([
    [
      'an object that JSON cannot say',
      (bench: StartedRunner) => {
        bench.server.intercept = () => undefined;
        return { ...apply('a'), object: { ...apply('a').object, data: { size: 1n } } };
      },
    ],
    [
      'the way to the API server',
      (bench: StartedRunner) => {
        bench.server.intercept = throwing;
        return apply('a');
      },
    ],
  ] as const)(
    'tells a bug in applying, of %s, as one: not as a server that is out of reach',
    async ([, breaks]) => {
      const bench: StartedRunner = startedRunner(() => plan({ apply: [breaks(bench)] }));
      await bench.deliver(widget('web'));
      expect(await panics(bench.metrics)).toBe(1);
      const [line] = bench.lines.filter(({ level }) => level === 'warn');
      expect(line?.fields).toMatchObject({ reason: 'InternalError', err: expect.any(TypeError) as unknown });
      expect(line?.fields.error).toMatch(/^Apply ConfigMap shop\/a: .*bug.*TypeError/);
    },
  );

  // The log stands for any bug of ours after the plan was carried out.
  it('loses no key and no worker when we throw ourselves', async () => {
    let broken = true;
    const log: Logger = {
      ...silentLogger,
      child: () => log,
      isLevelEnabled: () => true,
      debug: () => {
        if (broken) throwing();
      },
    };
    const { deliver, reconciled, clock, metrics } = startedRunner(undefined, 1, WATCHES, { log });
    await deliver(widget('web'));
    expect(await panics(metrics)).toBe(1);
    broken = false;
    await clock.advance(5);
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
    await deliver(widget('other'));
    expect(reconciled.at(-1)).toBe('shop/other');
  });
});

describe('Runner, pauses', () => {
  it.for<['onChange' | 'backoff' | 'now', number]>([
    ['onChange', 1_200_000],
    ['backoff', 60_000],
    ['now', 60_000],
  ])('waits at least as long as an error asks for, whose retry is %s', async ([retry, least]) => {
    const error = new OperatorError({
      reason: 'FieldContested',
      message: 'fights',
      retry,
      retryAfterMilliseconds: least,
    });
    const { deliver, reconciled, clock } = startedRunner(() => plan({ error }));
    await deliver(widget('web'));
    await clock.advance(least - 1);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
  });
});

describe('Runner, many keys', () => {
  it('lets the event loop look after everything else in between', async () => {
    const turns: (() => void)[] = [];
    const { runner, reconciled } = startedRunner(undefined, 4, WATCHES, {
      nextTurn: () => new Promise((resolve) => turns.push(resolve)),
    });
    runner.queue.hold('test');
    for (let n = 0; n < 250; n++) runner.queue.add(`shop/${n}`);
    runner.queue.release('test');
    await settled();
    const first = reconciled.length;
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThanOrEqual(100);
    while (reconciled.length < 250) {
      const before = reconciled.length;
      for (const resolve of turns.splice(0)) resolve();
      await settled();
      expect(reconciled.length - before).toBeLessThanOrEqual(104);
      expect(reconciled.length).toBeGreaterThan(before);
    }
    for (const resolve of turns.splice(0)) resolve();
  });

  it('measures its queue', async () => {
    const { runner, deliver, metrics, clock, server } = startedRunner((key) =>
      plan(key === 'shop/web' ? { apply: [apply('a')] } : {}),
    );
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await deliver(widget('web'));
    runner.queue.hold('test');
    await deliver(configMap('x', '1', { ownerReferences: [ownedBy('b')] }));
    // Somebody sets the clock back.
    clock.setWallBy(-3_600_000);
    await clock.advance(3_000);
    const text = await metrics.scrape();
    const labels = 'name="widget",controller="widget"';
    expect(text).toContain(`workqueue_depth{${labels},priority="change"} 0`);
    expect(text).toContain(`workqueue_depth{${labels},priority="child"} 1`);
    expect(text).toContain(`workqueue_depth{${labels},priority="initial"} 0`);
    expect(text).toContain(`workqueue_adds_total{${labels}} 2`);
    expect(text).toContain(`workqueue_unfinished_work_seconds{${labels}} 3`);
    expect(text).toContain(`workqueue_longest_running_processor_seconds{${labels}} 3`);
    expect(text).toContain(`workqueue_queue_duration_seconds_count{${labels}} 1`);
    expect(text).toContain(`workqueue_work_duration_seconds_count{${labels}} 0`);
    expect(text).toContain(`workqueue_retries_total{${labels}} 0`);
    answer.resolve(undefined);
    await settled();
    expect(await metrics.scrape()).toContain(`workqueue_work_duration_seconds_sum{${labels}} 3`);
  });
});
