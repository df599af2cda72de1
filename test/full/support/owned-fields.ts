import { isDeepStrictEqual } from 'node:util';
import { APPLIED_HASH_ANNOTATION } from '../../../src/contract/names.js';
import type { AnyObject } from '../../../src/contract/object.js';

interface Fields {
  readonly [segment: string]: Fields;
}

export interface ManagedFieldsEntry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: Fields;
}

type Json = Record<string, unknown>;

/**
 * The part of a live object that a manager has applied and still owns: the values of the paths in its entry of
 * `managedFields`, and what names the object.
 *
 * **Errors**: if the manager has applied nothing.
 */
export function appliedBy(manager: string, object: AnyObject): AnyObject {
  const entry = appliedEntriesOf(object).find((candidate) => candidate.manager === manager);
  if (!entry) throw new Error(`${manager} has applied nothing to ${object.kind} ${object.metadata.name}`);
  return ownedBy(entry, object);
}

/** The entries of an object's `managedFields`. */
export function entriesOf(object: AnyObject): readonly ManagedFieldsEntry[] {
  return (object.metadata as { managedFields?: readonly ManagedFieldsEntry[] }).managedFields ?? [];
}

/** Those of whoever has applied something to it, its status left aside. */
export function appliedEntriesOf(object: AnyObject): ManagedFieldsEntry[] {
  return entriesOf(object).filter(
    ({ operation, subresource }) => operation === 'Apply' && subresource === undefined,
  );
}

/** The part of a live object that is owned by an entry of its `managedFields`, and what names the object. */
export function ownedBy(entry: ManagedFieldsEntry, object: AnyObject): AnyObject {
  const { name, namespace } = object.metadata;
  const owned = pick(object, entry.fieldsV1) as AnyObject;
  return {
    ...owned,
    ...{ apiVersion: object.apiVersion, kind: object.kind },
    metadata: { ...owned.metadata, name, ...(namespace !== undefined && { namespace }) },
  };
}

/** Without what the controller adds to what was rendered: the owner reference and the annotation with the hash. */
export function withoutBookkeeping(object: AnyObject): AnyObject {
  const { ownerReferences, annotations = {}, ...metadata } = object.metadata;
  const others = Object.entries(annotations).filter(([key]) => key !== APPLIED_HASH_ANNOTATION);
  const kept = others.length === 0 ? {} : { annotations: Object.fromEntries(others) };
  return { ...object, metadata: { ...metadata, ...kept } };
}

/**
 * As the API server stores what it was sent: quantities that were written as numbers are strings, fractions count in
 * thousandths, and references that are owned as a whole have their defaults.
 */
export function asStored(object: AnyObject): AnyObject {
  return stored(object, []) as AnyObject;
}

const DEFAULTS: Readonly<Record<string, Json>> = {
  fieldRef: { apiVersion: 'v1' },
  resourceFieldRef: { divisor: '0' },
  serviceAccountToken: { expirationSeconds: 3600 },
  parentRefs: { group: 'gateway.networking.k8s.io', kind: 'Gateway' },
  backendRefs: { group: '', kind: 'Service', weight: 1 },
};

function stored(value: unknown, path: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => stored(item, path));
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([key, inner]) => [key, stored(inner, [...path, key])] as const);
    return { ...DEFAULTS[path.at(-1) ?? ''], ...Object.fromEntries(fields) };
  }
  return isQuantity(path) ? storedQuantity(value) : value;
}

function isQuantity(path: readonly string[]): boolean {
  const [last = '', parent, grandparent] = [...path].reverse();
  if (grandparent === 'resources' || (parent === 'target' && last === 'value')) return true;
  return ['divisor', 'averageValue', 'tolerance'].includes(last);
}

function storedQuantity(value: unknown): unknown {
  if (typeof value === 'string' && /^0\.[0-9]{1,3}$/.test(value))
    return `${Math.round(Number(value) * 1000)}m`;
  return typeof value === 'number' ? String(value) : value;
}

function pick(value: unknown, fields: Fields): unknown {
  const segments = Object.keys(fields).filter((segment) => segment !== '.');
  // A leaf; what has only the mark for itself holds nothing of the manager's.
  if (segments.length === 0) return '.' in fields ? emptyLike(value) : value;
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      const segment = segments.find((candidate) => names(candidate, item));
      return segment === undefined ? [] : [pickItem(item, segment, fields[segment]!)];
    });
  }
  return Object.fromEntries(
    segments
      .map((segment) => segment.slice(2))
      .map((key) => [key, pick((value as Json)[key], fields[`f:${key}`]!)]),
  );
}

/** The keys of an item are owned with it, whether or not they are named below it. */
function pickItem(item: unknown, segment: string, fields: Fields): unknown {
  const picked = pick(item, fields);
  return segment.startsWith('k:')
    ? { ...(JSON.parse(segment.slice(2)) as Json), ...(picked as Json) }
    : picked;
}

function names(segment: string, item: unknown): boolean {
  const wanted: unknown = JSON.parse(segment.slice(2));
  if (segment.startsWith('v:')) return isDeepStrictEqual(wanted, item);
  return Object.entries(wanted as Json).every(([key, value]) =>
    isDeepStrictEqual((item as Json)[key], value),
  );
}

function emptyLike(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return typeof value === 'object' && value !== null ? {} : value;
}
