import type { RelatedTypeProps } from '../../contract/define-kind.js';
import { selectorLabels } from '../../contract/names.js';
import type { NamedKind } from '../../contract/names.js';
import { controllerOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { podTrouble, startingSince } from './status/pod-trouble.js';
import type { PodTrouble } from './status/pod-trouble.js';

/** What is kept of a pod that is in trouble, or may be, beside its identity. */
export interface KeptPod {
  readonly trouble?: PodTrouble;
  /** Without a trouble: since when its node has been preparing it for its containers. RFC 3339. */
  readonly startingSince?: string;
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

/** Nothing of a pod that runs, or whose containers are about to. */
export function keepPod(pod: AnyObject): (KeptPod & Readonly<Record<string, unknown>>) | undefined {
  const trouble = podTrouble(pod);
  const since = trouble ? undefined : startingSince(pod);
  if (!trouble && since === undefined) return undefined;
  const replicaSet = controllerOf(pod)?.name;
  return {
    ...(trouble && { trouble }),
    ...(since !== undefined && { startingSince: since }),
    ...(replicaSet !== undefined && { replicaSet }),
  };
}
