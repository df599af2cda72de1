import { expect, test } from 'vitest';
import type { Condition } from '../../../src/contract/conditions.js';
import type { EventProps } from '../../../src/contract/controller.js';
import { ALL_NEWS } from '../../../src/kinds/job-watcher/events.js';
import type { JobWatcherStatus, RunCounts } from '../../../src/kinds/job-watcher/spec.js';
import { at } from './fixtures.js';

function eventsOf(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps[] {
  return ALL_NEWS.map((news) => news(before, after)).filter((event) => event !== undefined);
}

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
  expect(eventsOf(status(), status({ deleted: 2 }, undefined, 9))).toEqual([
    { type: 'Normal', reason: 'Deleted', action: 'Delete', note: 'Deleted 2 Jobs of 5' },
  ]);
  expect(eventsOf(undefined, status({ deleted: 1, failed: 1 }))).toMatchObject([
    { type: 'Warning', reason: 'DeletionFailed', note: "Deleted 1 Job of 5, 1 couldn't be deleted" },
  ]);
  // The status was written anew for another reason.
  expect(eventsOf(status({ deleted: 2 }), status({ deleted: 2 }))).toEqual([]);
  expect(eventsOf(status({ deleted: 1 }), status({ deleted: 2 }))).toEqual([]);
  expect(eventsOf(status(), status({ matched: 6 }, undefined, 9))).toEqual([]);
  // In the second of one that had nothing to tell.
  expect(eventsOf(status(), status({ failed: 1 }))).toMatchObject([{ reason: 'DeletionFailed' }]);
});

test('what takes somebody to end is told when it begins, and when it is something else', () => {
  const warning = { type: 'Warning', reason: 'BlastRadiusExceeded', note: 'Because of BlastRadiusExceeded' };
  expect(eventsOf(status(), status({}, 'BlastRadiusExceeded'))).toMatchObject([warning]);
  expect(
    eventsOf(status({}, 'BlastRadiusExceeded'), status({ matched: 6 }, 'BlastRadiusExceeded', 9)),
  ).toEqual([]);
  expect(eventsOf(status({}, 'Forbidden'), status({}, 'BlastRadiusExceeded'))).toMatchObject([warning]);
  expect(eventsOf(status({}, 'Forbidden'), status())).toEqual([]);
});

test.each(['Recreated', 'FinishUnclear'] as const)(
  '%s is told when there is one more Job of it',
  (reason) => {
    const skipped = (count: number, started = 0) =>
      status({ skipped: { [reason]: count } }, undefined, started);
    expect(eventsOf(status(), skipped(1))).toMatchObject([{ type: 'Warning', reason }]);
    expect(eventsOf(skipped(1), skipped(2, 9))).toMatchObject([{ reason }]);
    expect(eventsOf(skipped(1), skipped(1, 9))).toEqual([]);
    expect(eventsOf(skipped(2), skipped(1, 9))).toEqual([]);
  },
);

test('a run is told also where there is something else to tell', () => {
  const after = status({ deleted: 2, failed: 1, skipped: { Recreated: 1 } }, 'Forbidden', 9);
  expect(eventsOf(status(), after)).toMatchObject([
    { reason: 'Forbidden' },
    { reason: 'Recreated' },
    { reason: 'DeletionFailed', note: "Deleted 2 Jobs of 5, 1 couldn't be deleted" },
  ]);
});
