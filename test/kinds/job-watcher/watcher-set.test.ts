import { beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { WatcherSet } from '../../../src/kinds/job-watcher/watcher.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/watcher.js';
import { liveWatcher, settings } from './fixtures.js';

let watchers: WatcherSet;

beforeEach(() => {
  watchers = new WatcherSet(settings);
});

const one = (generation = 1) => liveWatcher({ completedTTL: `${generation}s` }, { name: 'one', generation });
const two = liveWatcher({}, { name: 'two' });

const read = (crs: Parameters<WatcherSet['read']>[0]) => watchers.read(crs, () => false)!;

test('as long as no spec changes nothing is read again, whatever the order and the statuses', () => {
  const before = new Map(read([one(), two]).map(({ cr, watcher }) => [cr.metadata.name, watcher]));

  const again = read([two, { ...one(), status: { observedGeneration: 1 } }]);

  for (const { cr, watcher } of again) expect(watcher).toBe(before.get(cr.metadata.name));
  expect(again[0]?.cr.status).toEqual({ observedGeneration: 1 });
});

test('a changed spec, a new watcher and one that has gone are seen', () => {
  read([one(), two]);
  expect(read([one(2), two])[0]?.watcher).toMatchObject({ ttlSeconds: { completed: 2 } });
  expect(read([two]).map(({ cr }) => cr.metadata.name)).toEqual(['two']);
});

test('one that can’t be read says why', () => {
  const broken = liveWatcher({ failedTTL: 'soon' }, { name: 'broken' });

  const [first] = read([broken, two]);

  expect(first?.watcher).toBeInstanceOf(OperatorError);
  expect(first?.watcher).toMatchObject({ reason: 'InvalidDuration', path: ['spec', 'failedTTL'] });
});

describe('the patterns of one namespace', () => {
  const numbered = (index: number, namespace = 'default', patterns = 2): LiveWatcher => {
    const cr = liveWatcher(
      {
        jobNamePatterns: Array.from({ length: patterns }, (_, n) =>
          `^${index}-${n}-x{0,1000}$`.replace('1000', '700'),
        ),
      },
      { name: `w${index}`, namespace },
    );
    const creationTimestamp = new Date(Date.UTC(2026, 0, 1) + index * 1000).toISOString();
    return { ...cr, metadata: { ...cr.metadata, creationTimestamp } };
  };
  const reasons = (crs: readonly LiveWatcher[]): string[] =>
    read(crs).map(({ cr, watcher }) =>
      watcher instanceof OperatorError ? `${cr.metadata.name} ${watcher.reason}` : cr.metadata.name,
    );

  test('are bounded: the oldest watchers keep theirs, whatever comes later, and other namespaces are not concerned', () => {
    const crs = Array.from({ length: 9 }, (_, index) => numbered(index));

    const told = reasons([...crs].reverse());

    expect(told.slice(0, 7)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6']);
    expect(told.slice(7)).toEqual(['w7 PatternsTooLarge', 'w8 PatternsTooLarge']);
    expect(reasons([...crs, numbered(9, 'other')]).at(-1)).toBe('w9');
    expect(reasons(crs.slice(1))).toEqual(['w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', 'w8 PatternsTooLarge']);
  });

  test('are shared out again where reading was broken off after an older watcher had changed', () => {
    const crs = Array.from({ length: 8 }, (_, index) => numbered(index));
    expect(reasons(crs).at(-1)).toBe('w7 PatternsTooLarge');
    const { metadata } = numbered(0);
    const edited = [{ ...numbered(0), spec: {}, metadata: { ...metadata, generation: 2 } }, ...crs.slice(1)];
    expect(watchers.read(edited, () => true)).toBeUndefined();
    expect(reasons(edited).at(-1)).toBe('w7');
  });

  test('count once, however many watchers have them', () => {
    const same = (index: number): LiveWatcher => ({ ...numbered(index), spec: numbered(0).spec });
    expect(reasons(Array.from({ length: 50 }, (_, index) => same(index))).at(-1)).toBe('w49');
  });
});

test('reading is broken off where it takes long, and goes on from there', () => {
  expect(watchers.read([one(), two], () => true)).toBeUndefined();
  expect(watchers.read([one(), two], () => true)).toHaveLength(2);
});

test('a stored spec that makes no sense at all throws nothing', () => {
  const [first] = read([liveWatcher({ jobNamePatterns: 5 as never })]);

  expect(first?.watcher).toMatchObject({ reason: 'InvalidSpec' });
});
