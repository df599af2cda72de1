import type { Change, ChangeSet } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { objectId, refOf } from '../contract/object.js';
import type { ObjectRef } from '../contract/object.js';
import type { Applier } from './apply.js';
import { applyRevised } from './revise.js';
import type { StoreReader } from './stores.js';
import { Twin } from './twin.js';

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
