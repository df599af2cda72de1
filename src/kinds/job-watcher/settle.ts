import type { KeptJob } from './keep-job.js';
import { allowance } from './limits.js';
import type { DueJob, PassInput, WatcherPass } from './pass.js';
import type { Reason } from './reasons.js';
import type { Watcher } from './watcher.js';

/** Holds what is due against the watcher's limits. */
export function settle(
  watcher: Watcher,
  due: readonly DueJob[],
  result: WatcherPass,
  input: PassInput,
): void {
  const { now, hasFailed } = input;
  const isDeletable = ({ job }: DueJob): boolean => !watcher.dryRun && !hasFailed(job);
  if (!watcher.dryRun) result.failed = due.filter(({ job }) => hasFailed(job));
  const opensAt = input.opensAt(watcher);
  if (opensAt > now) {
    count(result, 'Limited', due.length);
    result.judgedAgainAt = opensAt;
    const next = due.some(isDeletable) ? opensAt : result.nextDeletion;
    setNextDeletion(result, next === undefined ? undefined : Math.max(next, opensAt));
    return;
  }
  const backlog = { due: due.length, failed: result.failed.length, matched: result.matched };
  const { count: allowed, exceeded } = allowance(watcher.limits, backlog);
  const turns = inTurn(due, hasFailed);
  result.due = turns.slice(0, allowed);
  if (due.length > allowed) {
    count(result, 'Limited', due.length - allowed);
    const again = now + watcher.frequencySeconds * 1000;
    if (!watcher.dryRun) result.judgedAgainAt = again;
    if (turns.slice(allowed).some(isDeletable)) setNextDeletion(result, again);
  }
  if (exceeded) {
    result.exceeded = { due: due.length };
    setNextDeletion(result, undefined);
  }
  if (watcher.dryRun && allowed > 0) count(result, 'DryRun', allowed);
}

export function count(result: WatcherPass, reason: Reason, jobs = 1): void {
  result.skipped.set(reason, (result.skipped.get(reason) ?? 0) + jobs);
}

function setNextDeletion(result: WatcherPass, time: number | undefined): void {
  if (time === undefined) delete result.nextDeletion;
  else result.nextDeletion = time;
}

/**
 * Oldest deadline first, but what has failed last. Always the same order, so that a limit lets the same ones through.
 */
export function inTurn(due: readonly DueJob[], hasFailed: (job: KeptJob) => boolean): DueJob[] {
  const turn = ({ job }: DueJob): number => (hasFailed(job) ? 1 : 0);
  return [...due].sort(
    (a, b) => turn(a) - turn(b) || a.dueAt - b.dueAt || (a.job.metadata.uid < b.job.metadata.uid ? -1 : 1),
  );
}

/** Adds an item to those of a key. */
export function addTo<K, V>(map: Map<K, V[]>, key: K, item: V): void {
  const others = map.get(key);
  if (others) others.push(item);
  else map.set(key, [item]);
}
