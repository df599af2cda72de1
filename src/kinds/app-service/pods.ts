import type { RelatedTypeProps } from '../../contract/define-kind.js';
import { selectorLabels } from '../../contract/names.js';
import type { NamedKind } from '../../contract/names.js';
import { controllerOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { podTrouble } from './status/pod-trouble.js';
import type { PodTrouble } from './status/pod-trouble.js';

/** What is kept of a pod that is in trouble, beside its identity. */
export interface KeptPod {
  readonly trouble: PodTrouble;
  /** The ReplicaSet that made it. */
  readonly replicaSet?: string;
}

/**
 * The pods of a kind's Deployments, by the label that ties them to their custom resource; of those that run as they
 * should, nothing is kept.
 */
export function podsOf(kind: NamedKind): RelatedTypeProps {
  const [label = ''] = Object.keys(selectorLabels(kind, ''));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    selector: label,
    nameOf: ({ metadata }) => metadata.labels?.[label],
    keep: keepPod,
  };
}

/** Nothing of a pod without trouble. */
export function keepPod(pod: AnyObject): (KeptPod & Readonly<Record<string, unknown>>) | undefined {
  const trouble = podTrouble(pod);
  if (!trouble) return undefined;
  const replicaSet = controllerOf(pod)?.name;
  return { trouble, ...(replicaSet !== undefined && { replicaSet }) };
}
