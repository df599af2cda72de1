import type { FieldConflict } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Api } from './api.js';
import { ApiError, classify } from './api-error.js';
import { cannotWorkOut, checkSame } from './apply-steps.js';
import { refusalId, saysNothing, taskOf } from './apply-task.js';
import type { Outcome, Task } from './apply-task.js';
import { ownerKey } from './managed-fields.js';
import type { NodePorts } from './node-ports.js';
import { refresh } from './refresh.js';
import type { StoreReader } from './cache.js';

/** How often what is left is asked for in one pass, after the whole. */
const TRIES = 3;

/** What an intent was applied without. */
interface Reduction {
  readonly hash: string;
  readonly resourceVersion: string | undefined;
  readonly conflicts: readonly FieldConflict[];
}

/**
 * Applies objects that others share.
 *
 * **Guarantees.** What others own stays theirs. Where the plan says what is to be applied instead, it is in the same
 * pass; what had to be left out is asked for again once the object has changed, and not before. One that nothing is
 * said of is let go of, and never made.
 *
 * **Errors.** `TargetMissing`, where somebody else has to make it, and `FieldConflict`.
 */
export class Sharing {
  /** By object and field manager. */
  private readonly reductions = new Map<string, Reduction>();

  constructor(
    private readonly api: Api,
    private readonly nodePorts: NodePorts,
  ) {}

  /** The object has gone. */
  gone(object: string): void {
    for (const id of this.reductions.keys()) if (id.endsWith(` ${object}`)) this.reductions.delete(id);
  }

  /** @param ensure brings the object to what a task says, as that of any other */
  async apply(
    step: ApplyStep,
    reader: StoreReader,
    ensure: (task: Task) => Promise<Outcome>,
  ): Promise<Outcome> {
    const whole = taskOf(step, reader, this.nodePorts);
    const known = whole.store.get(whole.key);
    if (!known && step.mustExist) throw missing(step);
    if (saysNothing(step.object) && !known?.owned.has(ownerKey(step.fieldManager)))
      return { action: 'unchanged' };
    let conflicts = this.known(whole);
    for (let tries = 0; ; tries++) {
      try {
        const outcome = await ensure(this.without(conflicts, whole));
        if (conflicts.length === 0) return outcome;
        this.remember(whole, conflicts);
        return { ...outcome, conflicts };
      } catch (error) {
        const met = conflictsOf(error);
        if (met.length === 0) throw error;
        const others = met.filter(({ field }) => !isHash(field, whole));
        const all = [...conflicts, ...others];
        // Whoever copied it would keep us from ever applying again.
        if (others.length < met.length) await this.takeOffHash(whole);
        if (tries === TRIES || (others.length > 0 && !left(all, whole)))
          return {
            action: 'failed',
            error: classify(error, `Apply ${describeRef(refOf(step.object))}`),
            conflicts: all,
          };
        conflicts = all;
      }
    }
  }

  /** The task without what others own, as the plan sees it. */
  private without(conflicts: readonly FieldConflict[], whole: Task): Task {
    const object = conflicts.length === 0 ? undefined : left(conflicts, whole);
    return object ? taskOf({ ...whole.step, object }, whole.reader, this.nodePorts) : whole;
  }

  private known(whole: Task): readonly FieldConflict[] {
    const id = refusalId(whole);
    const reduction = this.reductions.get(id);
    if (reduction?.hash === whole.hash && reduction.resourceVersion === versionOf(whole))
      return reduction.conflicts;
    this.reductions.delete(id);
    return [];
  }

  private remember(whole: Task, conflicts: readonly FieldConflict[]): void {
    const { hash } = whole;
    this.reductions.set(refusalId(whole), { hash, resourceVersion: versionOf(whole), conflicts });
  }

  private async takeOffHash({ step, reader, store, key, hashName }: Task): Promise<void> {
    const type = reader.resourceType(step.object);
    const uid = store.get(key)?.object.metadata.uid;
    await this.api.mergePatch(type, key, { metadata: { uid, annotations: { [hashName]: null } } });
    // It is another version now, so what was refused of the last one isn't believed any more.
    await refresh(this.api, step.object, reader);
  }
}

/** What the plan makes of conflicts. */
function left(conflicts: readonly FieldConflict[], { step }: Task): AnyObject | undefined {
  const ref = refOf(step.object);
  try {
    const object = step.onConflict?.(conflicts);
    checkSame(object, ref);
    return object;
  } catch (cause) {
    throw cannotWorkOut(ref, cause);
  }
}

function conflictsOf(error: unknown): FieldConflict[] {
  const cause = error instanceof OperatorError ? error.cause : error;
  return cause instanceof ApiError ? cause.conflicts : [];
}

function isHash(field: string, { hashName }: Task): boolean {
  return field === `.metadata.annotations.${hashName}`;
}

function versionOf({ store, key }: Task): string | undefined {
  return store.get(key)?.object.metadata.resourceVersion;
}

function missing({ object }: ApplyStep): OperatorError {
  return new OperatorError({
    reason: 'TargetMissing',
    message: `${describeRef(refOf(object))} isn't there, and is somebody else's to make`,
  });
}
