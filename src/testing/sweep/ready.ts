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
