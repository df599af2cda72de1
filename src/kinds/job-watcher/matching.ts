import { controllerOf, groupOf } from '../../contract/object.js';
import type { Finish, KeptJob } from './keep-job.js';
import { addTo } from './pass.js';
import type { Reason } from './reasons.js';
import { isListed } from './settings.js';
import type { Settings } from './settings.js';
import { findsOne } from './watcher.js';
import type { Watcher } from './watcher.js';

/** More lists of verdicts would be of few Jobs each, as where each Job names a TTL of its own. */
const MAX_LISTS = 1000;

const NO_LABELS = {};

/** What the watchers of a namespace make of Jobs that are judged alike: in one place, however many Jobs they are. */
interface Judged {
  readonly scope: Scope;
  readonly matched: ReadonlySet<Watcher>;
  readonly verdicts: readonly Verdict[];
}

/** The watchers that act in one namespace. */
interface Scope {
  readonly watchers: readonly Watcher[];
  readonly numbers: ReadonlyMap<Watcher, number>;
  readonly lists: Map<string, Judged>;
  /** Watchers with patterns for namespaces, whether they match this one or not. */
  wide: ReadonlySet<Watcher>;
  version: number;
}

/**
 * Judges Jobs by a set of watchers.
 *
 * **Guarantees.** Whether a watcher matches a Job is worked out once for as long as neither of the two changes, and a Job
 * is judged once for as long as it and the watchers of its namespace stay the same.
 */
export class Matching {
  private watchers: ReadonlySet<Watcher> = new Set();
  private own = new Map<string, Watcher[]>();
  private wide: ReadonlySet<Watcher> = new Set();
  private version = 0;
  private readonly scopes = new Map<string, Scope>();
  private readonly byJob = new WeakMap<KeptJob, Judged>();

  constructor(private readonly settings: Settings) {}

  /** Takes the watchers as they are now, in whatever order. */
  update(watchers: readonly Watcher[]): void {
    if (watchers.length === this.watchers.size && watchers.every((watcher) => this.watchers.has(watcher)))
      return;
    this.watchers = new Set(watchers);
    this.wide = new Set(watchers.filter(({ namespacePatterns }) => namespacePatterns));
    this.own = new Map();
    for (const watcher of watchers) if (!this.wide.has(watcher)) addTo(this.own, watcher.namespace, watcher);
    // Nothing is there any more where nothing was looked at since the last change.
    for (const [namespace, { version }] of this.scopes)
      if (version < this.version) this.scopes.delete(namespace);
    this.version++;
  }

  /** The verdicts of the watchers that match a Job. */
  verdicts(job: KeptJob): readonly Verdict[] {
    const known = this.byJob.get(job);
    const scope = this.scopeOf(job.metadata.namespace);
    if (known?.scope === scope) return known.verdicts;
    const judged = this.judge(job, scope, known);
    this.byJob.set(job, judged);
    return judged.verdicts;
  }

  /**
   * Judges those that haven't been, in turn of their namespaces, until time is up.
   * @returns the namespaces in which some are left
   */
  catchUp(jobs: readonly KeptJob[], isTimeUp: () => boolean): ReadonlySet<string> {
    const waiting = new Map<string, KeptJob[]>();
    for (const job of jobs) if (!this.isJudged(job)) addTo(waiting, job.metadata.namespace, job);
    while (waiting.size > 0)
      for (const [namespace, left] of waiting) {
        this.verdicts(left.pop() as KeptJob);
        if (left.length === 0) waiting.delete(namespace);
        if (isTimeUp()) return new Set(waiting.keys());
      }
    return new Set();
  }

  isJudged(job: KeptJob): boolean {
    const scope = this.scopes.get(job.metadata.namespace);
    return scope?.version === this.version && this.byJob.get(job)?.scope === scope;
  }

  private judge(job: KeptJob, scope: Scope, known: Judged | undefined): Judged {
    const { namespace, name, labels = NO_LABELS } = job.metadata;
    const found = new Map<string, boolean>();
    const matching = scope.watchers.filter((watcher) =>
      known?.scope.numbers.has(watcher) ? known.matched.has(watcher) : watcher.coversJob(name, labels, found),
    );
    const verdicts = judge(job, matching, isListed(this.settings.protectedNamespaces, namespace));
    const id = verdicts.map((verdict) => idOf(verdict, scope)).join();
    const alike = scope.lists.get(id);
    if (alike) return alike;
    if (scope.lists.size >= MAX_LISTS) scope.lists.clear();
    const judged = { scope, matched: new Set(matching), verdicts };
    scope.lists.set(id, judged);
    return judged;
  }

  private scopeOf(namespace: string): Scope {
    const known = this.scopes.get(namespace);
    if (known?.version === this.version) return known;
    const covering = [...this.wide].filter((watcher) =>
      known?.wide.has(watcher)
        ? known.numbers.has(watcher)
        : findsOne(watcher.namespacePatterns ?? [], namespace),
    );
    const watchers = [...(this.own.get(namespace) ?? []), ...covering].sort((a, b) =>
      a.key < b.key ? -1 : 1,
    );
    const isSame =
      watchers.length === known?.watchers.length &&
      watchers.every((watcher, index) => watcher === known.watchers[index]);
    const numbers = new Map(watchers.map((watcher, index) => [watcher, index]));
    const scope = isSame ? known : { watchers, numbers, lists: new Map(), wide: this.wide, version: 0 };
    scope.version = this.version;
    scope.wide = this.wide;
    this.scopes.set(namespace, scope);
    return scope;
  }
}

function idOf(verdict: Verdict, { numbers }: Scope): string {
  return `${String(numbers.get(verdict.watcher))} ${'stays' in verdict ? verdict.stays : verdict.ttlSeconds}`;
}

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
