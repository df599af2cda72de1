import type { Phase } from '../../contract/conditions.js';
import type { ObjectRef } from '../../contract/object.js';

/** What `reconstruct status` has found; as JSON, it is printed as it is. */
export interface StatusDocument {
  /** The operators of the cluster. @default - they can't be seen, or weren't looked for */
  readonly operators?: readonly OperatorStatus[];
  /** What somebody should know of the whole, such as that no operator is there. A sentence each. */
  readonly notes: readonly string[];
  readonly resources: readonly ResourceStatus[];
  /** Kinds that were asked for, and aren't installed. @default - none */
  readonly notInstalled?: readonly string[];
  /** Kinds whose custom resources couldn't be read. @default - none */
  readonly unreadable?: readonly string[];
}

export interface OperatorStatus {
  readonly namespace: string;
  /** Replicas that are available, and that are asked for. */
  readonly available: number;
  readonly replicas: number;
  /** Who leads, by the lease. @default - nobody, or nobody may look */
  readonly leader?: string;
}

/** A custom resource. */
export interface ResourceStatus extends ObjectRef {
  readonly uid: string;
  /** RFC 3339. */
  readonly created?: string;
  readonly verdict: Verdict;
  /** What else its status says. */
  readonly facts: readonly Fact[];
  readonly children: readonly ChildStatus[];
  /** Types of children that couldn't be listed, so that some may be missing. @default - none */
  readonly unseen?: readonly UnseenType[];
  /** Types of children that have to be there, and that the API server doesn't serve, as in `deployments of apps/v9`. @default - none */
  readonly notServed?: readonly string[];
  /** The last ones of the resource, its children and their pods: warnings first, then its own, then the rest. */
  readonly events: readonly EventStatus[];
  /** What couldn't be found out. A sentence each. */
  readonly notes: readonly string[];
}

export interface Verdict {
  /** `Unknown`: no controller has said anything yet, or not of the present generation. */
  readonly word: 'Ready' | 'Reconciling' | 'Stalled' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** Since when; RFC 3339. @default - nobody has said */
  readonly since?: string;
  /** Whether it is of the present generation. */
  readonly current: boolean;
  /** Whether it is made of the children alone, since nobody looks after the resource. @default false */
  readonly byChildren?: boolean;
}

export interface Fact {
  /** As in `Programmed` or `last run`. */
  readonly name: string;
  readonly text: string;
  /** Whether it is as it should be. @default - it is neither good nor bad */
  readonly good?: boolean;
}

export interface UnseenType {
  /** As in `deployments`. */
  readonly plural: string;
  /** Whether that is for want of a right. */
  readonly forbidden: boolean;
}

export interface ChildStatus extends ObjectRef {
  readonly uid: string;
  readonly created?: string;
  readonly phase: Phase;
  readonly message: string;
  readonly pods: readonly PodStatus[];
}

export interface PodStatus extends ObjectRef {
  readonly uid: string;
  readonly created?: string;
  readonly ready: boolean;
  /** Containers that are ready, and all. */
  readonly readyContainers: number;
  readonly containers: number;
  readonly restarts: number;
  /** In one word, as `Running`, or the reason of a container that is stuck. */
  readonly state: string;
  /** Why it is stuck. @default - it isn't */
  readonly message?: string;
}

export interface EventStatus {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  /** How often it has happened. */
  readonly count: number;
  /** The last time; RFC 3339. */
  readonly at: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}
