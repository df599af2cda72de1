import { PENDING_REASONS } from '../../contract/change.js';
import type { Change, Drift, PendingChange } from '../../contract/change.js';
import { compare, describeRef, keyOf, objectId, refOf } from '../../contract/object.js';
import type { HoldStep } from '../../contract/plan.js';
import { isAppliedBy } from '../../values/projections.js';
import { canonicalJson } from '../../values/json.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import { handlersOf } from '../plan/interpret.js';
import { isSameApply } from '../steps/memory.js';
import { DryRun } from './dry-run.js';
import { fieldChanges, redactedPair } from './fields.js';
import { dryHand, previewPlan } from './preview.js';
import type { ObjectPreview } from './preview.js';
import { rollsPods } from './rollout.js';

/** Number of fields of a change that are named. */
const MAX_FIELDS = 5;

/**
 * Handles steps that are held.
 *
 * **Guarantees.** Nothing is written. What would change is found out where the step asks for it, by dry runs of what differs: a step that would
 * change nothing costs no request. Fields that another writer has changed meanwhile, as far as a watch has shown it, are reported as drift.
 */
export const hold: StepHandler<HoldStep> = {
  do: 'reconstruct/hold',

  async carryOut({ object, steps, isNews }, hand) {
    const found = { ref: refOf(object), ...driftOf(object, steps, hand) };
    if (!isNews) return found;
    const dryRun = new DryRun(hand.api.transport);
    const plan = { steps, conclude: () => ({ status: [], events: [] }) };
    const options = { waits: false, status: false };
    const { objects } = await previewPlan(plan, dryHand(hand, dryRun), dryRun, handlersOf(), options);
    const pending = objects.flatMap((one) => pendingOf(one) ?? []);
    const rank = ({ reason }: PendingChange): number => PENDING_REASONS.indexOf(reason);
    return { ...found, pending: pending.sort((a, b) => rank(a) - rank(b)) };
  },

  preview: ({ object }): Promise<Change> => Promise.resolve({ ref: refOf(object), action: 'unchanged' }),
};

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
function driftOf(
  cr: HoldStep['object'],
  steps: HoldStep['steps'],
  { reader, drift: usual, memory }: Hand,
): Pick<Change, 'action' | 'drift' | 'isKnown'> {
  const managers = new Set<string>();
  const fields: string[] = [];
  for (const step of steps) {
    if (step.do !== 'own' || (step.drift ?? usual) === 'ignore' || reader.notServed(step.object)) continue;
    const known = reader.store(step.object).get(keyOf(step.object));
    if (!known?.drifted) continue;
    // Which fields were ours isn't known any more: the latest writer is the one that has changed them.
    const [latest] = known.drifted
      .filter((entry) => !entry.subresource && !isAppliedBy(step.fieldManager, entry))
      .sort((a, b) => compare(b.time ?? '', a.time ?? ''));
    if (latest?.manager) managers.add(latest.manager);
    fields.push(describeRef(step.object));
  }
  const id = `hold ${objectId(cr)}`;
  const before = memory.left.get(id)?.seen;
  memory.left.delete(id);
  if (fields.length === 0) return { action: 'unchanged' };
  const drift: Drift = { managers: [...managers], fields };
  const seen = { hash: canonicalJson(drift), uid: cr.metadata.uid, owned: undefined };
  memory.left.set(id, { seen, drift });
  return { action: 'drifted', drift, isKnown: isSameApply(before, seen) };
}
