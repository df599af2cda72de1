import type { Change, ChangeSet } from '../../contract/change.js';
import type { ApplyStep, EventProps, EventStep, Plan, StatusStep } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { objectId, refOf } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import { describeThrown } from '../../values/origin.js';
import { classify } from '../../client/api-error.js';
import { fromPlan } from '../steps/apply.js';
import type { Applier } from '../steps/apply.js';
import { holdsDeletionsBack } from '../steps/delete.js';
import type { StepRunner, Sweeper } from '../steps/delete.js';
import type { Api } from '../../client/api.js';
import type { EventRecorder } from '../loop/events.js';
import { notServed } from '../watch/installed.js';
import { TwinGuard } from '../steps/ownership.js';
import type { StatusWriter } from '../steps/status.js';
import type { StoreReader } from '../watch/cache.js';

/** Parts that carry a plan out. */
export interface Tools {
  readonly api: Api;
  readonly applier: Applier;
  /** Sweeper of this controller alone, since it paces. */
  readonly sweeper: Sweeper;
  readonly statusWriter: StatusWriter;
  readonly recorder: EventRecorder;
}

export interface PlanOutcome {
  /** Results of the applies, the deletes and the sweep, in the plan's order. */
  readonly changes: ChangeSet;
  /** Results of the status writes. */
  readonly statusChanges: ChangeSet;
  /** Error for which the status can't say all that it should. */
  readonly statusError?: OperatorError;
  /** The status was left for later: `busy`, children come first; `passing`, the next try may succeed. */
  readonly statusLeft?: 'busy' | 'passing';
  /** Error of the first change that wasn't finished, where the signal ended the plan early. */
  readonly givenUp?: OperatorError;
  /** Set when a request may still be under way: resolves once it isn't. */
  readonly pending?: Promise<void>;
}

/** When a status may be written later. */
export interface StatusPolicy {
  /** Reports whether a status that is behind may be left, where all has gone well. */
  mayDeferStatus(key: string): boolean;
  /** Reports whether the key is taken again soon after these failures, usually with success: they aren't news yet. */
  isTransient(key: string, errors: readonly OperatorError[]): boolean;
}

/**
 * Carries a plan out: applies, then deletes unless an apply holds them back, then status, then events. Where the plan says so,
 * deletes come first, and neither they nor the applies wait for the others' success.
 *
 * Once the signal has aborted, nothing more is tried, the status included. A view that was stale is looked at again before
 * anything of it is reported.
 *
 * @param signal its reason must be an OperatorError
 */
export async function carryOut(
  plan: Plan,
  reader: StoreReader,
  tools: Tools,
  signal: AbortSignal,
  policy?: StatusPolicy,
): Promise<PlanOutcome> {
  const { statusWriter, recorder } = tools;
  const steps = new Steps(signal);
  const changes = await changeObjects(plan, reader, tools, steps, signal);
  const failures = changes.flatMap(({ error }) => error ?? []);
  const key = reader.writer.key ?? '';
  // Only this pass knows of a correction.
  const isReported = (): boolean => !!plan.error || changes.some(({ action }) => action === 'corrected');
  const isPassing = failures.length > 0 && !isReported() && policy?.isTransient(key, failures) === true;
  const isSilent = signal.aborted || isPassing;
  // Both are computed before the status is written, so that an event sees the old status.
  const events = isSilent ? [] : eventsOf(plan, changes, recorder);
  const statusError = isSilent ? undefined : statusErrorOf(plan, changes);
  // A failure is reported at once. Events are deduplicated by the status, so a status with an event isn't left.
  const mayLeave =
    policy?.mayDeferStatus(key) === true &&
    events.length === 0 &&
    !plan.error &&
    !statusError &&
    changes.every(({ action }) => action !== 'failed' && action !== 'skipped');
  let toWrite = isPassing ? [] : plan.status;
  if (mayLeave) toWrite = toWrite.filter((step) => statusWriter.isCurrent(step, changes, reader));
  const isLeft = !isPassing && toWrite.length < plan.status.length;
  const statusChanges = await writeStatuses(toWrite, async (step) =>
    steps.run(refOf(step.target), async () => statusWriter.write(step, changes, reader)),
  );
  if (!signal.aborted && events.length > 0) sendEvents(events, statusChanges, recorder);
  const { givenUp, pending } = steps;
  return {
    changes,
    statusChanges,
    ...(statusError && { statusError }),
    ...((isPassing || isLeft) && { statusLeft: isPassing ? 'passing' : 'busy' }),
    ...(givenUp && { givenUp }),
    ...(pending && { pending }),
  };
}

/** Maximum number of objects that one pass prunes; then it is another key's turn. */
const MAX_DELETIONS = 100;

async function changeObjects(
  plan: Plan,
  reader: StoreReader,
  { applier, sweeper }: Tools,
  steps: Steps,
  signal: AbortSignal,
): Promise<ChangeSet> {
  const withheld = withholding(plan, reader);
  if (withheld) return withheld;
  const deleting = async (): Promise<Change[]> => {
    const changes: Change[] = [];
    let deleted = 0;
    for (const { object } of plan.delete) {
      const ref = refOf(object);
      if (deleted >= MAX_DELETIONS) changes.push({ ref, action: 'skipped', skippedFor: 'paced' });
      else changes.push(await steps.run(ref, async () => applier.prune(object, reader)));
      if (changes.at(-1)?.action === 'deleted') deleted++;
    }
    if (plan.sweep) changes.push(...(await sweeper.carryOut(plan.sweep, reader, steps, signal)));
    return changes;
  };
  const deleted = plan.deleteFirst ? await deleting() : undefined;
  const applied = await applySteps(plan.apply, reader, applier, steps);
  if (deleted) return [...applied, ...deleted];
  if (!holdsDeletionsBack(applied, reader)) return [...applied, ...(await deleting())];
  const kept = [...plan.delete, ...(plan.sweep?.steps ?? [])];
  return [...applied, ...kept.map(({ object }) => ({ ref: refOf(object), action: 'skipped' }) as const)];
}

/** Nothing of a plan is done that names an object of which it isn't known whether there is one. */
function withholding(plan: Plan, reader: StoreReader): ChangeSet | undefined {
  const steps = [...plan.apply, ...plan.delete, ...(plan.sweep?.steps ?? [])];
  if (!steps.some(({ object }) => notServed(object, reader))) return undefined;
  return steps.map(({ object }) => {
    const error = notServed(object, reader);
    return { ref: refOf(object), ...(error ? { action: 'failed', error } : { action: 'skipped' }) };
  });
}

/** Applies what a plan says, one step after another. */
export async function applySteps(
  planned: readonly ApplyStep[],
  reader: StoreReader,
  applier: Applier,
  steps?: StepRunner,
): Promise<ChangeSet> {
  const applied: Change[] = [];
  // Applied without them, an object would lose the fields that were to be handed over.
  const held = new Set<string>();
  const twin = new TwinGuard(planned, reader);
  for (const step of planned) {
    const ref = refOf(step.object);
    const apply = async (): Promise<Change> => applyRevised(step, ref, applied, applier, reader);
    const isHeld = held.has(objectId(ref)) || twin.holds(step);
    const waitsFor = isHeld ? undefined : step.waitsFor?.();
    const change: Change =
      isHeld || waitsFor
        ? { ref, action: 'skipped', ...(waitsFor && { waitsFor }) }
        : await (steps ? steps.run(ref, apply) : apply());
    if (change.action === 'failed') {
      twin.failed(step);
      if (step.handOver) held.add(objectId(ref));
    }
    applied.push(change);
  }
  return applied;
}

/** Applies a step in the light of those before it, or leaves it out. */
async function applyRevised(
  step: ApplyStep,
  ref: ObjectRef,
  before: ChangeSet,
  applier: Applier,
  reader: StoreReader,
): Promise<Change> {
  const { owner, shared } = step;
  if (owner || !shared?.revise) return applier.apply(step, reader);
  try {
    const object = fromPlan(ref, () => shared.revise?.(before));
    return object ? await applier.apply({ ...step, object }, reader) : { ref, action: 'skipped' };
  } catch (error) {
    return { ref, action: 'failed', error: classify(error, '') };
  }
}

function statusErrorOf(plan: Plan, changes: ChangeSet): OperatorError | undefined {
  try {
    return plan.statusError?.(changes);
  } catch (cause) {
    const message = `statusError of the plan threw: ${describeThrown(cause)}`;
    return new OperatorError({ reason: 'StatusFailed', message, retry: 'backoff', isBug: true, cause });
  }
}

interface ReadyEvent {
  readonly regarding: EventStep['regarding'];
  readonly props: EventProps;
}

function eventsOf(plan: Plan, changes: ChangeSet, recorder: EventRecorder): ReadyEvent[] {
  return plan.events.flatMap(({ regarding, event }) => {
    const props = recorder.compute(regarding, () => event(changes));
    return props ? [{ regarding, props }] : [];
  });
}

/**
 * Sends events about objects whose status remembers them. While a status can't be written, they would be sent with every
 * try; so would those about objects without a status, since it may be any that remembers them.
 */
function sendEvents(events: readonly ReadyEvent[], statusChanges: ChangeSet, recorder: EventRecorder): void {
  const written = statusChanges.filter(({ action }) => action !== 'failed');
  const targets = new Set(written.map(({ ref }) => objectId(ref)));
  for (const { regarding, props } of events)
    if (written.length === statusChanges.length || targets.has(objectId(regarding)))
      recorder.send(regarding, props);
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
  const [only] = steps;
  if (only && steps.length === 1) return [await write(only)];
  const changes: Change[] = [];
  const lines = new Map<string, number[]>();
  for (const [index, { target }] of steps.entries()) {
    const line = lines.get(objectId(target));
    if (line) line.push(index);
    else lines.set(objectId(target), [index]);
  }
  const waiting = [...lines.values()];
  const work = async (): Promise<void> => {
    for (let line = waiting.shift(); line; line = waiting.shift())
      for (const index of line) changes[index] = await write(steps[index] as StatusStep);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, lines.size) }, work));
  return changes;
}

/**
 * Runs the steps of a plan until the signal aborts. A step without an answer doesn't stop the plan: in an outage the gate
 * fails the others unsent, else they may succeed.
 *
 * **Guarantees.** Once the signal has aborted, no step is begun. A step that is under way then isn't ended, since its
 * request may take effect all the same; only the wait for it is. Never rejects unless a step does.
 */
class Steps {
  /** Error where the signal ended the plan before its last step. */
  givenUp: OperatorError | undefined;
  /** Resolves once the steps that aren't waited for any more have ended. */
  pending: Promise<void> | undefined;
  private aborted: Promise<undefined> | undefined;

  constructor(private readonly signal: AbortSignal) {}

  /** Returns what became of one object. Skipped once the plan was given up. */
  async run(ref: ObjectRef, step: () => Promise<Change>): Promise<Change> {
    if (this.givenUp) return { ref, action: 'skipped' };
    const change = this.signal.aborted ? undefined : await this.wait(step());
    if (change) return change;
    this.givenUp = this.signal.reason as OperatorError;
    return { ref, action: 'failed', error: this.givenUp };
  }

  /** Returns the outcome of the step, or nothing if the signal aborts before. */
  private async wait(step: Promise<Change>): Promise<Change | undefined> {
    this.aborted ??= new Promise((resolve) => {
      this.signal.addEventListener('abort', () => {
        resolve(undefined);
      });
    });
    const change = await Promise.race([step, this.aborted]);
    if (!change) this.pending = Promise.allSettled([this.pending, step]).then(() => undefined);
    return change;
  }
}
