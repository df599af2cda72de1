import { expect, test } from 'vitest';
import type { Condition } from '../../../src/contract/conditions.js';
import { eventOf } from '../../../src/kinds/job-watcher/events.js';
import type { JobWatcherStatus, RunCounts } from '../../../src/kinds/job-watcher/spec.js';
import { at } from './fixtures.js';

function status(lastRun: Partial<RunCounts> = {}, stalled?: string, started = 0): JobWatcherStatus {
  const condition = (reason: string): Condition => ({
    ...{
      type: 'Stalled',
      status: 'True',
      reason,
      message: `Because of ${reason}`,
      lastTransitionTime: at(0),
    },
  });
  return {
    lastStarted: at(started),
    lastRun: { namespaces: 1, matched: 5, finished: 5, deleted: 0, failed: 0, ...lastRun },
    conditions: stalled === undefined ? [] : [condition(stalled)],
  };
}

test('a run is told by what it did, once', () => {
  expect(eventOf(status(), status({ deleted: 2 }, undefined, 9))).toEqual({
    ...{ type: 'Normal', reason: 'Deleted', action: 'Delete', note: 'Deleted 2 Jobs of 5' },
  });
  expect(eventOf(undefined, status({ deleted: 1, failed: 1 }))).toMatchObject({
    ...{ type: 'Warning', reason: 'DeletionFailed', note: "Deleted 1 Job of 5, 1 couldn't be deleted" },
  });
  // The status was written anew for another reason.
  expect(eventOf(status({ deleted: 2 }), status({ deleted: 2 }))).toBeUndefined();
  expect(eventOf(status(), status({ matched: 6 }, undefined, 9))).toBeUndefined();
});

test('what takes somebody to end is told when it begins, and when it is something else', () => {
  const warning = { type: 'Warning', reason: 'BlastRadiusExceeded', note: 'Because of BlastRadiusExceeded' };
  expect(eventOf(status(), status({}, 'BlastRadiusExceeded'))).toMatchObject(warning);
  expect(
    eventOf(status({}, 'BlastRadiusExceeded'), status({ matched: 6 }, 'BlastRadiusExceeded', 9)),
  ).toBeUndefined();
  expect(eventOf(status({}, 'Forbidden'), status({}, 'BlastRadiusExceeded'))).toMatchObject(warning);
  expect(eventOf(status({}, 'Forbidden'), status())).toBeUndefined();
});

test('Jobs that come back are told when there is one more of them', () => {
  const recreated = (count: number, started = 0) =>
    status({ skipped: { Recreated: count } }, undefined, started);
  expect(eventOf(status(), recreated(1))).toMatchObject({ type: 'Warning', reason: 'Recreated' });
  expect(eventOf(recreated(1), recreated(2, 9))).toMatchObject({ reason: 'Recreated' });
  expect(eventOf(recreated(1), recreated(1, 9))).toBeUndefined();
  expect(eventOf(recreated(2), recreated(1, 9))).toBeUndefined();
});
