import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import type { Metrics } from '../../src/telemetry/metrics.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { plan } from './support/bench.js';
import { CONFIG_MAP, apply, configMap, ownedBy, widget } from './support/builders.js';
import { WATCHES, count, startedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';
import type { Plan } from '../../src/contract/plan.js';
import type { StartedRunner } from './support/started-runner.js';

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

describe('Runner, a reconcile that takes too long', () => {
  it('is given up, counted, and tried again after a pause', async () => {
    const { deliver, reconciled, clock, server, metrics, lines } = startedRunner(() =>
      plan({ steps: [apply('a'), apply('b')] }),
    );
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await deliver(widget('web'));
    await clock.advance(119_999);
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
    await clock.advance(1);
    expect(lines.find(({ level }) => level === 'warn')?.fields).toMatchObject({ reason: 'ReconcileTimeout' });
    expect(await count(metrics, /reconcile_timeouts_total\{controller="widget"\} (\d+)/)).toBe(1);
    answer.resolve(undefined);
    await clock.advance(5);
    await settled();
    expect(reconciled.length).toBeGreaterThan(1);
    expect(server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
  });

  it('leaves its worker to other keys, while its own waits for the request that is under way', async () => {
    const { deliver, reconciled, clock, server } = startedRunner(
      (key) => plan(key === 'shop/slow' ? { steps: [apply('a', 'slow')] } : {}),
      1,
    );
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await deliver(widget('slow'));
    await deliver(widget('other'));
    await clock.advance(120_000);
    expect(reconciled).toEqual(['shop/slow', 'shop/other']);
    await deliver(widget('slow'));
    await clock.advance(60_000);
    expect(reconciled).toEqual(['shop/slow', 'shop/other']);
    expect(server.writes).toHaveLength(1);
    answer.resolve(undefined);
    await settled();
    await settled();
    expect(reconciled.slice(0, 3)).toEqual(['shop/slow', 'shop/other', 'shop/slow']);
  });

  it('is waited for when the runner stops', async () => {
    const { deliver, clock, server, stop } = startedRunner(() => plan({ steps: [apply('a')] }));
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await deliver(widget('web'));
    await clock.advance(120_000);
    let stopped = false;
    const stopping = stop().then(() => (stopped = true));
    await settled();
    expect(stopped).toBe(false);
    answer.resolve(undefined);
    await stopping;
  });
});

describe('Runner, interrupted', () => {
  it('ends what is under way after its step, and takes it again first, once the queue is released', async () => {
    const { deliver, reconciled, server, runner, metrics } = startedRunner(
      () => plan({ steps: [apply('a'), apply('b')] }),
      1,
    );
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await deliver(configMap('x', '1', { ownerReferences: [ownedBy('web')] }));
    await deliver(widget('next'));
    runner.queue.hold('standby');
    let interrupted = false;
    const interrupting = runner.interrupt().then(() => (interrupted = true));
    await settled();
    expect(interrupted).toBe(false);
    answer.resolve(undefined);
    await interrupting;
    await settled();
    expect(server.writes).toHaveLength(1);
    expect(reconciled).toEqual(['shop/web']);
    expect(runner.queue.depthOf('change')).toBe(2);
    expect(await count(metrics, /reconcile_errors_total\{controller="widget"\} (\d+)/)).toBe(0);
    expect(await count(metrics, /action="failed"\} (\d+)/)).toBeNaN();
    runner.queue.release('standby');
    for (let n = 0; n < 5; n++) await settled();
    expect(new Set(reconciled)).toEqual(new Set(['shop/web', 'shop/next']));
    expect(server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
  });
});

describe('Settling', () => {
  const settle = { quietMilliseconds: 1_000, longestMilliseconds: 5_000 };

  /** Every object of both types leads to one key. */
  const ONE_KEY = WATCHES.map((watch) => ({ ...watch, mapsTo: () => ['all'] }));

  const started = (reconcile?: (key: string, count: number) => Plan): StartedRunner =>
    startedRunner(reconcile, 2, ONE_KEY, {}, { settle });

  describe('A controller that lets things settle', () => {
    it('takes its key once nothing has happened for the quiet time', async () => {
      const { deliver, clock, reconciled } = started();
      await deliver(widget('a'));
      await clock.advance(999);
      await deliver(widget('b'));
      await clock.advance(999);
      expect(reconciled).toEqual([]);
      await clock.advance(1);
      expect(reconciled).toEqual(['all']);
    });

    it('takes it after the longest time at the latest, however much goes on', async () => {
      const { deliver, clock, reconciled } = started();
      for (let n = 0; n < 10; n++) {
        await deliver(widget(`w${n}`));
        await clock.advance(500);
        expect(reconciled).toHaveLength(n < 9 ? 0 : 1);
      }
    });

    it('takes what a complete list brings at once', async () => {
      const { reader, reconciled } = started();
      const store = reader.store(CONFIG_MAP);
      store.replace([store.project(configMap('a', '1'))], '1');
      await settled();
      expect(reconciled).toEqual(['all']);
    });

    it('retries and comes back when it has asked to, without waiting any longer', async () => {
      const { deliver, clock, reconciled } = started((_, count) => {
        if (count === 1) throw new Error('a bug');
        return plan({ ...(count === 2 && { next: new Date(clock.now() + 100) }) });
      });
      await deliver(widget('a'));
      await clock.advance(1_000);
      expect(reconciled).toHaveLength(1);
      await clock.advance(5);
      expect(reconciled).toHaveLength(2);
      await clock.advance(100);
      expect(reconciled).toHaveLength(3);
    });
  });
});
