import type { Explanation } from '../../contract/controller.js';
import { DRY_RUN_UNSUPPORTED } from '../../engine/preview/dry-run.js';
import type { ObjectPreview } from '../../engine/preview/preview.js';

/** Everything that would follow from the custom resources that were given; they come first. */
export interface Outcome {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
}

/** Reasons that tell of the cluster, and nothing of what was asked for. */
const OF_CLUSTER: ReadonlySet<string> = new Set([
  ...['Forbidden', 'Unauthorized', 'Unreachable', 'ServerOverloaded', 'KindNotServed', 'NotFound'],
  DRY_RUN_UNSUPPORTED,
]);

/** Whether anything would change, or can't be had. */
export function differs({ objects, explanations }: Outcome): boolean {
  return objects.some(isDifference) || explanations.some((explanation) => explanation.differs);
}

export function isDifference({ action, leaves }: ObjectPreview): boolean {
  return action !== 'unchanged' || leaves.length > 0;
}

/** What couldn't be found out for what the cluster said, each once. */
export function refusals({ objects }: Outcome): string[] {
  const errors = objects.flatMap(({ error }) =>
    error && OF_CLUSTER.has(error.reason) ? [error.message] : [],
  );
  return [...new Set(errors)];
}
