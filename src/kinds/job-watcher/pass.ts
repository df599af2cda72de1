import { rfc3339Seconds } from '../../author/status.js';
import { controllerOf } from '../../contract/object.js';
import type { Finish, KeptJob } from './job.js';
import { addTo, type Due, type Judged, type Reason, type Verdict } from './matching.js';
import type { KeepLast, Limits } from './spec.js';
import type { Watcher } from './watcher.js';

export interface PassInput {
  readonly watchers: readonly Watcher[];
  readonly groups: Judged['groups'];
  /** Time in milliseconds since the epoch, by the API server's clock where it differs. */
  readonly now: number;
  /** Returns until when a Job stays, since Jobs of its name come back whenever they are deleted. */
  readonly recreatedUntil: (job: KeptJob) => number | undefined;
  /** Reports whether the deletion of a Job has failed as it is. */
  readonly hasFailed: (job: KeptJob) => boolean;
  /** Returns when a watcher with limits may run again; what is due waits until then. */
  readonly opensAt: (watcher: Watcher) => number;
}

/** A Job whose time has come. */
export interface DueJob {
  readonly job: KeptJob;
  readonly watcher: Watcher;
  readonly finish: Finish;
  readonly dueAt: number;
}

/** Findings of one pass for one watcher. */
export interface WatcherPass {
  readonly namespaces: Set<string>;
  matched: number;
  finished: number;
  readonly skipped: Map<Reason, number>;
  /** Jobs to be deleted now, in turn; of a dry run, what would be. */
  due: readonly DueJob[];
  /** Jobs that are due and have failed before, within the limits or not. */
  failed: readonly DueJob[];
  /** Number of due Jobs, where the limits allow fewer and none is deleted. */
  exceeded?: number;
  /** The most JobWatchers, no dry runs, that match one of the same Jobs, itself among them. */
  overlaps: { readonly id: string; readonly watchers: readonly Watcher[] };
  /** Next time at which a Job becomes due, or a due one may be deleted. @default - never */
  nextDeletion?: number | undefined;
  /** Time at which to judge again what the limits hold back, or what comes back. */
  judgedAgainAt?: number;
}

/** Returns when the next look is of use, if nothing else happens; Infinity where none is. */
export function lookAt({ nextDeletion = Infinity, judgedAgainAt = Infinity }: Partial<WatcherPass>): number {
  return Math.min(nextDeletion, judgedAgainAt);
}

/** Looks at all Jobs once: what is due, what stays and why. */
export function pass(input: PassInput): ReadonlyMap<Watcher, WatcherPass> {
  const results = new Map(input.watchers.map((watcher) => [watcher, emptyPass()]));
  const result = (watcher: Watcher): WatcherPass => results.get(watcher) as WatcherPass;
  const newestJobs = newestOf(input);
  const due = new Map<Watcher, DueJob[]>();
  for (const [verdicts, jobs] of input.groups) {
    const [first] = jobs;
    const finished = jobs.filter(({ finish }) => finish !== undefined).length;
    for (const verdict of verdicts) {
      const { watcher } = verdict;
      const its = result(watcher);
      if (first) its.namespaces.add(first.metadata.namespace);
      its.matched += jobs.length;
      its.finished += finished;
      if ('stays' in verdict) {
        count(its, verdict.stays, jobs.length);
        continue;
      }
      // A dry run is judged as if it were none.
      const own = watcher.dryRun ? newestJobs.of.get(watcher) : undefined;
      for (const job of jobs) {
        const isKept = newestJobs.all.has(job) || own?.has(job);
        const found = isKept ? 'KeepLast' : ripe(verdict, job, input, its);
        if (typeof found === 'string') count(its, found);
        else addTo(due, watcher, found);
      }
    }
    noteOverlaps(verdicts, result);
  }
  for (const [watcher, jobs] of due) settle(watcher, jobs, result(watcher), input);
  return results;
}

function emptyPass(): WatcherPass {
  const counts = { matched: 0, finished: 0, skipped: new Map<Reason, number>() };
  return { namespaces: new Set(), ...counts, due: [], failed: [], overlaps: { id: '', watchers: [] } };
}

function count(result: WatcherPass, reason: Reason, jobs = 1): void {
  result.skipped.set(reason, (result.skipped.get(reason) ?? 0) + jobs);
}

/** Returns the Job, where its time has come; else why it stays for now, and notes until when. */
function ripe(
  { watcher, ttlSeconds }: Due,
  job: KeptJob,
  { now, recreatedUntil }: PassInput,
  result: WatcherPass,
): Reason | DueJob {
  const finish = job.finish as Finish;
  const dueAt = finish.at + ttlSeconds * 1000;
  if (dueAt > now) {
    result.nextDeletion = Math.min(result.nextDeletion ?? Infinity, dueAt);
    return 'NotDue';
  }
  const until = recreatedUntil(job);
  if (until === undefined) return { job, watcher, finish, dueAt };
  result.judgedAgainAt = Math.min(result.judgedAgainAt ?? Infinity, until);
  return 'Recreated';
}

/** Notes overlaps: of equal numbers always the same ones, so that a status stays the same. */
function noteOverlaps(verdicts: readonly Verdict[], result: (watcher: Watcher) => WatcherPass): void {
  const watchers = verdicts.flatMap(({ watcher }) => (watcher.dryRun ? [] : watcher));
  const id = watchers.map(({ key }) => key).join();
  for (const { watcher } of verdicts) {
    const its = result(watcher);
    const more = watchers.length - its.overlaps.watchers.length;
    if (more > 0 || (more === 0 && id < its.overlaps.id)) its.overlaps = { id, watchers };
  }
}

/** Returns the newest Jobs that watchers keep: whatever the priority, any watcher may keep a Job but a dry run. */
function newestOf({ groups }: PassInput) {
  const matched = new Map<Watcher, KeptJob[]>();
  for (const [verdicts, jobs] of groups)
    for (const { watcher } of verdicts)
      for (const job of watcher.keepLast ? jobs : []) addTo(matched, watcher, job);
  const of = new Map([...matched].map(([watcher, its]) => [watcher, newest(watcher.keepLast ?? {}, its)]));
  return { of, all: new Set([...of].flatMap(([{ dryRun }, its]) => (dryRun ? [] : [...its]))) };
}

/** Returns the newest finished Jobs of each group: of one controller, else of one namespace and value of the label. */
function newest(keepLast: KeepLast, jobs: readonly KeptJob[]): ReadonlySet<KeptJob> {
  const groups = new Map<string, Pick<DueJob, 'job' | 'finish'>[]>();
  for (const job of jobs) {
    const { finish, metadata } = job;
    if (finish === undefined || finish === 'unclear' || metadata.deletionTimestamp !== undefined) continue;
    const value = metadata.labels?.[keepLast.groupByLabel ?? ''];
    const controller = controllerOf(job);
    const named = `namespace ${metadata.namespace}${value === undefined ? '' : ` ${value}`}`;
    const group = controller ? `owner ${controller.uid}` : named;
    addTo(groups, `${finish.outcome} ${group}`, { job, finish });
  }
  const kept = [...groups.values()].flatMap((members) => {
    // Always the same order, also of those that finished in the same second.
    members.sort((a, b) => b.finish.at - a.finish.at || (a.job.metadata.name < b.job.metadata.name ? -1 : 1));
    return members.slice(0, members[0] && (keepLast[members[0].finish.outcome] ?? 0));
  });
  return new Set(kept.map(({ job }) => job));
}

/** Holds what is due against the watcher's limits. */
function settle(watcher: Watcher, due: readonly DueJob[], result: WatcherPass, input: PassInput): void {
  const { now, hasFailed } = input;
  const isDeletable = ({ job }: DueJob): boolean => !watcher.dryRun && !hasFailed(job);
  if (!watcher.dryRun) result.failed = due.filter(({ job }) => hasFailed(job));
  const opensAt = input.opensAt(watcher);
  if (opensAt > now) {
    count(result, 'Limited', due.length);
    result.judgedAgainAt = opensAt;
    const next = due.some(isDeletable) ? opensAt : result.nextDeletion;
    result.nextDeletion = next === undefined ? undefined : Math.max(next, opensAt);
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
    if (turns.slice(allowed).some(isDeletable)) result.nextDeletion = again;
  }
  if (exceeded) {
    result.exceeded = due.length;
    result.nextDeletion = undefined;
  }
  if (watcher.dryRun && allowed > 0) count(result, 'DryRun', allowed);
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

/**
 * Holds a run against its limits. A share is exact: 109 of 1000 are more than 10 %.
 * @param backlog `failed` are those of the due whose deletion has failed: they keep no others from it, and take what room
 *   is left. `matched` are all Jobs that the watcher matches, of which `maxPercent` is a share.
 * @returns how many of the due Jobs it may delete; `exceeded`: none, until something changes
 */
export function allowance(
  { maxPerRun = Infinity, maxPercent, mode }: Limits = {},
  { due, failed, matched }: { readonly due: number; readonly failed: number; readonly matched: number },
) {
  const share = maxPercent === undefined ? Infinity : Math.floor((matched * maxPercent) / 100);
  const most = Math.min(maxPerRun, share);
  if (due - failed <= most) return { count: Math.min(due, most), exceeded: false };
  // Where not even one is allowed, waiting is pointless, too.
  if (mode === 'Throttle' && most > 0) return { count: most, exceeded: false };
  return { count: 0, exceeded: true };
}

/** Later ones have no form that the API server takes, and a Job may say that it finished at any time. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** RFC 3339 in UTC, whole seconds. */
export function isoSeconds(milliseconds: number): string {
  return rfc3339Seconds(new Date(Math.min(milliseconds, LAST_TIME)));
}
