import type { Change, ChangeSet, Wait } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { controllerOf, describeRef, keyOf, objectId, objectKey, refOf } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import { describeThrown } from '../../values/origin.js';
import type {
  Conclusion,
  ForeignHandler,
  ForeignStep,
  OwnStep,
  Plan,
  StatusWrite,
} from '../../contract/plan.js';
import { ownerUidOf } from '../../values/projections.js';
import { presentReadiness, waitOf } from '../../values/readiness.js';
import { classify } from '../../client/api-error.js';
import { collect } from '../steps/collect.js';
import { contribute } from '../steps/contribute.js';
import { finalizer } from '../steps/finalizer.js';
import { generate } from '../steps/generate.js';
import { handOver } from '../steps/hand-over.js';
import { own } from '../steps/own.js';
import { prune } from '../steps/prune.js';
import { remember } from '../steps/remember.js';
import { isStatusCurrent, previewStatus, writeStatus } from '../steps/apply.js';
import type { StoreReader } from '../watch/reader.js';
import { WOULD_DELETE } from './hand.js';
import type { Hand, HandledStep, StepHandler } from './hand.js';

/** Handlers by the names of their steps. */
export type Handlers = ReadonlyMap<string, StepHandler>;

const BUILT_IN: Readonly<Record<Exclude<HandledStep, ForeignStep>['do'], StepHandler>> = {
  own,
  handOver,
  generate,
  prune,
  collect,
  contribute,
  remember,
  finalizer,
};

/**
 * Returns the engine's handlers, and those that a controller brings.
 * @throws TypeError where one of a controller's can't say what it would do
 */
export function handlersOf(foreign: readonly ForeignHandler[] = []): Handlers {
  const handlers = new Map<string, StepHandler>(Object.entries(BUILT_IN));
  for (const handler of foreign as readonly StepHandler[]) {
    if (!handler.preview)
      throw new TypeError(`the handler of ${handler.do} needs a preview, for "diff" and "--observe-only"`);
    handlers.set(handler.do, handler);
  }
  return handlers;
}

/** Rules by which a status may be deferred. */
export interface StatusPolicy {
  /** Reports whether a status that is behind may be deferred, where all has gone well. */
  mayDeferStatus(key: string): boolean;
  /** Reports whether the key is taken again soon after these failures, usually with success: they aren't news yet. */
  isTransient(key: string, errors: readonly OperatorError[]): boolean;
}

export interface InterpretOptions {
  /** Whether a step that waits is left; else it is tried, and says what it would wait for. @default true */
  readonly waits?: boolean;
  /** Whether statuses and events follow: always, never, or by a policy. @default true */
  readonly status?: boolean | StatusPolicy;
  /** Whether the conclusion of a dry hand takes for done what would be done, so that another round can build on it. @default false */
  readonly pretends?: boolean;
}

/** Outcome of a plan. */
export interface PlanOutcome {
  /** Results of the steps, in the plan's order; a barrier has none. */
  readonly changes: ChangeSet;
  /** Results of the status writes. */
  readonly statusChanges: ChangeSet;
  readonly conclusion: Conclusion;
  /** Error for which the status can't say all that it should, where it is reported. */
  readonly error?: OperatorError;
  /** Cause for which the status was deferred: `busy`, children come first; `passing`, the next try may succeed. */
  readonly statusDeferred?: 'busy' | 'passing';
  /** Error of the first change that wasn't finished, where the signal ended the plan early. */
  readonly givenUp?: OperatorError;
  /** Set when a request may still be under way: resolves once it isn't. */
  readonly pending?: Promise<void>;
}

/**
 * Carries a plan out: its steps, then its conclusion, then status and events. `run`, `--observe-only`, `diff` and `apply` differ in the
 * hand, and in the options.
 *
 * **Guarantees.** Nothing of a plan is done that names an object of which it isn't known whether there is one. Once the signal has
 * aborted, nothing more is tried, the status included. A view that was stale is looked at again before anything of it is
 * reported. Only this pass knows of a correction, so that is reported at once.
 */
export async function interpret(
  plan: Plan,
  hand: Hand,
  handlers: Handlers,
  { waits = true, status = true, pretends = false }: InterpretOptions = {},
): Promise<PlanOutcome> {
  const { signal, reader } = hand;
  const turns = new Turns(signal);
  const changes = withheld(plan, reader) ?? (await carryOut(plan, hand, handlers, turns, waits));
  const conclusion = concluded(plan, hand.isDry && !pretends ? changes.map(asUndone) : changes);
  if (status === false) return { changes, statusChanges: [], conclusion, ...turns.ended };
  const policy = status === true ? undefined : status;
  const failures = changes.flatMap(({ error }) => error ?? []);
  const key = hand.writer.key ?? '';
  const isNews = plan.error !== undefined || changes.some(({ action }) => action === 'corrected');
  const isPassing = failures.length > 0 && !isNews && policy?.isTransient(key, failures) === true;
  const isSilent = signal.aborted || isPassing;
  const events = isSilent ? [] : conclusion.events;
  const error = isSilent ? undefined : conclusion.error;
  // A failure is reported at once. Events are deduplicated by the status, so a status with an event isn't deferred.
  const mayDefer =
    policy?.mayDeferStatus(key) === true &&
    events.length === 0 &&
    !isNews &&
    !error &&
    changes.every(({ action }) => action !== 'failed' && action !== 'skipped');
  let writes = isPassing ? [] : conclusion.status;
  if (mayDefer) writes = writes.filter((write) => isCurrent(write, hand));
  const isDeferred = writes.length < conclusion.status.length;
  const statusChanges = await writeStatuses(writes, async (write) =>
    turns.take(refOf(write.target), async () => (hand.isDry ? previewStatus : writeStatus)(write, hand)),
  );
  if (!signal.aborted && events.length > 0) sendEvents(events, statusChanges, hand);
  return {
    ...{ changes, statusChanges, conclusion },
    ...(error && { error }),
    ...((isPassing || isDeferred) && { statusDeferred: isPassing ? 'passing' : 'busy' }),
    ...turns.ended,
  };
}

/** Returns the outcome of a plan that names an object of which it isn't known whether there is one: nothing is done. */
function withheld({ steps }: Plan, reader: StoreReader): ChangeSet | undefined {
  const changes: Change[] = [];
  let isWithheld = false;
  for (const step of steps) {
    if (step.do === 'barrier') continue;
    const error = reader.notServed(step.object);
    const ref = refOf(step.object);
    changes.push(error ? { ref, action: 'failed', error } : { ref, action: 'skipped' });
    isWithheld ||= error !== undefined;
  }
  return isWithheld ? changes : undefined;
}

async function carryOut(
  { steps }: Plan,
  hand: Hand,
  handlers: Handlers,
  turns: Turns,
  waits: boolean,
): Promise<ChangeSet> {
  const changes: Change[] = [];
  // Applied without them, an object would lose the fields that were to be handed over.
  const notHandedOver = new Set<string>();
  let isHeld = false;
  for (const step of steps) {
    if (step.do === 'barrier') {
      isHeld ||= holdsBack(changes, hand.reader, waits);
      continue;
    }
    const ref = refOf(step.object);
    const isSkipped = isHeld || notHandedOver.has(objectId(ref)) || isTaken(step, changes, hand.reader);
    const waitsFor = !isSkipped && step.do === 'own' ? dependencyOf(step, hand.reader) : undefined;
    const change =
      isSkipped || (waitsFor && waits)
        ? ({ ref, action: 'skipped' } as const)
        : await turns.take(ref, async () => tried(step, ref, hand, handlers, changes));
    if (change.action === 'failed' && step.do === 'handOver') notHandedOver.add(objectId(ref));
    changes.push(waitsFor ? { ...change, waitsFor } : change);
  }
  return changes;
}

async function tried(
  step: HandledStep,
  ref: ObjectRef,
  hand: Hand,
  handlers: Handlers,
  before: ChangeSet,
): Promise<Change> {
  const handler = handlers.get(step.do);
  if (!handler) throw new TypeError(`no handler of ${step.do} is registered`);
  try {
    return hand.isDry && handler.preview
      ? await handler.preview(step, hand, before)
      : await handler.carryOut(step, hand, before);
  } catch (thrown) {
    const error = classify(thrown, `Apply ${describeRef(ref)}`);
    return error.reason === WOULD_DELETE ? { ref, action: 'recreated' } : { ref, action: 'failed', error };
  }
}

/**
 * Reports whether what is behind a barrier has to stay for now: a step has failed, waits, or has met a change that it wasn't
 * planned for, and might be of what takes its place, or stops using it. A contested object that is there was applied as it is
 * wanted, and differs by what another writer does to it since.
 */
function holdsBack(before: ChangeSet, reader: StoreReader, waits: boolean): boolean {
  const isThere = (ref: ObjectRef): boolean =>
    reader.store(ref).get(objectKey(ref.namespace, ref.name)) !== undefined;
  return before.some(
    ({ ref, action, error, skippedFor, waitsFor }) =>
      (waits && waitsFor !== undefined) ||
      skippedFor === 'changed' ||
      (action === 'failed' && !(error?.reason === 'FieldContested' && isThere(ref))),
  );
}

/**
 * Reports whether a step would create an object beside one that was just found to be of a namesake of its owner, in another API
 * group: of two that are created at once, one has all objects then, and the other none.
 */
function isTaken(step: HandledStep, before: ChangeSet, reader: StoreReader): boolean {
  if (step.do !== 'own' || reader.get(step.object, keyOf(step.object)) !== undefined) return false;
  return before.some(({ ref, error }) => {
    if (error?.reason !== 'OwnershipConflict') return false;
    const found = reader.get(ref, objectKey(ref.namespace, ref.name));
    const controller = found && controllerOf(found);
    return controller?.kind === step.owner.kind && controller.name === step.owner.name;
  });
}

/** Returns what a step waits for; nothing once that is ready, or the object is as the step wants it. */
function dependencyOf({ object, owner, waitsFor = [] }: OwnStep, reader: StoreReader): Wait | undefined {
  if (waitsFor.length === 0) return undefined;
  return waitOf(object, waitsFor, (wanted) => {
    const live = reader.get(wanted, keyOf(wanted));
    return live && ownerUidOf(live) === owner.uid ? presentReadiness(wanted, live) : undefined;
  });
}

/** Returns what became of an object in truth, where a dry hand says what would. */
export function asUndone(change: Change): Change {
  const { ref, action } = change;
  return action === 'drifted' || action === 'failed' ? change : { ref, action: 'unchanged' };
}

/** Reports whether a status need not be deferred: it is there already, or can't be compared, which its write reports. */
function isCurrent(write: StatusWrite, hand: Hand): boolean {
  try {
    return isStatusCurrent(write, hand);
  } catch {
    return true;
  }
}

/** Calls the conclusion of a plan. What it throws is a bug of the kind. */
function concluded(plan: Plan, changes: ChangeSet): Conclusion {
  try {
    return plan.conclude(changes);
  } catch (cause) {
    const message = `The status can't be computed: ${describeThrown(cause)}`;
    const error = new OperatorError({
      reason: 'StatusFailed',
      message,
      retry: 'backoff',
      isBug: true,
      cause,
    });
    return { status: [], events: [], error };
  }
}

/**
 * Sends events about objects whose status remembers them. While a status can't be written, they would be sent with every
 * try; so would those about objects without a status, since it may be any that remembers them.
 */
function sendEvents(events: Conclusion['events'], statusChanges: ChangeSet, hand: Hand): void {
  const written = statusChanges.filter(({ action }) => action !== 'failed');
  const targets = new Set(written.map(({ ref }) => objectId(ref)));
  for (const { regarding, event } of events)
    if (written.length === statusChanges.length || targets.has(objectId(regarding)))
      hand.events.send(regarding, event);
}

/** Number of statuses that are written at once: half of what may be written by all plans together. */
const STATUSES_AT_ONCE = 16;

/**
 * Writes the statuses of a plan several at a time; those of one object in their order.
 * @param write must not reject
 * @returns what became of each, in the order of the plan
 */
async function writeStatuses(
  writes: readonly StatusWrite[],
  write: (one: StatusWrite) => Promise<Change>,
): Promise<Change[]> {
  const [only] = writes;
  if (only && writes.length === 1) return [await write(only)];
  const changes: Change[] = [];
  const lines = Map.groupBy(writes.keys(), (index) => objectId((writes[index] as StatusWrite).target));
  const waiting = [...lines.values()];
  const work = async (): Promise<void> => {
    for (let line = waiting.shift(); line; line = waiting.shift())
      for (const index of line) changes[index] = await write(writes[index] as StatusWrite);
  };
  await Promise.all(Array.from({ length: Math.min(STATUSES_AT_ONCE, lines.size) }, work));
  return changes;
}

/**
 * Gives the steps of a plan their turns until the signal aborts. A step without an answer doesn't stop the plan: in an outage the
 * gate fails the others unsent, else they may succeed.
 *
 * **Guarantees.** Once the signal has aborted, no step is begun. A step that is under way then isn't ended, since its
 * request may take effect all the same; only the wait for it is. Never rejects unless a step does.
 */
class Turns {
  /** Error for which the plan was given up; and what is still under way, which resolves once it has ended. */
  readonly ended: { givenUp?: OperatorError; pending?: Promise<void> } = {};
  private aborted: Promise<undefined> | undefined;

  constructor(private readonly signal: AbortSignal) {}

  /** Returns what became of one object. Skipped once the plan was given up. */
  async take(ref: ObjectRef, step: () => Promise<Change>): Promise<Change> {
    const { signal, ended } = this;
    if (ended.givenUp) return { ref, action: 'skipped' };
    if (!signal.aborted) {
      this.aborted ??= new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          resolve(undefined);
        });
      });
      const begun = step();
      const change = await Promise.race([begun, this.aborted]);
      if (change) return change;
      ended.pending = Promise.allSettled([ended.pending, begun]).then(() => undefined);
    }
    ended.givenUp = signal.reason as OperatorError;
    return { ref, action: 'failed', error: ended.givenUp };
  }
}
