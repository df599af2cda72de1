import { controllerOf, groupOf } from '../../contract/object.js';
import { compileRegularExpression } from '../../values/regular-expression.js';
import type { Finish, KeptJob } from './job.js';
import type { Settings } from './settings.js';
import { findsOne, type Watcher } from './watcher.js';

/** Reasons why a Job stays, as the status and the metrics count it; those from `NotDue` on hold for now alone. */
export const WHY = {
  NotFinished: 'it runs, waits or is suspended',
  Terminating: 'it is being deleted already',
  ProtectedNamespace: "its namespace is the system's, or the operator's",
  FinishUnclear: 'its conditions contradict each other, or give no time',
  KeepAnnotation: 'its own annotation keeps it',
  InvalidAnnotation: "its own annotation can't be read",
  NativeTTL: 'Kubernetes deletes it, by ttlSecondsAfterFinished',
  ManagedElsewhere: 'its managedBy names another controller',
  Tracked: 'Argo CD, Flux or Helm made it, and may make it again',
  Owned: 'it has a controller',
  CronJob: 'a CronJob made it',
  NoTTL: 'there is no TTL for how it finished',
  Suspended: 'the JobWatcher is suspended',
  NotDue: 'its time has yet to come',
  KeepLast: 'it is one of the newest',
  DecidedByOther: 'another JobWatcher decides on it',
  Limited: 'the run would be beyond the limits',
  DryRun: 'it would be deleted if this were no dry run',
  Recreated: 'Jobs of its name come back whenever they are deleted',
} as const;

export type Reason = keyof typeof WHY;

/**
 * Verdict of a watcher on a Job that it matches, whatever the time is: it stays, or is due so long after it has
 * finished. It holds nothing of the Job itself, so that Jobs that are judged alike share it.
 */
export type Verdict = Due | { readonly watcher: Watcher; readonly stays: Reason };

export interface Due {
  readonly watcher: Watcher;
  /** Counted from its finish. */
  readonly ttlSeconds: number;
}

/** The watchers that act in one namespace. */
interface Scope {
  readonly watchers: readonly Watcher[];
  /** Whether nothing is deleted there. */
  readonly isProtected: boolean;
  readonly judged: WeakMap<KeptJob, readonly Verdict[]>;
  /** Lists of verdicts, so that there is one of each, however many Jobs are judged alike. */
  readonly lists: Map<string, readonly Verdict[]>;
}

/** Jobs that are judged, by verdicts: those of one group are in one namespace. */
export interface Judged {
  readonly groups: ReadonlyMap<readonly Verdict[], readonly KeptJob[]>;
  /** Namespaces in which Jobs have yet to be judged. */
  readonly waiting: ReadonlySet<string>;
}

/** Maximum number of lists of verdicts; beyond it, each is of few Jobs, as where each Job names its own TTL. */
const MAX_LISTS = 1000;

/** Judges each Job once for as long as it and the watchers of its namespace stay the same. */
export class Matching {
  private watchers: readonly Watcher[] = [];
  private scopes = new Map<string, Scope>();
  /** Scopes from before the last change of the watchers. */
  private before = new Map<string, Scope>();
  constructor(private readonly settings: Settings) {}

  /** @param watchers as they are now, always in the same order */
  update(watchers: readonly Watcher[]): void {
    if (isSameList(watchers, this.watchers)) return;
    this.watchers = watchers;
    this.before = this.scopes;
    this.scopes = new Map();
  }

  /**
   * Groups Jobs by the verdicts of the watchers that match them. Those that haven't been judged are, in turn of their namespaces,
   * until time is up.
   */
  group(jobs: readonly KeptJob[], isTimeUp: () => boolean): Judged {
    const groups = new Map<readonly Verdict[], KeptJob[]>();
    const waiting = new Map<string, KeptJob[]>();
    for (const job of jobs) {
      const { namespace } = job.metadata;
      const verdicts = this.scopes.get(namespace)?.judged.get(job);
      if (verdicts) addTo(groups, verdicts, job);
      else addTo(waiting, namespace, job);
    }
    while (waiting.size > 0)
      for (const [namespace, left] of waiting) {
        const job = left.pop() as KeptJob;
        addTo(groups, verdictsIn(this.scopeOf(namespace), job), job);
        if (left.length === 0) waiting.delete(namespace);
        if (isTimeUp()) return { groups, waiting: new Set(waiting.keys()) };
      }
    return { groups, waiting: new Set() };
  }

  private scopeOf(namespace: string): Scope {
    const known = this.scopes.get(namespace);
    if (known) return known;
    const watchers = this.watchers.filter((watcher) =>
      watcher.namespacePatterns
        ? findsOne(watcher.namespacePatterns, namespace)
        : watcher.namespace === namespace,
    );
    const before = this.before.get(namespace);
    const isProtected = isListed(this.settings.protectedNamespaces, namespace);
    const scope =
      before && isSameList(watchers, before.watchers)
        ? before
        : { watchers, isProtected, judged: new WeakMap(), lists: new Map() };
    this.scopes.set(namespace, scope);
    return scope;
  }
}

function verdictsIn({ watchers, isProtected, judged, lists }: Scope, job: KeptJob): readonly Verdict[] {
  const known = judged.get(job);
  if (known) return known;
  const { name, labels = {} } = job.metadata;
  const found = new Map<string, boolean>();
  const matching = watchers.filter((watcher) => watcher.coversJob(name, labels, found));
  const own = judge(job, matching, isProtected);
  const id = own
    .map((verdict) => `${verdict.watcher.key} ${'stays' in verdict ? verdict.stays : verdict.ttlSeconds}`)
    .join();
  const verdicts = lists.get(id) ?? own;
  if (lists.size >= MAX_LISTS) lists.clear();
  lists.set(id, verdicts);
  judged.set(job, verdicts);
  return verdicts;
}

/** Reports whether a namespace is in a list of names in which `*` stands for any characters. */
export function isListed(list: readonly string[], namespace: string): boolean {
  return list.some((name) => compileRegularExpression(`^${name.replaceAll('*', '.*')}$`).test(namespace));
}

/**
 * Judges a Job by all watchers that match it; at most one of those that aren't dry runs finds it due.
 *
 * The highest priority decides. Among equals each may keep it, and else the longest TTL holds. A dry run has no say, and
 * gets the verdict that it would have if it were none.
 */
export function judge(job: KeptJob, matching: readonly Watcher[], isProtected: boolean): readonly Verdict[] {
  const { finish } = job;
  const never = neverReason(job, isProtected);
  if (never !== undefined) return matching.map((watcher) => ({ watcher, stays: never }));
  const alone = matching.map((watcher) => verdictOf(job, finish as Finish, watcher));
  const active = alone.filter(({ watcher }) => !watcher.dryRun);
  const priority = active.reduce((most, { watcher }) => Math.max(most, priorityOf(watcher)), -Infinity);
  const top = active.filter(({ watcher }) => priorityOf(watcher) === priority);
  const due = top.filter((verdict) => 'ttlSeconds' in verdict);
  const decider = due.length === top.length ? due.sort(longestFirst)[0] : undefined;
  return alone.map((verdict) => {
    const { watcher } = verdict;
    const other: Verdict = { watcher, stays: 'DecidedByOther' };
    if (priorityOf(watcher) < priority) return other;
    if (priorityOf(watcher) > priority || 'stays' in verdict) return verdict;
    return verdict === decider || (watcher.dryRun && decider && longestFirst(verdict, decider) < 0)
      ? verdict
      : other;
  });
}

function priorityOf({ priority = 0 }: Watcher): number {
  return priority;
}

/** Returns why a Job stays whatever watches it. */
function neverReason({ metadata, finish, overrides }: KeptJob, isProtected: boolean): Reason | undefined {
  if (isProtected) return 'ProtectedNamespace';
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (finish === undefined) return 'NotFinished';
  if (finish === 'unclear') return 'FinishUnclear';
  if (overrides === 'keep') return 'KeepAnnotation';
  return overrides === 'invalid' ? 'InvalidAnnotation' : undefined;
}

/** The longest TTL holds; of equals, always the same. */
function longestFirst(a: Due, b: Due): number {
  return b.ttlSeconds - a.ttlSeconds || (a.watcher.key < b.watcher.key ? -1 : 1);
}

/** Returns the verdict of a watcher on a finished Job if it were the only one. */
function verdictOf(job: KeptJob, { outcome }: Finish, watcher: Watcher): Verdict {
  const stays = skipReason(job, watcher);
  if (stays !== undefined) return { watcher, stays };
  const own = watcher.ttlSeconds[outcome];
  const wanted = typeof job.overrides === 'object' ? job.overrides[outcome] : undefined;
  // An annotation may always lengthen the time, and shorten it where that is allowed. No TTL is the longest there is.
  const mayOverride =
    wanted !== undefined && (watcher.allowShorterOverrides || (own !== undefined && wanted > own));
  const ttlSeconds = mayOverride ? wanted : own;
  if (ttlSeconds === undefined) return { watcher, stays: 'NoTTL' };
  return watcher.suspend ? { watcher, stays: 'Suspended' } : { watcher, ttlSeconds };
}

function skipReason(job: KeptJob, { ownerPolicy = {}, tracked }: Watcher): Reason | undefined {
  if (job.nativeTtl && ownerPolicy.ttlSecondsAfterFinished !== 'Delete') return 'NativeTTL';
  if (job.managedElsewhere && ownerPolicy.managedBy !== 'Delete') return 'ManagedElsewhere';
  if (job.tracked && tracked !== 'Delete') return 'Tracked';
  const owner = controllerOf(job);
  if (!owner) return undefined;
  if (owner.kind !== 'CronJob' || groupOf(owner.apiVersion) !== 'batch') return 'Owned';
  return ownerPolicy.cronJob === 'Skip' ? 'CronJob' : undefined;
}

export function isSameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

/** Adds an item to those of a key. */
export function addTo<K, V>(map: Map<K, V[]>, key: K, item: V): void {
  const others = map.get(key);
  if (others) others.push(item);
  else map.set(key, [item]);
}
