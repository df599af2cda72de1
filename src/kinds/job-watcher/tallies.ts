import type { Due, Verdict } from './judge.js';
import type { KeptJob } from './keep-job.js';

/** More would be of few Jobs each. */
const MAX_TALLIES = 1000;

/** The Jobs of one list of verdicts, counted together. */
export interface Tally {
  readonly verdicts: readonly Verdict[];
  /** Of these, the ones that depend on the time and on the Job. */
  readonly due: readonly Due[];
  readonly namespaces: Set<string>;
  matched: number;
  finished: number;
}

/**
 * Counts Jobs by the verdicts that they share, so that a Job costs one step and not one for each watcher.
 *
 * **Guarantees.** Each Job is in one tally that is handed on. A list of verdicts may be handed on several times, with
 * some of its Jobs each time.
 */
export class Tallies {
  private readonly byList = new Map<readonly Verdict[], Tally>();

  /** @param handOn is given each tally that is complete */
  constructor(private readonly handOn: (tally: Tally) => void) {}

  /** Counts a Job, and returns those of its verdicts that have yet to be looked at. */
  add({ metadata, finish }: KeptJob, verdicts: readonly Verdict[]): readonly Due[] {
    const tally = this.byList.get(verdicts) ?? this.begin(verdicts);
    tally.matched++;
    if (finish !== undefined) tally.finished++;
    tally.namespaces.add(metadata.namespace);
    return tally.due;
  }

  /** Hands on what hasn't been yet. */
  end(): void {
    for (const tally of this.byList.values()) this.handOn(tally);
    this.byList.clear();
  }

  private begin(verdicts: readonly Verdict[]): Tally {
    if (this.byList.size >= MAX_TALLIES) this.end();
    const due = verdicts.filter((verdict) => 'ttlSeconds' in verdict);
    const tally = { verdicts, due, namespaces: new Set<string>(), matched: 0, finished: 0 };
    this.byList.set(verdicts, tally);
    return tally;
  }
}
