import { childrenFieldManager, replicasFieldManager } from '../contract/names.js';
import type { HandOverStep } from '../contract/plan.js';
import type { AnyObject, CustomResource, KubernetesObject } from '../contract/object.js';
import { managedFieldsOf } from '../values/projections.js';

/**
 * A field that passes from one field manager to another and has an owner all along: the object has the value that the field has. One
 * without an owner needs the version too (`metadata.resourceVersion`): a change of the value meanwhile then is a conflict.
 */
export type HandOver = Omit<HandOverStep, 'do'>;

/** Returns which fields have to pass to another manager. It must be pure, and return nothing for fields that have passed. */
export type HandOverFunction<Spec, Child extends AnyObject = AnyObject> = (input: {
  readonly cr: CustomResource<Spec>;
  /** The children as the API server had them last: identity, status, and what their type's `keep` adds. */
  readonly children: readonly Child[];
}) => readonly HandOver[];

/** Number of replicas of a Deployment, a StatefulSet and a ReplicaSet by the API server's default. */
const DEFAULT_REPLICAS = 1;

/** Maximum number of managers that are kept of a child: users may add thousands, and one other than ours decides. */
const MAX_MANAGERS = 10;

/** Replicas of a child, and the managers that own the field. */
export interface KeptReplicas {
  /** `spec.replicas`. */
  readonly value?: number;
  /**
   * Field managers that own it, the first ten of the record; none for the API server's default, and for the first write
   * through `/scale`. Later ones are an entry of their own.
   */
  readonly managers: readonly string[];
}

/** Input of `handOverReplicas`. */
export interface HandOverReplicasProps {
  /** Owner of the children. */
  readonly cr: KubernetesObject;
  /** Children; those whose type has `keepReplicas` in its `keep` are considered. */
  readonly children: readonly AnyObject[];
  /**
   * Replicas at the start of a child that is created while they are the autoscaler's already, and hasn't been scaled by
   * then. An autoscaler that has scaled it up and back to 1 by then can't be distinguished from none.
   * @default - the API server's default, which is 1
   */
  readonly start?: number;
}

/** The `keep` of a child type whose replicas are handed over; beside others as `{ ...keepReplicas(object), … }`. */
export function keepReplicas(object: AnyObject): { readonly replicas: KeptReplicas } {
  const { replicas } = (object.spec ?? {}) as { readonly replicas?: number };
  const managers: string[] = [];
  for (const { manager = '', fieldsV1 } of managedFieldsOf(object))
    if (fieldsV1?.['f:spec']?.['f:replicas'] !== undefined && managers.length < MAX_MANAGERS)
      managers.push(manager);
  return { replicas: { ...(replicas !== undefined && { value: replicas }), managers } };
}

/**
 * Hands `spec.replicas` of the children over to their autoscaler, for `handOver` of a kind: to be called while the construct
 * leaves them out.
 *
 * A field that its only owner stops to apply falls back to the API server's default, here 1: without this, switching an
 * autoscaler on would scale an application down to one replica until the autoscaler corrects it. So another field
 * manager, `<kind>-replicas`, applies the present value before the kind's own stops to. In the other direction nothing
 * is needed: once the construct sets replicas again, they are applied, and the field taken back.
 *
 * A field without an owner has none after an autoscaler's write through `/scale` either: there, the API server keeps account
 * only of fields with an owner. So a number that isn't the default is taken to be the autoscaler's, and where the field
 * has no owner, nothing is applied to an object that has changed meanwhile.
 *
 * @returns nothing for a child of which another manager owns the field already, so that it keeps its value
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 */
export function handOverReplicas({ cr, children, start }: HandOverReplicasProps): HandOver[] {
  const own = childrenFieldManager(cr.kind);
  return children.flatMap((child) => {
    const { replicas: kept } = child as Partial<ReturnType<typeof keepReplicas>>;
    if (!kept || child.metadata.deletionTimestamp) return [];
    if (kept.managers.some((manager) => manager !== own)) return [];
    const { value = DEFAULT_REPLICAS } = kept;
    const isOwned = kept.managers.length > 0;
    const isStarting = start === undefined || value === DEFAULT_REPLICAS;
    const replicas = isOwned ? kept.value : isStarting ? start : value;
    if (replicas === undefined) return [];
    const { apiVersion, kind } = child;
    const { name, namespace, uid, resourceVersion } = child.metadata;
    const metadata = {
      name,
      ...(namespace && { namespace }),
      // With the UID, what is deleted meanwhile isn't created again.
      ...(uid && { uid }),
      // With the version, what was written meanwhile isn't undone: there is no owner to conflict with.
      ...(!isOwned && resourceVersion && { resourceVersion }),
    };
    const object = { apiVersion, kind, metadata, spec: { replicas } };
    return [{ object, fieldManager: replicasFieldManager(cr.kind) }];
  });
}
