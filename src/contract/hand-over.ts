import { childrenFieldManager, replicasFieldManager } from './names.js';
import type { AnyObject, CustomResource, KubernetesObject } from './object.js';

/** A field that passes from one writer to another without a moment of being nobody's. */
export interface HandOver {
  /**
   * Identity, and the field with the value that it has: it is applied as it is. Where nobody owns the field, with the
   * version too (`metadata.resourceVersion`): a change of the value meanwhile then is a conflict.
   */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /**
   * Takes the field from its owner: only for one that has to go, since the API server doesn't take the children
   * beside it. What the custom resource doesn't control is never forced.
   * @default false - where the value has changed meanwhile, it is read and the plan made again
   */
  readonly force?: boolean;
}

/**
 * Returns which fields have to pass to another writer. It must be pure, and return nothing for what has been handed over: it is
 * asked at each reconcile.
 */
export type HandOverFunction<Spec> = (input: {
  readonly cr: CustomResource<Spec>;
  /** The children as the API server had them last: identity, status, and what their type's `keep` adds. */
  readonly children: readonly AnyObject[];
}) => readonly HandOver[];

/** Of a Deployment, a StatefulSet and a ReplicaSet for which nobody says how many. */
const DEFAULT_REPLICAS = 1;

/** Replicas of a child, and the managers that own the field. */
export interface KeptReplicas {
  /** `spec.replicas`. */
  readonly value?: number;
  /** The field managers that own it; none, where the API server's default stands, or what was the first write through `/scale`. */
  readonly managers: readonly string[];
}

/** Input of `handOverReplicas`. */
export interface HandOverReplicasProps {
  /** Whose children they are. */
  readonly cr: KubernetesObject;
  /** Of these, the ones whose type has `keepReplicas` in its `keep`. */
  readonly children: readonly AnyObject[];
  /**
   * Replicas at the start of a child that is made while they are the autoscaler's already, and hasn't been scaled by
   * then. An autoscaler that has scaled it up and back to 1 by then can't be told from none.
   * @default - the API server's default, which is 1
   */
  readonly start?: number;
}

/** The `keep` of a child type whose replicas are handed over; beside others as `{ ...keepReplicas(object), … }`. */
export function keepReplicas(object: AnyObject): { readonly replicas: KeptReplicas } {
  const { replicas } = (object.spec ?? {}) as { readonly replicas?: number };
  const managers = managersOf(object, 'f:spec', 'f:replicas');
  return { replicas: { ...(replicas !== undefined && { value: replicas }), managers } };
}

/**
 * Hands `spec.replicas` of the children over to their autoscaler, for `handOver` of a kind: to be called while the construct
 * leaves them out.
 *
 * A field that its only owner stops to apply falls back to the API server's default, here 1: without this, switching an
 * autoscaler on would take an application down to one replica until the autoscaler corrects it. So another field
 * manager, `<kind>-replicas`, says the value that is there before the kind's own stops to. In the other direction nothing
 * is needed: once the construct sets replicas again, they are applied, and the field taken back.
 *
 * What nobody owns has no owner either after an autoscaler's write through `/scale`: there, the API server keeps account
 * only of fields with an owner. So a number that isn't the default is taken to be the autoscaler's, and where nobody
 * owns the field, no number is said of an object that has changed meanwhile.
 *
 * @returns nothing for a child of which another manager has the field already, so that it keeps its value
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 */
export function handOverReplicas({ cr, children, start }: HandOverReplicasProps): HandOver[] {
  const own = childrenFieldManager(cr.kind);
  return children.flatMap((child) => {
    const { replicas: kept } = child as Partial<ReturnType<typeof keepReplicas>>;
    if (!kept || child.metadata.deletionTimestamp) return [];
    if (kept.managers.some((manager) => manager !== own)) return [];
    const isNobodys = kept.managers.length === 0;
    const replicas = isNobodys ? first(kept, start) : kept.value;
    if (replicas === undefined) return [];
    const identity = isNobodys ? asItIs(child) : identityOf(child);
    return [{ object: { ...identity, spec: { replicas } }, fieldManager: replicasFieldManager(cr.kind) }];
  });
}

/** The first number of which anybody keeps account. */
function first({ value = DEFAULT_REPLICAS }: KeptReplicas, start: number | undefined): number | undefined {
  return start === undefined || value === DEFAULT_REPLICAS ? start : value;
}

/** With the version, so that what was written meanwhile isn't undone; where nobody owns it, nothing else tells. */
function asItIs(child: AnyObject): AnyObject {
  const { resourceVersion } = child.metadata;
  const identity = identityOf(child);
  return { ...identity, metadata: { ...identity.metadata, ...(resourceVersion && { resourceVersion }) } };
}

/** With the uid, so that what is deleted meanwhile doesn't come back. */
export function identityOf({ apiVersion, kind, metadata }: AnyObject): AnyObject {
  const { name, namespace, uid } = metadata;
  return { apiVersion, kind, metadata: { name, ...(namespace && { namespace }), ...(uid && { uid }) } };
}

interface ManagedFields {
  readonly manager?: string;
  readonly fieldsV1?: object;
}

/**
 * The field managers that own a field, in the order of the record; none, where the API server's default stands. An
 * autoscaler and `kubectl scale` write through `/scale`, which is an entry of its own, and none where nobody owned the
 * field before.
 * @param path as in `fieldsV1`: `f:spec`, `f:replicas`
 */
export function managersOf(object: AnyObject, ...path: readonly string[]): string[] {
  const { managedFields = [] } = object.metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields
    .filter(({ fieldsV1 }) => fieldAt(fieldsV1, path) !== undefined)
    .map(({ manager = '' }) => manager);
}

function fieldAt(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, step) => (at as Readonly<Record<string, unknown>> | undefined)?.[step],
    fields,
  );
}
