import type * as types from '@kubernetes/client-node';
import type { AnyObject } from '../contract/object.js';

/**
 * A type of client-node as its values travel on the wire: plain, read-only JSON instead of instances of its
 * classes, with times as strings and the API's own names of fields.
 */
export type Wire<T> = unknown extends T
  ? T
  : T extends Date
    ? string
    : T extends readonly (infer Item)[]
      ? readonly Wire<Item>[]
      : T extends object
        ? { readonly [Key in keyof T as WireName<Key>]: Wire<T[Key]> }
        : T;

/** Refuses every value where client-node, an optional peer, is not installed: its types would be `any`. */
type Installed<T> = string extends keyof types.V1Pod
  ? 'The types of Kubernetes are missing: run npm install --save-dev @kubernetes/client-node'
  : T;

/** Name of a field: client-node puts `_` before words of JavaScript, as in `_from`, and in place of dashes. */
type WireName<Key> = Key extends `_${infer Name}`
  ? Name
  : Key extends `x_kubernetes_${string}`
    ? Dashed<Key>
    : Key;

type Dashed<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}-${Dashed<Rest>}`
  : Name;

/** Types of Kubernetes whose fields are known here, by API version and kind. */
export interface KubernetesTypes {
  v1: {
    ConfigMap: types.V1ConfigMap;
    Namespace: types.V1Namespace;
    PersistentVolume: types.V1PersistentVolume;
    PersistentVolumeClaim: types.V1PersistentVolumeClaim;
    Pod: types.V1Pod;
    ResourceQuota: types.V1ResourceQuota;
    Secret: types.V1Secret;
    Service: types.V1Service;
    ServiceAccount: types.V1ServiceAccount;
  };
  'apps/v1': {
    DaemonSet: types.V1DaemonSet;
    Deployment: types.V1Deployment;
    ReplicaSet: types.V1ReplicaSet;
    StatefulSet: types.V1StatefulSet;
  };
  'autoscaling/v2': { HorizontalPodAutoscaler: types.V2HorizontalPodAutoscaler };
  'batch/v1': { CronJob: types.V1CronJob; Job: types.V1Job };
  'networking.k8s.io/v1': { Ingress: types.V1Ingress; NetworkPolicy: types.V1NetworkPolicy };
  'policy/v1': { PodDisruptionBudget: types.V1PodDisruptionBudget };
  'rbac.authorization.k8s.io/v1': {
    ClusterRole: types.V1ClusterRole;
    ClusterRoleBinding: types.V1ClusterRoleBinding;
    Role: types.V1Role;
    RoleBinding: types.V1RoleBinding;
  };
  'storage.k8s.io/v1': { StorageClass: types.V1StorageClass };
}

/** The type of client-node for a type of Kubernetes; never for another. */
export type KnownType<ApiVersion, Kind> = ApiVersion extends keyof KubernetesTypes
  ? Kind extends keyof KubernetesTypes[ApiVersion]
    ? KubernetesTypes[ApiVersion][Kind]
    : never
  : never;

/**
 * The manifest of a type of Kubernetes, so that the compiler refuses fields that the type doesn't have:
 * `new ApiObject(this, 'Service', { apiVersion: 'v1', kind: 'Service', ... } satisfies KubernetesManifest)`.
 */
export type KubernetesManifest = Installed<
  {
    [ApiVersion in keyof KubernetesTypes]: {
      [Kind in keyof KubernetesTypes[ApiVersion]]: ManifestOf<ApiVersion, Kind>;
    }[keyof KubernetesTypes[ApiVersion]];
  }[keyof KubernetesTypes]
>;

type ManifestOf<ApiVersion, Kind> = { readonly apiVersion: ApiVersion; readonly kind: Kind } & Wire<
  Omit<KnownType<ApiVersion, Kind>, 'apiVersion' | 'kind' | 'status'>
>;

/** The template of the Pods that a workload makes. */
export type PodTemplate = Installed<Wire<types.V1PodTemplateSpec>>;

/** The spec of a Pod, also of those that a workload makes. */
export type PodSpec = Installed<Wire<types.V1PodSpec>>;

/**
 * A child as `status` and `handOver` read it, by the type that its kind declares: `child.kind === 'Deployment'` gives its
 * `status` the type that Kubernetes has for it. Of other types than those of Kubernetes, the status is `unknown`.
 */
export type ChildOf<Type> = Type extends { readonly apiVersion: infer ApiVersion; readonly kind: infer Kind }
  ? AnyObject & { readonly apiVersion: ApiVersion; readonly kind: Kind } & StatusOfKnown<
        KnownType<ApiVersion, Kind>
      > &
      KeptOf<Type>
  : AnyObject;

/** A child as the construct of a kind that `observes` reads it. */
export type ObservedChildOf<Type> = ChildOf<Type> &
  (Type extends { readonly createOnly: readonly string[] }
    ? {
        /**
         * Whether the fields of `createOnly` were created as the construct renders them now; true for one that isn't rendered. Judged by
         * what is rendered where all children are current, so what follows from an outdated one doesn't count.
         */
        readonly isCurrent: boolean;
      }
    : unknown);

type StatusOfKnown<Object> = [Object] extends [{ status?: infer Status }]
  ? [Object] extends [never]
    ? unknown
    : { readonly status?: Wire<Status> }
  : unknown;

type KeptOf<Type> = Type extends { readonly keep: (object: never) => infer Kept } ? Kept : unknown;
