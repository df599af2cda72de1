import type { Change, ChangeSet } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { controllerOf, describeRef, objectId, objectKey, refOf } from '../contract/object.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import type { Applier } from './apply.js';
import { isTwinOf } from './ownership.js';
import type { StoreReader } from './cache.js';

/** How one step is taken; it may be skipped, once going on is of no use. */
export type Take = (ref: ObjectRef, step: () => Promise<Change>) => Promise<Change>;

/** Applies what a plan says, one step after another. */
export async function applySteps(
  planned: readonly ApplyStep[],
  reader: StoreReader,
  applier: Applier,
  take: Take,
): Promise<ChangeSet> {
  const applied: Change[] = [];
  // Applied without them, an object would lose the fields that were to be handed over.
  const held = new Set<string>();
  const twin = new Twin(planned, reader);
  for (const step of planned) {
    const ref = refOf(step.object);
    const change =
      held.has(objectId(ref)) || twin.holds(step)
        ? ({ ref, action: 'skipped' } as const)
        : await take(ref, async () => applyRevised(step, applied, applier, reader));
    if (change.action === 'failed') {
      twin.failed(step);
      if (step.handOver) held.add(objectId(ref));
    }
    applied.push(change);
  }
  return applied;
}

/**
 * Keeps a plan from making objects while one of its objects belongs to a custom resource of the same kind and name in
 * another API group.
 *
 * **Guarantees.** Two that are created at once don't divide the objects between them, so that neither ever had them all
 * and each waited for the other. Who makes the first object of the plan has them; what exists already is put right as
 * ever.
 *
 * **Assumptions.** Both plan their first object under the same type and name.
 */
class Twin {
  private met: boolean;

  constructor(
    steps: readonly ApplyStep[],
    private readonly reader: StoreReader,
  ) {
    this.met = steps.some((step) => this.isInTheWay(step));
  }

  /** To be told of each step that has failed: the other may have made its object meanwhile. */
  failed(step: ApplyStep): void {
    this.met ||= this.isInTheWay(step);
  }

  /** Whether a step would make an object that has to wait. */
  holds(step: ApplyStep): boolean {
    return this.met && step.owner !== undefined && this.known(step) === undefined;
  }

  private isInTheWay(step: ApplyStep): boolean {
    if (!step.owner) return false;
    const known = this.known(step);
    const controller = known && controllerOf(known);
    return controller !== undefined && isTwinOf(controller, step.owner);
  }

  private known({ object }: ApplyStep): AnyObject | undefined {
    if (!this.reader.watches(object)) return undefined;
    const { namespace, name } = object.metadata;
    return this.reader.get(object, objectKey(namespace, name));
  }
}

/**
 * Applies a step in the light of those before it, or leaves it out. What `revise` throws is a failure of this step
 * alone.
 */
async function applyRevised(
  step: ApplyStep,
  before: ChangeSet,
  applier: Applier,
  reader: StoreReader,
): Promise<Change> {
  if (!step.revise || step.owner) return applier.apply(step, reader);
  const ref = refOf(step.object);
  let object: AnyObject | undefined;
  try {
    object = step.revise(before);
    checkSame(object, ref);
  } catch (cause) {
    return { ref, action: 'failed', error: cannotWorkOut(ref, cause) };
  }
  return object ? applier.apply({ ...step, object }, reader) : { ref, action: 'skipped' };
}

/** What a plan wants instead of an object is that object. */
export function checkSame(object: AnyObject | undefined, ref: ObjectRef): void {
  if (object && objectId(object) !== objectId(ref))
    throw new TypeError(`it gave ${describeRef(refOf(object))}`);
}

/** A function of the plan has thrown: a bug of the kind, not an answer of the API server. */
export function cannotWorkOut(ref: ObjectRef, cause: unknown): OperatorError {
  const message = `What to apply of ${describeRef(ref)} can't be worked out: ${messageOf(cause)}`;
  return new OperatorError({ reason: 'ReconcileFailed', message, retry: 'backoff', isBug: true, cause });
}
