import { expect, it } from 'vitest';
import { holdWhilePaused } from '../../src/engine/hold-while-paused.js';
import type { Pause } from '../../src/engine/server-gate.js';

it('holds every queue once for as long as there is any pause', () => {
  const calls: string[] = [];
  const queue = (name: string) => ({
    hold: (reason: string) => calls.push(`${name} hold ${reason}`),
    release: (reason: string) => calls.push(`${name} release ${reason}`),
  });
  let tell: (pause: Pause | undefined) => void = () => undefined;
  holdWhilePaused({ onChange: (listener) => (tell = listener) }, [queue('a'), queue('b')]);

  tell('overloaded');
  tell('unreachable');
  expect(calls).toEqual(['a hold server', 'b hold server']);
  tell(undefined);
  expect(calls.slice(2)).toEqual(['a release server', 'b release server']);
  tell('unreachable');
  expect(calls.slice(4)).toEqual(['a hold server', 'b hold server']);
});
