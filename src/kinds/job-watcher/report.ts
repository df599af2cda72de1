import type { ChangeSet } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { conditionsOf, refusedConditions } from './conditions.js';
import type { Failures } from './failures.js';
import type { WatcherPass } from './pass.js';
import { NOTHING_DONE, outcomeOf } from './run.js';
import type { RunOutcome } from './run.js';
import { statusOf } from './status.js';
import type { StatusOutput } from './status.js';
import type { Untold } from './untold.js';
import { uidOf } from './watcher-set.js';
import type { ReadWatcher } from './watcher-set.js';

/** What all reports of one plan have in common. */
export interface ReportContext {
  /** Milliseconds since the epoch, by the clock that counts. */
  readonly now: number;
  readonly skewMilliseconds: number;
  readonly untold: Untold;
  readonly failures: Failures;
  /** When the last of these deletions was done; `now` where there is none. */
  readonly finishedAt: (outcome: RunOutcome) => number;
}

const REFUSED_FREQUENCY_SECONDS = 60;

export interface Told extends StatusOutput {
  /** Without the failures of before. */
  readonly tried: RunOutcome;
}

/** What is told of one watcher once a plan was carried out. */
export class Report {
  private last: { readonly changes: ChangeSet; readonly told: Told } | undefined;

  constructor(
    readonly read: ReadWatcher,
    readonly pass: WatcherPass | undefined,
    private readonly context: ReportContext,
  ) {}

  /** Status, events and samples of a plan agree, however often each is asked for. */
  after(changes: ChangeSet): Told {
    if (this.last?.changes === changes) return this.last.told;
    const { watcher, cr } = this.read;
    const dryRun = watcher instanceof OperatorError || watcher.dryRun;
    const outcome = dryRun ? NOTHING_DONE : outcomeOf(this.pass?.due ?? [], changes);
    const { untold, failures, now, finishedAt } = this.context;
    const tried = failures.tried(outcome);
    untold.add(uidOf(cr), tried, now, finishedAt(tried));
    const suspects = new Set([...(this.pass?.failed ?? []), ...outcome.failed.map(({ due }) => due)]);
    const failed = failures.standing(suspects, outcome.deleted);
    const output = this.output({ deleted: outcome.deleted, failed });
    if (output.isNews) untold.offer(uidOf(cr), output.status, now);
    const told = { ...output, tried };
    this.last = { changes, told };
    return told;
  }

  private output(outcome: RunOutcome): StatusOutput {
    const { now, skewMilliseconds, untold } = this.context;
    const { cr, watcher } = this.read;
    if (watcher instanceof OperatorError) {
      const conditions = refusedConditions(watcher);
      const frequencySeconds = REFUSED_FREQUENCY_SECONDS;
      const none = { deletedBefore: 0, dryRun: false, isUrgent: false };
      return statusOf({ cr, now, conditions, frequencySeconds, ...none });
    }
    const { pass } = this;
    const done = untold.of(uidOf(cr));
    const toldAt = untold.toldAt(uidOf(cr));
    return statusOf({
      ...(toldAt !== undefined && { toldAt }),
      ...{ cr, now, dryRun: watcher.dryRun, frequencySeconds: watcher.frequencySeconds },
      ...(pass && { pass }),
      conditions: pass ? conditionsOf({ watcher, pass, outcome, skewMilliseconds }) : [],
      ...(done && { done }),
      deletedBefore: (done?.deleted.size ?? 0) - outcome.deleted.length,
      isUrgent: watcher.limits !== undefined && done !== undefined,
    });
  }
}
