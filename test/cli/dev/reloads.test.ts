import { beforeEach, expect, test } from 'vitest';
import { Reloads } from '../../../src/cli/dev/session.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';

let clock: VirtualClock;
let reloads: Reloads;
let loaded: string[][];
let finish: () => void;

beforeEach(() => {
  clock = new VirtualClock();
  loaded = [];
  reloads = new Reloads({
    clock,
    reload: (files) => {
      loaded.push([...files]);
      return new Promise((resolve) => {
        finish = resolve;
      });
    },
  });
});

/** The first load is done. */
async function begun(): Promise<void> {
  const first = reloads.begin();
  finish();
  await first;
}

test('at first everything is loaded, and no file was saved', async () => {
  await begun();

  expect(loaded).toEqual([[]]);
});

test('saves within a moment are one reload, with each file once', async () => {
  await begun();

  reloads.saved('kind.ts');
  await clock.advance(100);
  reloads.saved('crd.yaml');
  reloads.saved('kind.ts');
  await clock.advance(149);
  expect(loaded).toEqual([[]]);
  await clock.advance(1);

  expect(loaded).toEqual([[], ['kind.ts', 'crd.yaml']]);
});

test('a save while a reload is under way waits for its end, and is loaded then', async () => {
  void reloads.begin();

  reloads.saved('kind.ts');
  await clock.advance(1000);
  expect(loaded).toEqual([[]]);
  finish();
  await clock.advance(150);

  expect(loaded).toEqual([[], ['kind.ts']]);
});

test('nothing is loaded without a save, and none once it is stopped', async () => {
  await begun();
  await clock.advance(10_000);
  reloads.saved('kind.ts');
  reloads.stop();
  reloads.saved('crd.yaml');
  await clock.advance(10_000);

  expect(loaded).toEqual([[]]);
});

test('what is saved during a reload waits in vain once it is stopped, and so does a first load', async () => {
  void reloads.begin();
  reloads.saved('kind.ts');
  reloads.stop();
  finish();
  await clock.advance(0);
  expect(clock.timers).toBe(0);
  await clock.advance(10_000);
  void reloads.begin();

  expect(loaded).toEqual([[]]);
});
