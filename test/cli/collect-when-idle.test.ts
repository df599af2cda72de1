import { describe, expect, test } from 'vitest';
import { CollectWhenIdle } from '../../src/cli/collect-when-idle.js';

describe('CollectWhenIdle', () => {
  const MIB = 2 ** 20;

  /** Garbage is all above 20 MiB. */
  function process(): { cpu: number; used: number; collections: number; collector: CollectWhenIdle } {
    const state = { cpu: 0, used: 40 * MIB, collections: 0 };
    const collector = new CollectWhenIdle({
      cpuMilliseconds: () => state.cpu,
      heapUsedBytes: () => state.used,
      collect: () => {
        state.collections++;
        state.used = 20 * MIB;
        state.cpu += 60;
      },
    });
    return Object.assign(state, { collector });
  }

  test('waits until the work is done, and collects once', () => {
    const state = process();
    state.cpu += 500;
    state.collector.check();
    expect(state.collections).toBe(0);
    state.cpu += 10;
    state.collector.check();
    expect(state.collections).toBe(1);
    state.used += 3 * MIB;
    for (let n = 0; n < 5; n++) state.collector.check();
    expect(state.collections).toBe(1);
  });

  test('collects again what a later burst has left', () => {
    const state = process();
    state.collector.check();
    state.cpu += 3_000;
    state.used += 30 * MIB;
    state.collector.check();
    expect(state.collections).toBe(1);
    state.collector.check();
    expect(state.collections).toBe(2);
  });
});
