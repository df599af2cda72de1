import type { ChangeSet } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { conditionsOf, refusedConditions } from './conditions.js';
import type { WatcherPass } from './pass.js';
import { NOTHING_DONE, outcomeOf } from './run.js';
import type { RunOutcome } from './run.js';
import { statusOf, statusOpensAt } from './status.js';
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
  /** When the last of these deletions was done; `now` where there is none. */
  readonly finishedAt: (outcome: RunOutcome) => number;
}

const REFUSED_FREQUENCY_SECONDS = 60;

/** What is told of one watcher: before anything was done, and after. */
export class Report {
  private last: { readonly changes: ChangeSet; readonly output: StatusOutput } | undefined;

  constructor(
    readonly read: ReadWatcher,
    readonly pass: WatcherPass | undefined,
    private readonly context: ReportContext,
  ) {}

  /** Nothing was done, or nothing yet. */
  forecast(): StatusOutput {
    return this.output(NOTHING_DONE);
  }

  /** When what is done now may be told at the latest, unless it is told at once. */
  tellsAt(): number | undefined {
    const { cr, watcher } = this.read;
    if (watcher instanceof OperatorError) return undefined;
    return statusOpensAt(cr.status, watcher.frequencySeconds, this.context.untold.toldAt(uidOf(cr)));
  }

  /** Status and event of a plan agree, however often each is asked for. */
  after(changes: ChangeSet): StatusOutput {
    if (this.last?.changes === changes) return this.last.output;
    const { watcher } = this.read;
    const dryRun = watcher instanceof OperatorError || watcher.dryRun;
    const outcome = dryRun ? NOTHING_DONE : outcomeOf(this.pass?.due ?? [], changes);
    const { untold, now, finishedAt } = this.context;
    untold.add(uidOf(this.read.cr), outcome, now, finishedAt(outcome));
    const output = this.output(outcome);
    if (output.isNews) untold.offer(uidOf(this.read.cr), output.status, now);
    this.last = { changes, output };
    return output;
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
