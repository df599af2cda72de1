import type { Change } from '../../contract/change.js';
import type { ApplyStep, Plan } from '../../contract/controller.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import { Metrics } from '../../telemetry/metrics.js';
import type { Logger } from '../../telemetry/logger.js';
import { Api } from '../../client/api.js';
import { Applier } from '../steps/apply.js';
import type { ApplierProps } from '../steps/apply.js';
import { setLatest } from '../steps/apply-state.js';
import type { StoreReader } from '../watch/cache.js';
import { applySteps } from '../plan/carry-out.js';
import type { PlanOutcome } from '../plan/carry-out.js';
import { holdsDeletionsBack } from '../steps/delete.js';
import { StatusWriter } from '../steps/status.js';
import type { Transport } from '../../client/transport.js';
import { DryRun, WOULD_DELETE } from './dry-run.js';
import { HandedOver, previewOf } from './preview.js';

export interface ObserverProps extends Pick<ApplierProps, 'clock' | 'lastApplies' | 'metrics' | 'drift'> {
  readonly transport: Transport;
  readonly log: Logger;
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
  /** Metrics of dry runs, never scraped: what is counted there are writes. */
  private readonly dryMetrics = new Metrics();
  /** Changes that would be made, by object. */
  private readonly reported = new Map<string, string>();

  constructor(private readonly props: ObserverProps) {}

  async observe(plan: Plan, live: StoreReader): Promise<PlanOutcome> {
    const reader = live.forDryRuns();
    const { transport, clock, lastApplies, drift } = this.props;
    const dryRun = new DryRun(transport);
    const api = new Api(dryRun);
    const applier = new Applier({
      ...{ api, clock, lastApplies, metrics: this.dryMetrics },
      ...(drift && { drift }),
    });
    const handed = new HandedOver(plan.apply);
    const steps = plan.apply.filter(({ handOver }) => !handOver);
    const tried = steps.map((step) => ({ ...step, object: handed.without(step.object) }));
    const applied = await applySteps(tried, reader, applier);
    for (const [index, change] of applied.entries()) {
      const { object } = steps[index] as ApplyStep;
      const { action } = previewOf(
        change,
        steps[index] as ApplyStep,
        handed,
        dryRun.tried.get(objectId(object)),
      );
      // A failure is logged where the retry is planned.
      this.report(change.ref, action === 'failed' ? 'unchanged' : action);
    }
    const failures = applied.filter(({ error }) => error?.reason !== WOULD_DELETE);
    const isHeld = !plan.deleteFirst && holdsDeletionsBack(failures, reader);
    const deleted = isHeld ? [] : [...plan.delete, ...(plan.sweep?.steps ?? [])];
    for (const { object } of deleted) this.report(refOf(object), 'deleted');
    const changes = applied.map((change): Change => {
      const { ref, action, error } = change;
      const isKept = action === 'drifted' || (error && error.reason !== WOULD_DELETE);
      return isKept ? change : { ref, action: 'unchanged' };
    });
    const statusWriter = new StatusWriter(api, lastApplies);
    for (const step of plan.status)
      this.report(
        refOf(step.target),
        statusWriter.isCurrent(step, changes, reader) ? 'unchanged' : 'changed',
        'status of ',
      );
    return { changes, statusChanges: [] };
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
