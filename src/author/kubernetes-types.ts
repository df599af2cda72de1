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
        ? { readonly [Key in keyof T as WireName<Key, keyof T>]: Wire<T[Key]> }
        : T;

/** Refuses every value where client-node, an optional peer, is not installed: its types would be `any`. */
type Installed<T> = string extends keyof types.V1Pod
  ? 'The types of Kubernetes are missing: run npm install --save-dev @kubernetes/client-node'
  : T;

/**
 * Name of a field: client-node puts `_` before words of JavaScript, as in `_from`, and in place of dashes, and leaves out the `$` of
 * two fields of a schema.
 */
type WireName<Key, Siblings> = Key extends `_${infer Name}`
  ? Name
  : Key extends `x_kubernetes_${string}`
    ? Dashed<Key>
    : [Key, '_enum'] extends ['ref' | 'schema', Siblings]
      ? `$${Key & string}`
      : Key;

type Dashed<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}-${Dashed<Rest>}`
  : Name;

/** Classes of client-node that send the requests of an API version: the kinds of Kubernetes are read from their methods. */
interface Clients {
  v1: 'CoreV1Api';
  'admissionregistration.k8s.io/v1': 'AdmissionregistrationV1Api';
  'apiextensions.k8s.io/v1': 'ApiextensionsV1Api';
  'apiregistration.k8s.io/v1': 'ApiregistrationV1Api';
  'apps/v1': 'AppsV1Api';
  'autoscaling/v1': 'AutoscalingV1Api';
  'autoscaling/v2': 'AutoscalingV2Api';
  'batch/v1': 'BatchV1Api';
  'certificates.k8s.io/v1': 'CertificatesV1Api';
  'coordination.k8s.io/v1': 'CoordinationV1Api';
  'discovery.k8s.io/v1': 'DiscoveryV1Api';
  'events.k8s.io/v1': 'EventsV1Api';
  'flowcontrol.apiserver.k8s.io/v1': 'FlowcontrolApiserverV1Api';
  'networking.k8s.io/v1': 'NetworkingV1Api';
  'node.k8s.io/v1': 'NodeV1Api';
  'policy/v1': 'PolicyV1Api';
  'rbac.authorization.k8s.io/v1': 'RbacAuthorizationV1Api';
  'resource.k8s.io/v1': 'ResourceV1Api';
  'scheduling.k8s.io/v1': 'SchedulingV1Api';
  'storage.k8s.io/v1': 'StorageV1Api';
}

/** Objects by kind that a class of client-node lists; none where its release lacks the class. */
type Listed<Client> = Client extends keyof typeof types
  ? (typeof types)[Client] extends abstract new (...args: never) => infer Api
    ? { [Method in keyof Api as ListedKind<Method>]: ItemOf<Api[Method]> }
    : never
  : never;

type ListedKind<Method> = Method extends `list${string}ForAllNamespaces` | `list${string}WithHttpInfo`
  ? never
  : Method extends `list${infer Name}`
    ? Name extends `Namespaced${infer Kind}`
      ? Kind
      : Name
    : never;

type ItemOf<List> = List extends (...args: never) => Promise<{ items: (infer Item)[] }> ? Item : never;

/** Types of Kubernetes whose fields are known here, by API version and kind: all those of its stable API versions. */
export type KubernetesTypes = { [ApiVersion in keyof Clients]: Listed<Clients[ApiVersion]> };

/** The type of client-node for a type of Kubernetes; never for another. */
export type KnownType<ApiVersion, Kind> = ApiVersion extends keyof KubernetesTypes
  ? Kind extends keyof KubernetesTypes[ApiVersion]
    ? KubernetesTypes[ApiVersion][Kind]
    : never
  : never;

/**
 * An object of a type of Kubernetes as the API server sends it, for the parameter of a `keep`:
 * `keep: ({ spec }: ObjectOf<'apps/v1', 'Deployment'>) => ({ replicas: spec?.replicas })`.
 */
export type ObjectOf<
  ApiVersion extends keyof KubernetesTypes,
  Kind extends keyof KubernetesTypes[ApiVersion],
> = Installed<
  AnyObject & { readonly apiVersion: ApiVersion; readonly kind: Kind } & Wire<
      Omit<KubernetesTypes[ApiVersion][Kind], 'apiVersion' | 'kind'>
    >
>;

/** Function of an object as the API server sends it. Its parameter may be declared as an `ObjectOf` of the type that it is given for. */
export type KeepFunction<Kept> = { keep(object: AnyObject): Kept }['keep'];

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

type ManifestOf<ApiVersion, Kind> = {
  readonly apiVersion: ApiVersion;
  readonly kind: Kind;
  readonly metadata?: ManifestMetadata;
} & Wire<Omit<KnownType<ApiVersion, Kind>, 'apiVersion' | 'kind' | 'metadata' | 'status'>>;

/** Metadata with lists that may be changed, as cdk8s wants them. */
type ManifestMetadata = Wire<Omit<types.V1ObjectMeta, 'finalizers' | 'ownerReferences'>> & {
  readonly finalizers?: string[];
  readonly ownerReferences?: Wire<types.V1OwnerReference>[];
};

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
export type ObservedChildOf<Type> = Type extends { readonly createOnly: readonly string[] }
  ? ChildOf<Type> & {
      /**
       * Whether the fields of `createOnly` were created as the construct renders them now; true for one that isn't rendered. Judged by
       * what is rendered where all children are current, so what follows from an outdated one doesn't count.
       */
      readonly isCurrent: boolean;
    }
  : ChildOf<Type>;

type StatusOfKnown<Object> = [Object] extends [{ status?: infer Status }]
  ? [Object] extends [never]
    ? unknown
    : { readonly status?: Wire<Status> }
  : unknown;

type KeptOf<Type> = Type extends { readonly keep: (object: never) => infer Kept } ? Kept : unknown;
