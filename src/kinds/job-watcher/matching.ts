import { judge } from './judge.js';
import type { Verdict } from './judge.js';
import type { KeptJob } from './keep-job.js';
import type { Settings } from './settings.js';
import { isProtected } from './watcher.js';
import { VerdictLists } from './verdict-lists.js';
import type { Watcher } from './watcher.js';

const NONE: readonly Verdict[] = [];
const NO_LABELS = {};

/** Judges Jobs by a set of watchers, each Job once for as long as neither it nor the set changes. */
export class Matching {
  private readonly byNamespace = new Map<string, readonly Watcher[]>();
  private readonly byJob = new WeakMap<KeptJob, readonly Verdict[]>();
  private readonly lists: VerdictLists;

  constructor(
    readonly watchers: readonly Watcher[],
    private readonly settings: Settings,
  ) {
    this.lists = new VerdictLists(watchers);
  }

  /** The verdicts of the watchers that match a Job. */
  verdicts(job: KeptJob): readonly Verdict[] {
    const known = this.byJob.get(job);
    if (known) return known;
    const verdicts = this.judge(job);
    this.byJob.set(job, verdicts);
    return verdicts;
  }

  private judge(job: KeptJob): readonly Verdict[] {
    const { namespace, name, labels = NO_LABELS } = job.metadata;
    const matching = this.covering(namespace).filter((watcher) => watcher.coversJob(name, labels));
    if (matching.length === 0) return NONE;
    return this.lists.shared(judge(job, matching, isProtected(this.settings, namespace)));
  }

  private covering(namespace: string): readonly Watcher[] {
    const known = this.byNamespace.get(namespace);
    if (known) return known;
    const covering = this.watchers.filter((watcher) => watcher.coversNamespace(namespace));
    this.byNamespace.set(namespace, covering);
    return covering;
  }
}
