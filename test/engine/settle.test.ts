import { describe, expect, it } from 'vitest';
import type { Plan } from '../../src/contract/controller.js';
import { plan } from './support/bench.js';
import { CONFIG_MAP, configMap, widget } from './support/builders.js';
import { startedRunner, WATCHES } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

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
      return plan({ ...(count === 2 && { requeueAt: new Date(clock.now() + 100) }) });
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
