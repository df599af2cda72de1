import { describe, expect, it } from 'vitest';
import { plan } from './support/bench.js';
import { apply, CONFIG_MAP, configMap, ownedBy, widget } from './support/builders.js';
import { count, startedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

describe('Runner, a reconcile that takes too long', () => {
  it('is given up, counted, and tried again after a pause', async () => {
    const { deliver, reconciled, clock, server, metrics, lines } = startedRunner(() =>
      plan({ apply: [apply('a'), apply('b')] }),
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
      (key) => plan(key === 'shop/slow' ? { apply: [apply('a', 'slow')] } : {}),
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
    const { deliver, clock, server, stop } = startedRunner(() => plan({ apply: [apply('a')] }));
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
      () => plan({ apply: [apply('a'), apply('b')] }),
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
