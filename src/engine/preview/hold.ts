import { PENDING_REASONS } from '../../contract/change.js';
import type { Change, Drift, PendingChange } from '../../contract/change.js';
import { compare, describeRef, keyOf, objectId, refOf } from '../../contract/object.js';
import { HOLD } from '../../contract/plan.js';
import type { HoldStep } from '../../contract/plan.js';
import type { Transport } from '../../client/transport.js';
import { isAppliedBy } from '../../values/projections.js';
import { canonicalJson } from '../../values/json.js';
import { setLatest } from '../../values/latest.js';
import { Metrics } from '../../telemetry/metrics.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import { handlersOf } from '../plan/interpret.js';
import { DryRun } from './dry-run.js';
import { fieldChanges, redactedPair } from './fields.js';
import { dryHand, previewPlan } from './preview.js';
import type { ObjectPreview } from './preview.js';
import { rollsPods } from './rollout.js';

/** Number of fields of a change that are named. */
const MAX_FIELDS = 5;
/** Number of custom resources whose drift is remembered; one that is forgotten is reported once more. */
const REPORTED_LIMIT = 10_000;

/**
 * Returns the handler of steps that are held.
 *
 * **Guarantees.** Nothing is written. What would change is found out where the step asks for it, by dry runs of what differs: a step that would
 * change nothing costs no request. Fields that another writer has changed meanwhile, as far as a watch has shown it, are reported as drift.
 */
export function holdOn(transport: Transport): StepHandler<HoldStep> {
  const handlers = handlersOf();
  // Never scraped: what is counted there are writes.
  const metrics = new Metrics();
  /** Drift that was reported, by custom resource. */
  const reported = new Map<string, string>();
  return {
    do: HOLD,

    async carryOut({ object, steps, isNews }, hand) {
      const drift = driftSeen(steps, hand);
      const ref = refOf(object);
      const said = drift && canonicalJson(drift);
      const isKnown = said !== undefined && reported.get(objectId(ref)) === said;
      if (said === undefined) reported.delete(objectId(ref));
      else setLatest(reported, objectId(ref), said, REPORTED_LIMIT);
      const found: Change = drift
        ? { ref, action: 'drifted', drift, ...(isKnown && { isKnown }) }
        : { ref, action: 'unchanged' };
      if (!isNews) return found;
      const dryRun = new DryRun(transport);
      const dry = dryHand({ ...hand, metrics }, dryRun);
      const plan = { steps, conclude: () => ({ status: [], events: [] }) };
      const { objects } = await previewPlan(plan, dry, dryRun, handlers, { waits: false, status: false });
      const pending = objects.flatMap((one) => pendingOf(one) ?? []);
      return { ...found, pending: pending.sort((a, b) => rank(a) - rank(b)) };
    },

    preview: ({ object }): Promise<Change> => Promise.resolve({ ref: refOf(object), action: 'unchanged' }),
  };
}

function rank({ reason }: PendingChange): number {
  return PENDING_REASONS.indexOf(reason);
}

function pendingOf(object: ObjectPreview): PendingChange | undefined {
  const { ref, action, error } = object;
  const name = describeRef(ref);
  if (error) {
    const isUnsure = error.retry !== 'onChange';
    const text = `${name} can't be ${isUnsure ? 'tried' : 'changed'}: ${error.reason}`;
    return { reason: 'Refused', text, ...(isUnsure && { isUnsure }) };
  }
  if (action === 'created') return { reason: 'Creates', text: `${name} is created` };
  if (action === 'deleted') return { reason: 'Deletes', text: `${name} is deleted` };
  if (action === 'recreated') return { reason: 'Recreates', text: `${name} is deleted and created again` };
  if (action !== 'changed') return undefined;
  const { before, after } = redactedPair(object);
  const paths = after ? fieldChanges(before, after).map(({ path }) => path) : [];
  const rolling = paths.filter((path) => rollsPods(ref, path));
  const named = rolling.length > 0 ? rolling : paths;
  const more = named.length - MAX_FIELDS;
  const list = `${named.slice(0, MAX_FIELDS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return rolling.length > 0
    ? { reason: 'RollsPods', text: `${name} rolls its pods: ${list}` }
    : { reason: 'Changes', text: `${name} changes${list && `: ${list}`}` };
}

/** Returns what other writers have changed of the objects of held steps. */
function driftSeen(steps: HoldStep['steps'], { reader, drift }: Hand): Drift | undefined {
  const managers = new Set<string>();
  const fields: string[] = [];
  for (const step of steps) {
    if (step.do !== 'own' || (step.drift ?? drift) === 'ignore' || reader.notServed(step.object)) continue;
    const known = reader.store(step.object).get(keyOf(step.object));
    if (!known?.drifted) continue;
    // Which fields were ours isn't known any more: the latest writer is the one that has changed them.
    const [latest] = known.drifted
      .filter((entry) => !entry.subresource && !isAppliedBy(step.fieldManager, entry))
      .sort((a, b) => compare(b.time ?? '', a.time ?? ''));
    if (latest?.manager) managers.add(latest.manager);
    fields.push(describeRef(step.object));
  }
  return fields.length > 0 ? { managers: [...managers], fields } : undefined;
}
