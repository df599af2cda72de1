import type { Condition } from './conditions.js';
import type { CustomResource } from './object.js';

interface LiveStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Partial<Condition>[];
}

/** A custom resource as the cluster has it, as far as its own status is read. */
export type LiveResource = CustomResource<unknown, LiveStatus>;

/** Whether nothing has been made of this generation, or nothing could be, since it differed each time. */
export function isNews({ metadata, status }: LiveResource): boolean {
  const isTold = status?.conditions?.some(
    ({ type, status, reason }) => type === 'Stalled' && status === 'True' && reason === 'NotDeterministic',
  );
  return isTold === true || status?.observedGeneration !== metadata.generation;
}
