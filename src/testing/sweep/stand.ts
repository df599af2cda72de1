import type { Condition } from '../../contract/conditions.js';
import type { Kind } from '../../contract/kind.js';
import { isHashAnnotation } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Cluster } from '../cluster.js';
import type { Random } from '../random.js';

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
export interface Stand {
  readonly cluster: Cluster;
  readonly kind: Kind;
  /** Of a ServiceAccount with the rights that are derived from the kind, and no others. */
  readonly kubeconfig: string;
  readonly samples: readonly [Sample, ...Sample[]];
  readonly random: Random;
  readonly seed: number;
  /** Types of which the kind makes objects. */
  readonly types: readonly ResourceType[];
}

/** The types of which the controllers of a kind make objects. */
export function madeTypes(kind: Kind): ResourceType[] {
  const watches = kind
    .controllers({ render: () => [] })
    .flatMap((controller) => controller.watches)
    .filter(
      ({ type, writes = [] }) =>
        groupKind(type) !== groupKind(kind.type) && (writes.includes('create') || writes.includes('patch')),
    )
    .filter(({ type }) => type.namespaced);
  return [...new Map(watches.map(({ type }) => [groupKind(type), type])).values()];
}

/** Everything in a namespace that the operator has applied. */
export async function appliedObjects({ cluster, types }: Stand, namespace: string): Promise<AnyObject[]> {
  const lists = await Promise.all(
    types.map(async (type) => {
      const objects = await cluster.listIfServed(type, namespace);
      return objects.map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
    }),
  );
  return lists
    .flat()
    .filter(({ metadata }) => Object.keys(metadata.annotations ?? {}).some(isHashAnnotation));
}

/** The status of a condition. */
export function conditionOf({ status }: LiveResource, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
