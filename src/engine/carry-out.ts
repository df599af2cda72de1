import type { Change, ChangeSet } from '../contract/change.js';
import type { Plan } from '../contract/controller.js';
import { refOf } from '../contract/object.js';
import type { Api } from './api.js';
import type { Applier } from './apply.js';
import type { EventRecorder } from './events.js';
import { prune } from './prune.js';
import type { StatusWriter } from './status.js';
import type { StoreReader } from './stores.js';

export interface Tools {
  readonly api: Api;
  readonly applier: Applier;
  readonly statusWriter: StatusWriter;
  readonly recorder: EventRecorder;
}

export interface Outcome {
  /** Of the applies and deletes, in the plan's order. */
  readonly changes: ChangeSet;
  /** Of the status writes. */
  readonly statusChanges: ChangeSet;
}

/** Carries a plan out: applies, then deletes if all applies succeeded, then status, then events. Never rejects. */
export async function carryOut(plan: Plan, reader: StoreReader, tools: Tools): Promise<Outcome> {
  const changes: Change[] = [];
  for (const step of plan.apply) changes.push(await tools.applier.apply(step, reader));
  const failed = changes.some(({ action }) => action === 'failed');
  for (const step of plan.delete) {
    changes.push(
      failed ? { ref: refOf(step.object), action: 'skipped' } : await prune(tools.api, step, reader),
    );
  }
  const statusChanges: Change[] = [];
  // Both are computed before the status is written, so that an event can tell whether its news is news.
  const events = plan.events.flatMap(({ regarding, event }) => {
    const props = tools.recorder.compute(regarding, () => event(changes));
    return props ? [{ regarding, props }] : [];
  });
  for (const step of plan.status) statusChanges.push(await tools.statusWriter.write(step, changes, reader));
  // While the status can't be written, what was told can't be remembered, and would be told with every try.
  if (statusChanges.every(({ action }) => action !== 'failed')) {
    for (const { regarding, props } of events) tools.recorder.send(regarding, props);
  }
  return { changes, statusChanges };
}
