import { judge } from './judge.js';
import type { Verdict } from './judge.js';
import type { KeptJob } from './keep-job.js';
import { findsOne } from './patterns.js';
import { addTo } from './settle.js';
import type { Settings } from './settings.js';
import { isProtected } from './watcher.js';
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
    const verdicts = judge(job, matching, isProtected(this.settings, namespace));
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
