import type { Verdict } from './judge.js';
import type { Watcher } from './watcher.js';

/** More would be lists that few Jobs have in common, as where each Job names a TTL of its own. */
const MAX_LISTS = 1000;

/**
 * Equal lists of verdicts in one place. Most Jobs are judged alike, and of 50,000 Jobs under ten watchers the verdicts
 * would take more room than the Jobs.
 */
export class VerdictLists {
  private readonly numbers: ReadonlyMap<Watcher, number>;
  private readonly lists = new Map<string, readonly Verdict[]>();

  /** @param watchers all that any verdict is by */
  constructor(watchers: readonly Watcher[]) {
    this.numbers = new Map(watchers.map((watcher, index) => [watcher, index]));
  }

  /** The list that says the same as this one, in the same order: the first that was given. */
  shared(verdicts: readonly Verdict[]): readonly Verdict[] {
    const id = verdicts.map((verdict) => this.idOf(verdict)).join();
    const known = this.lists.get(id);
    if (known) return known;
    if (this.lists.size >= MAX_LISTS) this.lists.clear();
    this.lists.set(id, verdicts);
    return verdicts;
  }

  private idOf(verdict: Verdict): string {
    const says = 'stays' in verdict ? verdict.stays : verdict.ttlSeconds;
    return `${String(this.numbers.get(verdict.watcher))} ${says}`;
  }
}
