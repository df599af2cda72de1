import { childReadiness } from '../../contract/readiness.js';
import type { AnyObject } from '../../contract/object.js';

interface Workload {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly availableReplicas?: number };
}

/** By the rules of kstatus, and by what its spec asks for. */
export function isReady(object: AnyObject): boolean {
  if (childReadiness(object).phase !== 'ready') return false;
  if (!['Deployment', 'StatefulSet'].includes(object.kind)) return true;
  const { spec, status } = object as Workload;
  return (status?.availableReplicas ?? 0) >= (spec?.replicas ?? 1);
}

/**
 * Whether nothing is expected of somebody else any more: it is ready, and where it scales others, its controller has looked
 * at them, since that may be when it asks for more of them.
 */
export function isComplete(object: AnyObject): boolean {
  const { conditions = [] } = (object.status ?? {}) as Status;
  const isSeen = object.kind !== 'HorizontalPodAutoscaler' || conditions.length > 0;
  return isSeen && isReady(object);
}

/** Whether it stays for as long as something else wants it, such as a claim for as long as a pod uses it. */
export function isHeld({ metadata }: AnyObject): boolean {
  const { finalizers = [] } = metadata as { readonly finalizers?: readonly string[] };
  return finalizers.length > 0;
}

interface Status {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
  }[];
}

/** Whether the cluster says of an object that its pods can't be made, or of a pod that no node takes it. */
export function isStuck(objects: readonly AnyObject[]): boolean {
  return objects.some(({ status }) =>
    (status as Status | undefined)?.conditions?.some(
      ({ type, status: value, reason }) =>
        (type === 'ReplicaFailure' && value === 'True') || (value === 'False' && reason === 'Unschedulable'),
    ),
  );
}
