/**
 * Kubernetes objects as they travel on the wire: plain JSON, nothing converted, nothing dropped.
 * @see https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
 */

/** Reference to an owner of an object. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Owner of an object that is applied. */
export interface Owner extends OwnerReference {
  /**
   * Key of the owner (`objectKey`), where the object has no owner reference, and its record alone says whose it is: in another namespace, or
   * cluster-scoped, where the garbage collector would delete what has a reference, or made while the owner is being deleted. Once
   * the owner is gone, a step collects it.
   * @default - the object has an owner reference
   */
  readonly recordedKey?: string;
  /** Whether the object stays once the owner is gone, and isn't collected; only where the owner is recorded. @default false */
  readonly isKept?: boolean;
}

/** The part of `metadata` that this project reads. Whatever else is there is kept, but not typed. */
export interface ObjectMeta {
  readonly name: string;
  /** Absent on cluster-scoped objects, and in files that leave the choice to the client that applies them. */
  readonly namespace?: string;
  readonly uid?: string;
  /** Compare with `compareResourceVersions`; never parse. */
  readonly resourceVersion?: string;
  /** Rises when the spec changes. */
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  /** RFC 3339. */
  readonly creationTimestamp?: string;
  /** RFC 3339; set once deletion has been asked for. */
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
}

/** Any object: what every kind has in common. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** An object with whatever other fields its kind has. */
export type AnyObject = KubernetesObject & Readonly<Record<string, unknown>>;

/** A custom resource of a kind that has `spec` and `status`. */
export interface CustomResource<Spec = unknown, Status = unknown> extends KubernetesObject {
  readonly spec: Spec;
  readonly status?: Status;
}

/** Names one object. */
export interface ObjectRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Returns the reference to an object. */
export function refOf(object: KubernetesObject): ObjectRef {
  const { namespace, name } = object.metadata;
  return { apiVersion: object.apiVersion, kind: object.kind, ...(namespace && { namespace }), name };
}

/** Returns the reference by which an object controls others. */
export function ownerOf({
  apiVersion,
  kind,
  metadata: { name, uid = '' },
}: KubernetesObject): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Names one object whatever version it is served in: `Deployment.apps shop/web`. */
export function objectId(object: KubernetesObject | ObjectRef): string {
  const { namespace, name } = 'metadata' in object ? object.metadata : object;
  const group = groupOf(object.apiVersion);
  return `${object.kind}${group && `.${group}`} ${objectKey(namespace, name)}`;
}

/** For people and logs: `Deployment shop/web`. */
export function describeRef(object: KubernetesObject | ObjectRef): string {
  const { namespace, name } = 'metadata' in object ? object.metadata : object;
  return `${object.kind} ${objectKey(namespace, name)}`;
}

/** `namespace/name`, or `name` alone for what has no namespace. */
export function objectKey(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** Returns the `objectKey` of an object. */
export function keyOf({ metadata }: Pick<AnyObject, 'metadata'>): string {
  return objectKey(metadata.namespace, metadata.name);
}

/** Compares texts by their code units, for sorting. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Sorts objects of a type, so that equal ones come in the same order. */
export function byName(objects: readonly AnyObject[]): AnyObject[] {
  return objects.toSorted((a, b) => compare(keyOf(a), keyOf(b)));
}

/** The inverse of `objectKey`. */
export function splitKey(key: string): { namespace?: string; name: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** `apps` of `apps/v1`; empty for the core group. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

/** The owner reference that makes its holder the controller, if there is one. An object has at most one. */
export function controllerOf(object: KubernetesObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

/**
 * Set of fields as the API server records it in `metadata.managedFields`: a tree of `f:<field>`, `k:<list keys>` and
 * `v:<set value>`, with an empty object at each leaf. A `.` stands for the list item or map itself.
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
export type FieldsV1 = { readonly [segment: string]: FieldsV1 };

/** `metav1.ManagedFieldsEntry`: what one manager owns by one operation. */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: FieldsV1;
  readonly subresource?: string;
}
