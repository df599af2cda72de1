import { beforeEach, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { WatcherSet } from '../../../src/kinds/job-watcher/watcher-set.js';
import { liveWatcher, settings } from './fixtures.js';

let watchers: WatcherSet;

beforeEach(() => {
  watchers = new WatcherSet(settings);
});

const one = (generation = 1) => liveWatcher({ completedTTL: `${generation}s` }, { name: 'one', generation });
const two = liveWatcher({}, { name: 'two' });

test('as long as no spec changes nothing is read or judged anew, whatever the order and the statuses', () => {
  const [read] = watchers.read([one(), two]);
  const { matching } = watchers;

  const again = watchers.read([two, { ...one(), status: { observedGeneration: 1 } }]);

  expect(watchers.matching).toBe(matching);
  expect(again[1]?.watcher).toBe(read?.watcher);
  expect(again[1]?.cr.status).toEqual({ observedGeneration: 1 });
});

test('a changed spec, a new watcher and one that has gone are seen', () => {
  watchers.read([one(), two]);
  const before = watchers.matching;
  watchers.read([one(2), two]);
  const changed = watchers.matching;
  watchers.read([two]);

  expect(changed).not.toBe(before);
  expect(changed.watchers[0]?.ttlSeconds).toEqual({ completed: 2 });
  expect(watchers.matching.watchers.map(({ key }) => key)).toEqual(['default/two']);
});

test('one that can’t be read says why, and is left out', () => {
  const broken = liveWatcher({ failedTTL: 'soon' }, { name: 'broken' });

  const [read] = watchers.read([broken, two]);

  expect(read?.watcher).toBeInstanceOf(OperatorError);
  expect(read?.watcher).toMatchObject({ reason: 'InvalidDuration', path: ['spec', 'failedTTL'] });
  expect(watchers.matching.watchers).toHaveLength(1);
});

test('a stored spec that makes no sense at all throws nothing', () => {
  const [read] = watchers.read([liveWatcher({ jobNamePatterns: 5 as never })]);

  expect(read?.watcher).toMatchObject({ reason: 'InvalidSpec' });
});
