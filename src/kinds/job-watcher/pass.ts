import type { Finish } from './finish.js';
import type { Due, Verdict } from './judge.js';
import { newest } from './keep-last.js';
import type { KeptJob } from './keep-job.js';
import type { Reason } from './reasons.js';
import { addTo, count, settle } from './settle.js';
import { Tallies } from './tallies.js';
import type { Tally } from './tallies.js';
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
  nextDeletion?: number;
  /** When to judge again what the limits hold back, or what comes back, whatever becomes of it. */
  judgedAgainAt?: number;
}

/** When the next look is of use, if nothing else happens. */
export function lookAt({
  nextDeletion,
  judgedAgainAt,
}: Pick<WatcherPass, 'nextDeletion' | 'judgedAgainAt'>): number | undefined {
  if (nextDeletion === undefined || judgedAgainAt === undefined) return nextDeletion ?? judgedAgainAt;
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
  let noted: readonly Verdict[] = [];
  const tallies = new Tallies((tally) => {
    addUp(tally, results);
    // As a rule, the Jobs of the next are matched by the same watchers.
    if (sameWatchers(tally.verdicts, noted)) return;
    noteOverlaps(tally.verdicts, results);
    noted = tally.verdicts;
  });
  for (const job of jobs) {
    const verdicts = input.verdicts(job);
    for (const verdict of tallies.add(job, verdicts)) {
      const result = results.get(verdict.watcher) as WatcherPass;
      // A dry run is judged as if it were none.
      const isKept = newestJobs.kept.has(job) || newestJobs.byDryRun.get(verdict.watcher)?.has(job);
      const reason = isKept ? 'KeepLast' : ripe(verdict, job, input, result);
      if (typeof reason !== 'string') addTo(due, reason.watcher, reason);
      else count(result, reason);
    }
  }
  tallies.end();
  for (const [watcher, jobsDue] of due) settle(watcher, jobsDue, results.get(watcher) as WatcherPass, input);
  return results;
}

function emptyPass(): WatcherPass {
  return {
    namespaces: new Set(),
    matched: 0,
    finished: 0,
    skipped: new Map(),
    due: [],
    failed: [],
    overlaps: { names: new Set(), most: 0 },
  };
}

/** What the Jobs of a tally come to for each watcher that matches them. */
function addUp(
  { verdicts, namespaces, matched, finished }: Tally,
  results: ReadonlyMap<Watcher, WatcherPass>,
): void {
  for (const verdict of verdicts) {
    const result = results.get(verdict.watcher) as WatcherPass;
    for (const namespace of namespaces) result.namespaces.add(namespace);
    result.matched += matched;
    result.finished += finished;
    if ('stays' in verdict) count(result, verdict.stays, matched);
  }
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
