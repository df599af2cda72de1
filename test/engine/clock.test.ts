import { describe, expect, it, vi } from 'vitest';
import { sleep, systemClock } from '../../src/engine/clock.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

describe('sleep', () => {
  it('resolves after its delay, and leaves nothing behind', async () => {
    const clock = new VirtualClock();
    let awake = false;
    void sleep(clock, 1000, new AbortController().signal).then(() => (awake = true));
    await clock.advance(999);
    expect(awake).toBe(false);
    await clock.advance(1);
    expect(awake).toBe(true);
  });

  it('resolves as soon as the signal aborts, and cancels its timer', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const sleeping = sleep(clock, 1000, controller.signal);
    await settled();
    controller.abort();
    await sleeping;
    expect(clock.timers).toBe(0);
    await sleep(clock, 1000, controller.signal);
    expect(clock.timers).toBe(0);
  });
});

describe('systemClock', () => {
  // Node fires timers beyond 2^31-1 ms at once, so `requeueAt` in more than 24.8 days makes a loop without pause.
  it('does not fire a timer at once that lies weeks ahead', () => {
    const timeout = vi.spyOn(globalThis, 'setTimeout').mockReturnValue({ unref: () => undefined } as never);
    try {
      systemClock.setTimer(30 * 24 * 3_600_000, () => undefined);
      expect(timeout.mock.calls[0]?.[1]).toBeLessThanOrEqual(2 ** 31 - 1);
    } finally {
      timeout.mockRestore();
    }
  });
});
