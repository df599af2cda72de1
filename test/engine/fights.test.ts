import { beforeEach, describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { Fights } from '../../src/engine/fights.js';
import { configMap } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

const DRIFT = { managers: ['rival'], fields: ['.data.level'] };
const WEB = configMap('web', '1');

let clock: VirtualClock;
let fights: Fights;
beforeEach(() => {
  clock = new VirtualClock();
  fights = new Fights(clock);
});

function failureOf(action: () => void): OperatorError | undefined {
  try {
    action();
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  return undefined;
}
const correct = (drift = DRIFT, object = WEB) =>
  failureOf(() => {
    fights.corrected(object, drift, 'hash');
  });
const pause = (object = WEB, hash = 'hash') =>
  failureOf(() => {
    fights.checkPause(object, hash);
  })?.retryAfterMilliseconds ?? 0;
const peace = (object = WEB) =>
  failureOf(() => {
    fights.checkPeace(object);
  })?.retryAfterMilliseconds ?? 0;

/** Corrects as soon as that is allowed, again and again. Returns the pauses in seconds. */
function pausesOf(corrections: number): number[] {
  return Array.from({ length: corrections }, () => {
    correct();
    const seconds = pause() / 1000;
    clock.jump(pause());
    return seconds;
  });
}

describe('Fights', () => {
  it('let five corrections pass, then ask for pauses that double up to five minutes', () => {
    expect(pausesOf(12)).toEqual([0, 0, 0, 0, 10, 20, 40, 80, 160, 300, 300, 300]);
  });

  it('are forgotten ten minutes after the last correction, and not before', () => {
    pausesOf(4);
    clock.jump(599_999);
    expect(pausesOf(1)).toEqual([10]);
    clock.jump(600_000 - 10_000);
    expect(pausesOf(5)).toEqual([0, 0, 0, 0, 10]);
  });

  it('are each about one object, by its UID', () => {
    pausesOf(4);
    correct();
    expect(pause()).toBe(10_000);
    expect(pause(configMap('other', '1'))).toBe(0);
    expect(pause(configMap('web', '1', { uid: 'successor' }))).toBe(0);
  });

  it('hold up nothing else that the object is to become, also where the hash was taken off it', () => {
    pausesOf(4);
    correct();
    expect([pause(WEB), pause(WEB, 'another')]).toEqual([10_000, 0]);
  });

  it('never hold up many corrections of many objects', () => {
    for (let n = 0; n < 1000; n++) {
      const object = configMap(`web-${n % 250}`, '1');
      expect(pause(object)).toBe(0);
      expect(correct(DRIFT, object)).toBeUndefined();
    }
  });

  it('are told until as long has passed in peace as was waited before', () => {
    pausesOf(4);
    correct();
    expect(peace()).toBe(10_000);
    clock.jump(10_000);
    expect(peace()).toBe(0);
    correct();
    expect([pause(), peace()]).toEqual([20_000, 10_000]);
    clock.jump(20_000);
    correct();
    expect([pause(), peace()]).toEqual([40_000, 20_000]);
  });

  it('fail with a reason, a time and the names of who and what', () => {
    pausesOf(4);
    const failure = correct();
    expect(failure).toMatchObject({
      reason: 'FieldContested',
      retry: 'backoff',
      retryAfterMilliseconds: 10_000,
    });
    expect(failure?.message).toContain('ConfigMap shop/web: rival changes .data.level again and again');
  });

  it('are told in the same words as long as they last', () => {
    pausesOf(4);
    const messages = [
      correct()?.message,
      failureOf(() => {
        fights.checkPause(WEB, 'hash');
      })?.message,
    ];
    clock.jump(10_000);
    messages.push(correct({ managers: ['another'], fields: ['.data.other'] })?.message);
    expect(new Set(messages).size).toBe(1);
  });

  it('name everybody who was seen before', () => {
    correct({ managers: ['b'], fields: ['.y'] });
    correct({ managers: ['a'], fields: ['.x'] });
    correct({ managers: [], fields: [] });
    correct({ managers: ['a'], fields: ['.x'] });
    expect(correct({ managers: ['b'], fields: ['.y'] })?.message).toContain('a, b changes .x, .y');
  });

  it('do without names where none are known', () => {
    const unknown = { managers: [], fields: [] };
    for (let n = 0; n < 4; n++) correct(unknown);
    expect(correct(unknown)?.message).toContain('somebody changes fields again and again');
  });

  it('are not kept when they are over, although nothing is corrected any more', () => {
    for (let n = 0; n < 1000; n++) correct(DRIFT, configMap(`web-${n}`, '1'));
    clock.jump(599_999);
    peace();
    expect(fights.size).toBe(1000);
    clock.jump(1);
    peace();
    expect(fights.size).toBe(0);
    correct();
    clock.jump(600_000);
    pause();
    expect(fights.size).toBe(0);
  });
});
