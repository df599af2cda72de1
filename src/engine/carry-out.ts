import type { Change, ChangeSet } from '../contract/change.js';
import type { Plan, StatusStep } from '../contract/controller.js';
import type { OperatorError } from '../contract/error.js';
import { objectId, refOf } from '../contract/object.js';
import type { ObjectRef } from '../contract/object.js';
import type { Applier } from './apply.js';
import { applySteps } from './apply-steps.js';
import type { Deleter } from './deleter.js';
import type { EventRecorder } from './events.js';
import { notServed } from './installed.js';
import { holdsDeletionsBack } from './prune.js';
import type { StatusWriter } from './status.js';
import { Steps } from './steps.js';
import type { StoreReader } from './cache.js';

export interface Tools {
  readonly applier: Applier;
  /** Of this controller alone, since it paces. */
  readonly deleter: Deleter;
  readonly statusWriter: StatusWriter;
  readonly recorder: EventRecorder;
}

export interface Outcome {
  /** Of the applies and then of the deletes, whichever came first. */
  readonly changes: ChangeSet;
  /** Of the status writes. */
  readonly statusChanges: ChangeSet;
  /** Why the status can't say all that it should. */
  readonly statusError?: OperatorError;
  /** The status was left for later: what others wait for comes first. */
  readonly statusLeft?: true;
  /** The status wasn't written, since what has failed may pass with the next try. */
  readonly statusUntold?: true;
  /** Why the signal ended the plan early; the error of the first change that wasn't finished. */
  readonly givenUp?: OperatorError;
  /** Set when a request may still be under way: resolves once it isn't. */
  readonly pending?: Promise<void>;
}

/** What may be told later. */
export interface Patience {
  /** Whether a status that is behind may be left, where all has gone well. */
  readonly othersWait: () => boolean;
  /** Whether the key is taken again soon after these failures, as a rule with success: they aren't news yet. */
  readonly mayPass: (errors: readonly OperatorError[]) => boolean;
}

const NO_PATIENCE: Patience = { othersWait: () => false, mayPass: () => false };

/**
 * Carries a plan out: applies, then deletes unless an apply holds them back, then status, then events. Where the plan says so,
 * deletes come first, and neither they nor the applies wait for the others' success.
 *
 * While the API server is out of reach, or once the signal has aborted, nothing more is tried, the
 * status included: it couldn't be written either. A view that was stale is looked at again before anything is told of it.
 *
 * @param signal its reason must be an OperatorError
 */
export async function carryOut(
  plan: Plan,
  reader: StoreReader,
  tools: Tools,
  signal: AbortSignal,
  { othersWait, mayPass }: Patience = NO_PATIENCE,
): Promise<Outcome> {
  const steps = new Steps(signal);
  const changes = await changeObjects(plan, reader, tools, steps, signal);
  const failures = changes.flatMap(({ error }) => error ?? []);
  // What was put right is known in this pass alone.
  const isNews = plan.error !== undefined || changes.some(({ action }) => action === 'corrected');
  const isPassing = !isNews && failures.length > 0 && mayPass(failures);
  const isSilent = steps.ended || isPassing;
  // Both are computed before the status is written, so that an event can tell whether its news is news.
  const events = isSilent ? [] : eventsOf(plan, changes, tools);
  const statusError = isSilent ? undefined : plan.statusError?.(changes);
  const mayLeave = !plan.error && !statusError && allWell(changes) && othersWait();
  const standing = (): Plan['status'] =>
    plan.status.filter((step) => tools.statusWriter.stands(step, changes, reader));
  const due = isPassing ? [] : mayLeave ? standing() : plan.status;
  const statusLeft = !isPassing && due.length < plan.status.length;
  const statusChanges = await writeStatuses(due, async (step) =>
    steps.take(refOf(step.target), async () => tools.statusWriter.write(step, changes, reader)),
  );
  const remembers = rememberedBy(statusChanges);
  if (!steps.ended)
    for (const { regarding, props } of events)
      if (remembers(regarding)) tools.recorder.send(regarding, props);
  const { givenUp, pending } = steps;
  return {
    changes,
    statusChanges,
    ...(statusError && { statusError }),
    ...(statusLeft && { statusLeft }),
    ...(isPassing && { statusUntold: true as const }),
    ...(givenUp && { givenUp }),
    ...(pending && { pending }),
  };
}

async function changeObjects(
  plan: Plan,
  reader: StoreReader,
  { applier, deleter }: Tools,
  steps: Steps,
  signal: AbortSignal,
): Promise<ChangeSet> {
  const withheld = withholding(plan, reader);
  if (withheld) return withheld;
  const applying = async (): Promise<ChangeSet> =>
    applySteps(plan.apply, reader, applier, async (ref, step) => steps.take(ref, step));
  const deleting = async (): Promise<ChangeSet> => deleter.carryOut(plan, reader, steps, signal);
  if (plan.deleteFirst) {
    const deleted = await deleting();
    return [...(await applying()), ...deleted];
  }
  const applied = await applying();
  const skipped = plan.delete.map(({ object }) => ({ ref: refOf(object), action: 'skipped' }) as const);
  return [...applied, ...(holdsDeletionsBack(applied) ? skipped : await deleting())];
}

/** Nothing of a plan is done that names an object of which it isn't known whether there is one. */
function withholding(plan: Plan, reader: StoreReader): ChangeSet | undefined {
  const judged = [...plan.apply, ...plan.delete].map(({ object }) => ({
    ref: refOf(object),
    error: notServed(object, reader),
  }));
  if (!judged.some(({ error }) => error)) return undefined;
  return judged.map(({ ref, error }) =>
    error ? { ref, action: 'failed', error } : { ref, action: 'skipped' },
  );
}

/** A failure is to be told at once. */
function allWell(changes: ChangeSet): boolean {
  return changes.every(({ action }) => action !== 'failed' && action !== 'skipped');
}

/**
 * Whether what was told of an object is remembered in a status. While one can't be written, it would be told with every
 * try; so would what is told of objects without a status, since it may be any that remembers it.
 */
function rememberedBy(statusChanges: ChangeSet): (regarding: ObjectRef) => boolean {
  if (statusChanges.every(({ action }) => action !== 'failed')) return () => true;
  const written = statusChanges.filter(({ action }) => action !== 'failed');
  const targets = new Set(written.map(({ ref }) => objectId(ref)));
  return (regarding) => targets.has(objectId(regarding));
}

function eventsOf(
  plan: Plan,
  changes: ChangeSet,
  { recorder }: Tools,
): {
  regarding: Plan['events'][number]['regarding'];
  props: NonNullable<ReturnType<EventRecorder['compute']>>;
}[] {
  return plan.events.flatMap(({ regarding, event }) => {
    const props = recorder.compute(regarding, () => event(changes));
    return props ? [{ regarding, props }] : [];
  });
}

/** Half of what may be written at once by all plans together. */
const AT_ONCE = 16;

/**
 * Writes the statuses of a plan several at a time; those of one object in their order.
 * @param write must not reject
 * @returns what became of each, in the order of the steps
 */
async function writeStatuses(
  steps: readonly StatusStep[],
  write: (step: StatusStep) => Promise<Change>,
): Promise<Change[]> {
  const changes: Change[] = [];
  const lines = byTarget(steps);
  const work = async (): Promise<void> => {
    for (let line = lines.shift(); line; line = lines.shift())
      for (const index of line) changes[index] = await write(steps[index] as StatusStep);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, lines.length) }, work));
  return changes;
}

/** Indexes of the steps, by what they are about. */
function byTarget(steps: readonly StatusStep[]): number[][] {
  const lines = new Map<string, number[]>();
  for (const [index, { target }] of steps.entries()) {
    const id = objectId(target);
    const line = lines.get(id);
    if (line) line.push(index);
    else lines.set(id, [index]);
  }
  return [...lines.values()];
}
