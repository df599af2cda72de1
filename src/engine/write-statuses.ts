import type { Change } from '../contract/change.js';
import type { StatusStep } from '../contract/controller.js';
import { objectId } from '../contract/object.js';

/** Half of what may be written at once by all plans together. */
const AT_ONCE = 16;

/**
 * Writes the statuses of a plan several at a time; those of one object in their order.
 * @param write must not reject
 * @returns what became of each, in the order of the steps
 */
export async function writeStatuses(
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
