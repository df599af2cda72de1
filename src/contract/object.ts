import { createHmac, hash } from 'node:crypto';
import { OperatorError } from './error.js';

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

/** Names one object whatever version it is served in: `Deployment.apps shop/web`. */
export function objectId(object: KubernetesObject | ObjectRef): string {
  const { namespace, name } = 'metadata' in object ? object.metadata : object;
  const group = groupOf(object.apiVersion);
  return `${object.kind}${group && `.${group}`} ${objectKey(namespace, name)}`;
}

/** For people and logs: `Deployment shop/web`. */
export function describeRef(ref: ObjectRef): string {
  return `${ref.kind} ${objectKey(ref.namespace, ref.name)}`;
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
  const keyed = objects.map((object) => [keyOf(object), object] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
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

/** Reports whether a value is what JSON calls an object, and neither a list nor null. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reports whether a value is a map or a list. */
export function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Returns what is at a path in a value, if anything. */
export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, step) => (at as Readonly<Record<string, unknown>> | null)?.[step], value);
}

/**
 * Maximum depth of the values that are looked at. The API server stores 10,000 levels and `JSON.parse` reads any number, but each
 * recursion ends at the end of the stack, `isDeepStrictEqual` first, after some 900.
 */
export const MAX_DEPTH = 200;

/** Reports whether a value is nested too deeply to be looked at; one that contains itself is, too. */
export function isTooDeep(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  // The list itself, and no call for text: each object that enters the cache passes here.
  for (const child of Array.isArray(value) ? (value as unknown[]) : Object.values(value))
    if (typeof child === 'object' && isTooDeep(child, levels - 1)) return true;
  return false;
}

/** Returns the error for a value that is nested too deeply. */
export function tooDeep(what: string): OperatorError {
  return new OperatorError({
    reason: 'TooDeep',
    message: `${what} is nested more than ${MAX_DEPTH} levels deep, the most that is looked at: remove levels`,
  });
}

/**
 * Returns JSON with sorted keys, at every depth.
 * @throws OperatorError `TooDeep`
 */
export function canonicalJson(value: unknown, levels = MAX_DEPTH): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (levels === 0) throw tooDeep('A value');
  let json = '';
  if (Array.isArray(value)) {
    for (const item of value) json += `${json && ','}${canonicalJson(item, levels - 1)}`;
    return `[${json}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of sorted(Object.keys(members))) {
    const member = members[name];
    if (member !== undefined)
      json += `${json && ','}${JSON.stringify(name)}:${canonicalJson(member, levels - 1)}`;
  }
  return `{${json}}`;
}

/** Sorts strings in place. `sort` allocates even where they are sorted already, as most of the API server are. */
export function sorted(strings: string[]): string[] {
  const isSorted = strings.every((one, index) => index === 0 || (strings[index - 1] as string) <= one);
  return isSorted ? strings : strings.sort();
}

const hashes = new WeakMap<object, string>();

/** Returns the hash of an object that nothing changes any more; the same for the same content, across releases. */
export function contentHash(object: object): string {
  let known = hashes.get(object);
  if (known === undefined) {
    known = hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
    hashes.set(object, known);
  }
  return known;
}

/** Checksum of a Secret without a UID: that of a file, which no cluster has. */
export const UNKNOWN_CHECKSUM = 'unknown-without-a-cluster';

/** Matches checksums that are made of Secrets: those of equal Secrets differ, so comparisons leave them out. */
export const SECRET_CHECKSUM = /\b(?:keyed-[0-9a-f]{32}|unknown-without-a-cluster)\b/g;

/**
 * Returns the checksum of what a Secret holds, keyed by its UID: random, and unknown to those who can't read the Secret, so that
 * they can't try out values.
 */
export function secretChecksum({ uid }: Pick<ObjectMeta, 'uid'>, content: object): string {
  if (uid === undefined) return UNKNOWN_CHECKSUM;
  return keyed(createHmac('sha256', uid).update(canonicalJson(content)).digest('hex'));
}

/** Returns a checksum over contents, of which those of Secrets are given as their checksums. */
export function checksumOver(contents: readonly unknown[]): string {
  if (contents.includes(UNKNOWN_CHECKSUM)) return UNKNOWN_CHECKSUM;
  const plain = contentHash({ contents: canonicalJson(contents) });
  return contents.some((one) => typeof one === 'string' && one.startsWith('keyed-')) ? keyed(plain) : plain;
}

function keyed(digest: string): string {
  return `keyed-${digest.slice(0, 32)}`;
}

/** Freezes what is shared, with all that is in it, and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
  return value;
}
