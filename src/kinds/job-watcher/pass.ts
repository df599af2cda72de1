import { controllerOf } from '../../contract/object.js';
import type { Finish, KeptJob, Outcome } from './keep-job.js';
import type { Due, Verdict } from './matching.js';
import type { Reason } from './reasons.js';
import type { KeepLast, Limits } from './spec.js';
import type { Watcher } from './watcher.js';

export interface PassInput {
  readonly watchers: readonly Watcher[];
  readonly jobs: readonly KeptJob[];
  /** By the API server's clock where it differs; milliseconds since the epoch. */
  readonly now: number;
  /** See `Matching.verdicts`. */
  readonly verdicts: (job: KeptJob) => readonly Verdict[];
  /** Until when it stays, since Jobs of its name come back whenever they are deleted. */
  readonly recreatedUntil: (job: KeptJob) => number | undefined;
  /** Whether its deletion has failed as it is. */
  readonly hasFailed: (job: KeptJob) => boolean;
  /** When a watcher with limits may run again; what is due waits until then. */
  readonly opensAt: (watcher: Watcher) => number;
}

/** A Job whose time has come. */
export interface DueJob {
  readonly job: KeptJob;
  readonly watcher: Watcher;
  readonly finish: Finish;
  readonly dueAt: number;
}

/** What is to be told of others: no name from another namespace, and of very many not each. */
export interface Overlaps {
  /** In the same namespace, `namespace/name`: of each list of watchers that share a Job the first, at most 20 in all. */
  readonly names: Set<string>;
  /** On one Job at most, wherever they are. */
  most: number;
}

const MAX_OVERLAPS = 20;

/** What one pass has found for one watcher. */
export interface WatcherPass {
  readonly namespaces: Set<string>;
  matched: number;
  finished: number;
  readonly skipped: Map<Reason, number>;
  /** To be deleted now, in turn; of a dry run, what would be. */
  due: readonly DueJob[];
  /** What is due and has failed before, within the limits or not. */
  failed: readonly DueJob[];
  /** More were due than the limits allow, and none is deleted. */
  exceeded?: { readonly due: number };
  /** Others, no dry runs, that match the same Jobs. */
  readonly overlaps: Overlaps;
  /** When something is due next, or may be deleted that is; never where nothing will be. */
  nextDeletion?: number | undefined;
  /** When to judge again what the limits hold back, or what comes back, whatever becomes of it. */
  judgedAgainAt?: number;
}

/** When the next look is of use, if nothing else happens; Infinity where none is. */
export function lookAt({ nextDeletion = Infinity, judgedAgainAt = Infinity }: Partial<WatcherPass>): number {
  return Math.min(nextDeletion, judgedAgainAt);
}

/** The newest Jobs that watchers keep. */
interface Newest {
  /** Whatever the priority: any watcher may keep a Job, but for dry runs. */
  readonly kept: ReadonlySet<KeptJob>;
  readonly byDryRun: ReadonlyMap<Watcher, ReadonlySet<KeptJob>>;
}

/** Looks at all Jobs once: what is due, what stays and why. */
export function pass(input: PassInput): ReadonlyMap<Watcher, WatcherPass> {
  const results = new Map(input.watchers.map((watcher) => [watcher, emptyPass()] as const));
  const { jobs } = input;
  const newestJobs = newestOf(input, jobs);
  const due = new Map<Watcher, DueJob[]>();
  const tallies = new Map<readonly Verdict[], Tally>();
  for (const job of jobs) {
    const verdicts = input.verdicts(job);
    const tally = tallies.get(verdicts) ?? newTally(job, verdicts);
    tallies.set(verdicts, tally);
    tally.matched++;
    if (job.finish !== undefined) tally.finished++;
    for (const verdict of tally.due) {
      const result = results.get(verdict.watcher) as WatcherPass;
      // A dry run is judged as if it were none.
      const isKept = newestJobs.kept.has(job) || newestJobs.byDryRun.get(verdict.watcher)?.has(job);
      const reason = isKept ? 'KeepLast' : ripe(verdict, job, input, result);
      if (typeof reason !== 'string') addTo(due, reason.watcher, reason);
      else count(result, reason);
    }
  }
  let noted: readonly Verdict[] = [];
  for (const [verdicts, tally] of tallies) {
    for (const verdict of verdicts) addUp(verdict, tally, results.get(verdict.watcher) as WatcherPass);
    // As a rule, the Jobs of the next are matched by the same watchers.
    if (!sameWatchers(verdicts, noted)) noteOverlaps(verdicts, results);
    noted = verdicts;
  }
  for (const [watcher, jobsDue] of due) settle(watcher, jobsDue, results.get(watcher) as WatcherPass, input);
  return results;
}

function emptyPass(): WatcherPass {
  const overlaps = { names: new Set<string>(), most: 0 };
  return {
    namespaces: new Set(),
    matched: 0,
    finished: 0,
    skipped: new Map(),
    due: [],
    failed: [],
    overlaps,
  };
}

/** The Jobs of one list of verdicts, so that a Job costs one step and not one for each watcher. */
interface Tally {
  readonly namespace: string;
  /** Of the verdicts, the ones that depend on the time and on the Job. */
  readonly due: readonly Due[];
  matched: number;
  finished: number;
}

/** @param verdicts in one place for all Jobs of a namespace that are judged alike */
function newTally({ metadata: { namespace } }: KeptJob, verdicts: readonly Verdict[]): Tally {
  return { namespace, due: verdicts.filter((verdict) => 'ttlSeconds' in verdict), matched: 0, finished: 0 };
}

function addUp(verdict: Verdict, { namespace, matched, finished }: Tally, result: WatcherPass): void {
  result.namespaces.add(namespace);
  result.matched += matched;
  result.finished += finished;
  if ('stays' in verdict) count(result, verdict.stays, matched);
}

/** The Job, where its time has come; else why it stays for now, and the result learns until when. */
function ripe(verdict: Due, job: KeptJob, input: PassInput, result: WatcherPass): Reason | DueJob {
  const finish = job.finish as Finish;
  const dueAt = finish.at + verdict.ttlSeconds * 1000;
  if (dueAt > input.now) {
    result.nextDeletion = Math.min(result.nextDeletion ?? Infinity, dueAt);
    return 'NotDue';
  }
  const until = input.recreatedUntil(job);
  if (until === undefined) return { job, watcher: verdict.watcher, finish, dueAt };
  result.judgedAgainAt = Math.min(result.judgedAgainAt ?? Infinity, until);
  return 'Recreated';
}

function sameWatchers(a: readonly Verdict[], b: readonly Verdict[]): boolean {
  return a.length === b.length && a.every(({ watcher }, index) => watcher === b[index]?.watcher);
}

function noteOverlaps(verdicts: readonly Verdict[], results: ReadonlyMap<Watcher, WatcherPass>): void {
  const active = verdicts.flatMap(({ watcher }) => (watcher.dryRun ? [] : watcher));
  const byNamespace = new Map<string, string[]>();
  for (const { namespace, key } of active) {
    const keys = byNamespace.get(namespace) ?? [];
    // One more, since each leaves itself out.
    if (keys.length <= MAX_OVERLAPS) keys.push(key);
    byNamespace.set(namespace, keys);
  }
  for (const { watcher } of verdicts) {
    const { overlaps } = results.get(watcher) as WatcherPass;
    overlaps.most = Math.max(overlaps.most, active.length - (watcher.dryRun ? 0 : 1));
    for (const key of byNamespace.get(watcher.namespace) ?? [])
      if (key !== watcher.key && overlaps.names.size < MAX_OVERLAPS) overlaps.names.add(key);
  }
}

function newestOf({ verdicts, watchers }: PassInput, jobs: readonly KeptJob[]): Newest {
  const matched = new Map<Watcher, KeptJob[]>();
  for (const job of watchers.some(({ keepLast }) => keepLast) ? jobs : [])
    for (const { watcher } of verdicts(job)) if (watcher.keepLast) addTo(matched, watcher, job);
  const all = [...matched].map(([watcher, its]) => [watcher, newest(watcher.keepLast ?? {}, its)] as const);
  return {
    kept: new Set(all.flatMap(([{ dryRun }, its]) => (dryRun ? [] : [...its]))),
    byDryRun: new Map(all.filter(([{ dryRun }]) => dryRun)),
  };
}

interface Member {
  readonly job: KeptJob;
  readonly finish: Finish;
}

/**
 * The newest finished Jobs of each group: of one controller, else of one namespace and value of the label. What is
 * being deleted already is none of them.
 * @param jobs those that the watcher matches
 */
export function newest(keepLast: KeepLast, jobs: Iterable<KeptJob>): ReadonlySet<KeptJob> {
  const groups = new Map<string, Member[]>();
  for (const job of jobs) {
    const { finish } = job;
    if (finish === undefined || finish === 'unclear' || job.metadata.deletionTimestamp !== undefined)
      continue;
    if (!keepLast[finish.outcome]) continue;
    const group = `${finish.outcome} ${groupOf(job, keepLast.groupByLabel)}`;
    addTo(groups, group, { job, finish });
  }
  const kept = new Set<KeptJob>();
  for (const members of groups.values()) {
    const count = keepLast[(members[0] as Member).finish.outcome satisfies Outcome] ?? 0;
    for (const { job } of members.sort(newestFirst).slice(0, count)) kept.add(job);
  }
  return kept;
}

function groupOf({ metadata, ...job }: KeptJob, label: string | undefined): string {
  const controller = controllerOf({ ...job, metadata });
  if (controller) return `owner ${controller.uid}`;
  const value = label === undefined ? undefined : metadata.labels?.[label];
  return `namespace ${metadata.namespace}${value === undefined ? '' : ` ${value}`}`;
}

/** Always the same order, also of those that finished in the same second. */
function newestFirst(a: Member, b: Member): number {
  return b.finish.at - a.finish.at || (a.job.metadata.name < b.job.metadata.name ? -1 : 1);
}

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
    result.exceeded = { due: due.length };
    result.nextDeletion = undefined;
  }
  if (watcher.dryRun && allowed > 0) count(result, 'DryRun', allowed);
}

export function count(result: WatcherPass, reason: Reason, jobs = 1): void {
  result.skipped.set(reason, (result.skipped.get(reason) ?? 0) + jobs);
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

/** What a watcher has before it. */
export interface Backlog {
  readonly due: number;
  /** Those of them whose deletion has failed: they keep no others from it, and take what room is left. */
  readonly failed: number;
  /** All Jobs that the watcher matches, of which `maxPercent` is a share. */
  readonly matched: number;
}

/**
 * Holds a run against its limits. A share is exact: 109 of 1000 are more than 10 %.
 * @returns how many of the due Jobs it may delete; `exceeded`: none, until somebody does something
 */
export function allowance({ maxPerRun = Infinity, maxPercent, mode }: Limits = {}, backlog: Backlog) {
  const { due, failed, matched } = backlog;
  const share = maxPercent === undefined ? Infinity : Math.floor((matched * maxPercent) / 100);
  const most = Math.min(maxPerRun, share);
  if (due - failed <= most) return { count: Math.min(due, most), exceeded: false };
  // Where not even one is allowed, to wait is of no use either.
  if (mode === 'Throttle' && most > 0) return { count: most, exceeded: false };
  return { count: 0, exceeded: true };
}
