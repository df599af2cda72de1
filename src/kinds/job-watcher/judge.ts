import { controllerOf, groupOf } from '../../contract/object.js';
import type { Finish } from './finish.js';
import type { KeptJob } from './keep-job.js';
import type { Reason } from './reasons.js';
import type { Watcher } from './watcher.js';

/**
 * What a watcher makes of a Job that it matches, whatever the time is: it stays, or is due so long after it has
 * finished. It holds nothing of the Job itself, so that Jobs that are judged alike can share it.
 */
export type Verdict = Stays | Due;

export interface Stays {
  readonly watcher: Watcher;
  readonly stays: Reason;
}

export interface Due {
  readonly watcher: Watcher;
  /** Counted from its finish. */
  readonly ttlSeconds: number;
}

/**
 * Judges a Job by all watchers that match it; at most one of those that aren't dry runs finds it due.
 *
 * The highest priority decides. Among equals each may keep it, and else the longest TTL holds. A dry run has no say,
 * and is told what would be if it weren't one.
 */
export function judge(job: KeptJob, matching: readonly Watcher[], isProtected: boolean): readonly Verdict[] {
  const never = neverReason(job, isProtected);
  const { finish } = job;
  if (never !== undefined || finish === undefined || finish === 'unclear') {
    return matching.map((watcher) => ({ watcher, stays: never ?? 'NotFinished' }));
  }
  const { priority, decider, verdicts } = decide(job, finish, matching);
  return matching.map((watcher) => {
    const stays: Stays = { watcher, stays: 'DecidedByOther' };
    if (!watcher.dryRun) return verdicts.get(watcher) ?? stays;
    const alone = verdictOf(job, finish, watcher);
    if (watcher.priority > priority) return alone;
    if (watcher.priority < priority) return stays;
    return 'stays' in alone || (decider && holds(alone, decider)) ? alone : stays;
  });
}

/** Why a Job stays whoever watches it. */
function neverReason({ metadata, finish, overrides }: KeptJob, isProtected: boolean): Reason | undefined {
  if (isProtected) return 'ProtectedNamespace';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (finish === undefined) return 'NotFinished';
  if (finish === 'unclear') return 'FinishUnclear';
  if (overrides === 'keep') return 'KeepAnnotation';
  return overrides === 'invalid' ? 'InvalidAnnotation' : undefined;
}

/** What those decide that aren't dry runs. */
interface Decision {
  /** The highest. @default - that of none is -Infinity */
  readonly priority: number;
  /** Of those with that priority, the one whose TTL holds. @default - one of them keeps the Job */
  readonly decider?: Due;
  /** Of each that decides. */
  readonly verdicts: ReadonlyMap<Watcher, Verdict>;
}

function decide(job: KeptJob, finish: Finish, matching: readonly Watcher[]): Decision {
  const active = matching.filter(({ dryRun }) => !dryRun);
  const priority = active.reduce((most, watcher) => Math.max(most, watcher.priority), -Infinity);
  const top = active.filter((watcher) => watcher.priority === priority);
  const alone = top.map((watcher) => verdictOf(job, finish, watcher));
  const stays = alone.filter((verdict) => 'stays' in verdict);
  const verdicts = new Map<Watcher, Verdict>(stays.map((verdict) => [verdict.watcher, verdict]));
  const [first, ...others] = alone.filter((verdict): verdict is Due => 'ttlSeconds' in verdict);
  if (stays.length > 0 || !first) return { priority, verdicts };
  const decider = others.reduce((best, due) => (holds(due, best) ? due : best), first);
  return { priority, decider, verdicts: verdicts.set(decider.watcher, decider) };
}

/** Whether of two the TTL of the first holds: the longer; of equals, always the same. */
function holds(a: Due, b: Due): boolean {
  return a.ttlSeconds === b.ttlSeconds ? a.watcher.key < b.watcher.key : a.ttlSeconds > b.ttlSeconds;
}

/** What a watcher would make of a finished Job if it were the only one. */
function verdictOf(job: KeptJob, finish: Finish, watcher: Watcher): Verdict {
  const kept = skipReason(job, watcher);
  if (kept !== undefined) return { watcher, stays: kept };
  const ttlSeconds = ttlOf(job, finish, watcher);
  if (ttlSeconds === undefined) return { watcher, stays: 'NoTTL' };
  if (watcher.suspended) return { watcher, stays: 'Suspended' };
  return { watcher, ttlSeconds };
}

function skipReason(job: KeptJob, { ownerPolicy, skipsTracked }: Watcher): Reason | undefined {
  if (job.nativeTtl && ownerPolicy.ttlSecondsAfterFinished === 'Skip') return 'NativeTTL';
  if (job.managedElsewhere && ownerPolicy.managedBy === 'Skip') return 'ManagedElsewhere';
  if (job.tracker !== undefined && skipsTracked) return 'Tracked';
  const owner = controllerOf(job);
  if (!owner) return undefined;
  if (owner.kind !== 'CronJob' || groupOf(owner.apiVersion) !== 'batch') return 'Owned';
  return ownerPolicy.cronJob === 'Skip' ? 'CronJob' : undefined;
}

/** An annotation may always lengthen the time, and shorten it where that is allowed. */
export function ttlOf(
  { overrides }: KeptJob,
  { outcome }: Finish,
  { ttlSeconds, allowsShorter }: Watcher,
): number | undefined {
  const own = ttlSeconds[outcome];
  const wanted = typeof overrides === 'object' ? overrides[outcome] : undefined;
  if (wanted === undefined || allowsShorter) return wanted ?? own;
  // No TTL is the longest there is.
  return own === undefined ? undefined : Math.max(own, wanted);
}
