import { describeRef, objectId } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import type { Plan } from '../../contract/plan.js';
import type { Transport } from '../../client/transport.js';
import type { Hand } from '../plan/hand.js';
import { asUndone } from '../plan/interpret.js';
import type { Handlers, PlanOutcome } from '../plan/interpret.js';
import { setLatest } from '../../values/latest.js';
import type { StoreReader } from '../watch/reader.js';
import { DryRun } from './dry-run.js';
import { dryHand, previewPlan } from './preview.js';

export interface ObserverProps extends Pick<Hand, 'clock' | 'log' | 'drift' | 'memory' | 'metrics'> {
  readonly transport: Transport;
  /** Names it in metrics. */
  readonly controller: string;
}

/** Maximum number of objects that are remembered; one that is forgotten is reported once more. */
const REPORTED_LIMIT = 50_000;

/**
 * Finds out by dry runs what plans would do, logs it and counts it.
 *
 * **Guarantees.** Nothing is written, no status and no event either. What would be done to an object is logged once, until it is
 * something else.
 *
 * **Caveats.** Plans go on from what is there, so what would follow from an object that would be created isn't seen.
 */
export class Observer {
  /** Changes that would be made, by object. */
  private readonly reported = new Map<string, string>();

  constructor(private readonly props: ObserverProps) {}

  async observe(
    plan: Plan,
    reader: StoreReader,
    handlers: Handlers,
    own: Pick<Hand, 'writer' | 'signal' | 'stopping'>,
  ): Promise<PlanOutcome> {
    const dryRun = new DryRun(this.props.transport);
    const hand = dryHand({ ...this.props, reader, ...own }, dryRun);
    const { objects, outcome } = await previewPlan(plan, hand, dryRun, handlers);
    // A failure is logged where the retry is planned.
    for (const { ref, action } of objects) this.report(ref, action === 'failed' ? 'unchanged' : action);
    for (const { ref, action } of outcome.statusChanges)
      this.report(ref, action === 'configured' ? 'changed' : 'unchanged', 'status of ');
    return { ...outcome, changes: outcome.changes.map(asUndone), statusChanges: [] };
  }

  private report(ref: ObjectRef, action: string, what = ''): void {
    const id = `${what}${objectId(ref)}`;
    if (action === 'unchanged' || action === 'skipped') {
      this.reported.delete(id);
      return;
    }
    if (this.reported.get(id) === action) return;
    // What is gone is not heard of again.
    setLatest(this.reported, id, action, REPORTED_LIMIT);
    const { metrics, log, controller } = this.props;
    metrics.changes.inc({ controller, action: `would be ${action}` });
    const { kind: child, namespace, name } = ref;
    log.info({ child, namespace, name, action }, `${what}${describeRef(ref)} would be ${action}`);
  }
}
