import type { Condition } from '../../contract/conditions.js';
import type { Kind, KindContext } from '../../contract/kind.js';
import { isHashAnnotation } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Cluster } from '../cluster.js';
import type { Random } from '../random.js';
import { distinct, madeBy, removedBy, settleMilliseconds } from './made.js';
import type { Pace } from './pace.js';
import { ANY_SITE, contextOf } from './surroundings.js';
import type { MakeSurroundings } from './surroundings.js';

export type Spec = Readonly<Record<string, unknown>>;

/** A custom resource whose operator is swept, without what makes it a certain one. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

/** As it is in the cluster. */
export type LiveResource = CustomResource<
  Spec,
  { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
>;

/** What all checks of a sweep share. */
export interface Stand extends Swept {
  readonly cluster: Cluster;
  /** Whose ServiceAccount has the rights that are derived from the kind, and no others. */
  readonly user: string;
  /** To act as it. */
  readonly kubeconfig: string;
  readonly random: Random;
  readonly seed: number;
  readonly pace: Pace;
  /** Fields of the spec that a walk leaves alone, as in `limits.mode`. */
  readonly notWalked: readonly string[];
  /** Whether something of an earlier spec stays under this one by design. */
  readonly keepsEarlier: (spec: Spec) => boolean;
  /** Whether it rightly doesn't become ready under this one. */
  readonly waits: (spec: Spec) => boolean;
}

/** What is swept, without a cluster. */
export interface Swept {
  readonly kind: Kind;
  readonly samples: readonly [Sample, ...Sample[]];
  /** What each trial finds. @default - nothing */
  readonly surroundings?: MakeSurroundings;
  /** What its controllers are made with, wherever a trial takes place. */
  readonly context: KindContext;
  /** Types of which the kind makes objects, or applies shared ones. */
  readonly types: readonly ResourceType[];
  /** Types of others' objects, which it deletes. */
  readonly removes: readonly ResourceType[];
  /** How long its controllers wait for quiet. */
  readonly settleMilliseconds: number;
  /**
   * How long something may be other than it should be, while nothing else is waited for and nothing else keeps the machine
   * busy.
   * @default 12000
   */
  readonly convergenceMilliseconds?: number;
}

export function sweptOf({
  surroundings,
  ...props
}: Pick<Swept, 'kind' | 'samples'> & {
  readonly surroundings?: MakeSurroundings | undefined;
}): Swept {
  const { kind } = props;
  const context = contextOf(surroundings?.(ANY_SITE) ?? {});
  return {
    ...{ ...props, context, ...(surroundings && { surroundings }) },
    types: distinct(madeBy(kind, context).map(({ type }) => type)),
    removes: removedBy(kind, context),
    settleMilliseconds: settleMilliseconds(kind, context),
  };
}

export function isApplied({ metadata }: AnyObject): boolean {
  return Object.keys(metadata.annotations ?? {}).some(isHashAnnotation);
}

/** The status of a condition. */
export function conditionOf({ status }: LiveResource, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
