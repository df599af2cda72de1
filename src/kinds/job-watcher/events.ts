import type { EventProps } from '../../contract/controller.js';
import { KEEP_ANNOTATION } from './keep-job.js';
import type { Reason } from './reasons.js';
import type { JobWatcherStatus, RunCounts } from './spec.js';

/** What may be told of a watcher when its status tells something new. */
export type News = (before: JobWatcherStatus | undefined, after: JobWatcherStatus) => EventProps | undefined;

/**
 * What takes somebody to end, when it begins; Jobs that come back, and those whose finish can't be told, when there are
 * more of them; and each run that deleted or failed. One status may tell several.
 */
export const ALL_NEWS: readonly News[] = [stalled, recreated, unclear, run];

function stalled(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps | undefined {
  const condition = conditionOf(after, 'Stalled');
  if (condition?.status !== 'True') return undefined;
  const known = conditionOf(before, 'Stalled');
  if (known?.status === 'True' && known.reason === condition.reason) return undefined;
  return { type: 'Warning', reason: condition.reason, action: 'Delete', note: condition.message };
}

function recreated(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps | undefined {
  const why =
    'Jobs of the same name came back each time that they were deleted; whoever makes them anew has to stop, or to give ' +
    `them the annotation ${KEEP_ANNOTATION}`;
  return more('Recreated', why, before, after);
}

function unclear(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps | undefined {
  const why =
    'conditions contradict each other, or give no time; "reconstruct diff" of this JobWatcher lists them';
  return more('FinishUnclear', why, before, after);
}

/** More Jobs than before stay for a reason. */
function more(
  reason: Reason,
  why: string,
  before: JobWatcherStatus | undefined,
  after: JobWatcherStatus,
): EventProps | undefined {
  const count = (status: JobWatcherStatus | undefined): number => status?.lastRun?.skipped?.[reason] ?? 0;
  if (count(after) <= count(before)) return undefined;
  const note = `${jobs(count(after))} ${count(after) === 1 ? 'stays' : 'stay'}: ${why}`;
  return { type: 'Warning', reason, action: 'Delete', note };
}

function run(
  before: JobWatcherStatus | undefined,
  { lastStarted, lastRun }: JobWatcherStatus,
): EventProps | undefined {
  if (!lastRun || lastRun === before?.lastRun || !hasTried(lastRun)) return undefined;
  // A run of the same second that had nothing to do was not told.
  if (lastStarted === before?.lastStarted && before?.lastRun && hasTried(before.lastRun)) return undefined;
  const { deleted, failed } = lastRun;
  const failures = failed > 0 ? `, ${failed} couldn't be deleted` : '';
  return {
    type: failed > 0 ? 'Warning' : 'Normal',
    reason: failed > 0 ? 'DeletionFailed' : 'Deleted',
    action: 'Delete',
    note: `Deleted ${jobs(deleted)} of ${lastRun.matched}${failures}`,
  };
}

function hasTried({ deleted, failed }: RunCounts): boolean {
  return deleted + failed > 0;
}

function jobs(count: number): string {
  return `${count} Job${count === 1 ? '' : 's'}`;
}

function conditionOf(status: JobWatcherStatus | undefined, wanted: string) {
  return status?.conditions?.find(({ type }) => type === wanted);
}
