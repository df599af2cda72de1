import { controllerOf, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { podTrouble } from '../../kinds/app-service/status/pod-trouble.js';
import type { PodStatus } from './document.js';

interface ContainerStatus {
  readonly ready?: boolean;
  readonly restartCount?: number;
}

interface Status {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

/** How a pod fares, as far as it says itself. */
export function podStatus(pod: AnyObject): PodStatus {
  const status = (pod.status ?? {}) as Status;
  const { containers = [] } = (pod.spec ?? {}) as { readonly containers?: readonly unknown[] };
  const trouble = podTrouble(pod);
  const known = status.containerStatuses ?? [];
  const { creationTimestamp, uid = '' } = pod.metadata;
  const message = trouble?.message ?? (status.phase === 'Failed' ? status.message : undefined);
  return {
    ...refOf(pod),
    uid,
    ...(creationTimestamp !== undefined && { created: creationTimestamp }),
    ready: status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false,
    readyContainers: known.filter(({ ready }) => ready).length,
    containers: Math.max(containers.length, known.length),
    restarts: known.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    state: stateOf(pod, status, trouble?.reason),
    ...(message !== undefined && { message }),
  };
}

function stateOf({ metadata }: AnyObject, { phase, reason }: Status, trouble: string | undefined): string {
  if (metadata.deletionTimestamp) return 'Terminating';
  return trouble ?? reason ?? phase ?? 'Pending';
}

/** Whether a workload has made a pod, by itself or through a ReplicaSet, whose name is made of its own. */
export function isPodOf(workload: AnyObject, pod: AnyObject): boolean {
  const controller = controllerOf(pod);
  if (!controller) return false;
  if (controller.uid === workload.metadata.uid) return true;
  if (workload.kind !== 'Deployment') return false;
  const hash = pod.metadata.labels?.['pod-template-hash'];
  return controller.kind === 'ReplicaSet' && controller.name === `${workload.metadata.name}-${hash ?? ''}`;
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
}

/** Kinds whose objects make pods, which their selector finds. */
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Job']);

/**
 * The label selector by which the pods of a child are found; undefined if it makes none.
 * @param own the label that ties children to their custom resource, and the selector for it: where pods bear it too, one
 *   list is enough for all of them
 */
export function podSelector(
  child: AnyObject,
  own: { readonly label: string; readonly selector: string },
): string | undefined {
  if (!WORKLOADS.has(child.kind)) return undefined;
  const { selector } = (child.spec ?? {}) as { readonly selector?: Selector };
  const labels = Object.entries(selector?.matchLabels ?? {});
  if (labels.length === 0) return undefined;
  if (labels.some(([name]) => name === own.label)) return own.selector;
  return labels.map(([name, value]) => `${name}=${value}`).join();
}
