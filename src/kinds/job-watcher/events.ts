import type { EventProps } from '../../contract/controller.js';
import type { JobWatcherStatus } from './spec.js';

/**
 * What is told of a watcher when its status tells something new: of a run that deleted or failed, of what takes
 * somebody to end when it begins, and of Jobs that come back when they do.
 */
export function eventOf(
  before: JobWatcherStatus | undefined,
  after: JobWatcherStatus,
): EventProps | undefined {
  return stalled(before, after) ?? recreated(before, after) ?? run(before, after);
}

function stalled(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps | undefined {
  const condition = conditionOf(after, 'Stalled');
  if (condition?.status !== 'True') return undefined;
  const known = conditionOf(before, 'Stalled');
  if (known?.status === 'True' && known.reason === condition.reason) return undefined;
  return { type: 'Warning', reason: condition.reason, action: 'Delete', note: condition.message };
}

function recreated(before: JobWatcherStatus | undefined, after: JobWatcherStatus): EventProps | undefined {
  const count = (status: JobWatcherStatus | undefined): number => status?.lastRun?.skipped?.Recreated ?? 0;
  if (count(after) <= count(before)) return undefined;
  const note = `${jobs(count(after))} stay: Jobs of the same name came back each time that they were deleted`;
  return { type: 'Warning', reason: 'Recreated', action: 'Delete', note };
}

function run(
  before: JobWatcherStatus | undefined,
  { lastStarted, lastRun }: JobWatcherStatus,
): EventProps | undefined {
  if (!lastRun || lastRun === before?.lastRun || lastStarted === before?.lastStarted) return undefined;
  const { deleted, failed } = lastRun;
  if (deleted + failed === 0) return undefined;
  const failures = failed > 0 ? `, ${failed} couldn't be deleted` : '';
  return {
    type: failed > 0 ? 'Warning' : 'Normal',
    reason: failed > 0 ? 'DeletionFailed' : 'Deleted',
    action: 'Delete',
    note: `Deleted ${jobs(deleted)} of ${lastRun.matched}${failures}`,
  };
}

function jobs(count: number): string {
  return `${count} Job${count === 1 ? '' : 's'}`;
}

function conditionOf(status: JobWatcherStatus | undefined, wanted: string) {
  return status?.conditions?.find(({ type }) => type === wanted);
}
