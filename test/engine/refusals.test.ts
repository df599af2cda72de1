import { expect, it, vi } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { REFUSAL_MILLISECONDS, Refusals } from '../../src/engine/refusals.js';
import { VirtualClock } from './support/virtual-clock.js';

const refused = { portsFreed: 0, hash: 'h', owner: 'u', version: '1', resourceVersion: '1' };
const error = new OperatorError({ reason: 'Invalid', message: 'no' });

it('Refusals look at those that are over and one more, and not at all of them, whenever one is added', () => {
  const clock = new VirtualClock();
  const refusals = new Refusals(clock);
  const map = vi.spyOn(Map.prototype, Symbol.iterator);
  let looks = 0;
  map.mockImplementation(function* (this: Map<unknown, unknown>) {
    for (const entry of this.entries()) {
      looks++;
      yield entry;
    }
    return undefined;
  });
  try {
    for (let n = 0; n < 100; n++) {
      refusals.remember(`id-${n}`, refused, error);
      clock.jump(1);
    }
  } finally {
    map.mockRestore();
  }
  expect(looks).toBeLessThanOrEqual(100);
});

it('Refusals are over after ten minutes, and one that was remembered anew later than others', () => {
  const clock = new VirtualClock();
  const refusals = new Refusals(clock);
  refusals.remember('a', refused, error);
  clock.jump(1);
  refusals.remember('b', refused, error);
  clock.jump(1_000);
  refusals.remember('a', refused, error);
  clock.jump(REFUSAL_MILLISECONDS - 1);
  refusals.remember('c', refused, error);
  expect(refusals.size).toBe(2);
  expect(['a', 'b', 'c'].map((id) => refusals.find(id, refused))).toEqual([error, undefined, error]);
});
