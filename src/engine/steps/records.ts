import { ADOPT_BY_ANNOTATION, areSiblings } from '../../contract/names.js';
import type { AnyObject, FieldsV1, ManagedFieldsEntry } from '../../contract/object.js';
import {
  dropEmpty,
  fieldAt,
  isBare,
  isLeaf,
  isLegacy,
  itemOf,
  memberOf,
  touches,
  union,
  without,
} from './managed-fields.js';
import type { FieldPath } from './managed-fields.js';
import { isAppliedBy, managedFieldsOf } from '../../values/projections.js';

/*
 * Works out other records of field managers than those of an object: for an adoption, and where a record keeps an apply from
 * being stored.
 */

/** Returns a set without the path and all below it. */
export function withoutSubtree(fields: FieldsV1, [segment = '', ...rest]: FieldPath): FieldsV1 {
  const { [segment]: child, ...others } = fields;
  if (!child) return fields;
  const left = rest.length === 0 ? undefined : withoutSubtree(child, rest);
  if (left === child) return fields;
  return !left || isBare(left) ? others : { ...others, [segment]: left };
}

/** Reports whether fields of an entry may be taken: of a legacy manager, or of a writer that doesn't apply. */
function givesWay(entry: ManagedFieldsEntry): boolean {
  return isLegacy(entry) || (entry.operation === 'Update' && !entry.subresource);
}

/**
 * Returns the entries of an object when this manager alone owns some items of lists, so that its next apply removes those
 * that it doesn't name. Taken from entries that give way.
 */
export function withItemsTaken(
  object: AnyObject,
  manager: string,
  items: readonly FieldPath[],
): ManagedFieldsEntry[] {
  const others = managedFieldsOf(object).map((entry) => {
    if (!givesWay(entry)) return entry;
    return { ...entry, fieldsV1: items.reduce(withoutSubtree, entry.fieldsV1 ?? {}) };
  });
  const taken = items.map((path) => fieldsAt(path, { '.': {} }));
  return withOwn(others, object, manager, taken);
}

const OFFER: FieldPath = ['f:metadata', 'f:annotations', `f:${ADOPT_BY_ANNOTATION}`];

/** Returns entries when this manager alone owns the offer of an adoption, so that its next apply removes the annotation. */
export function withOfferTaken(
  entries: readonly ManagedFieldsEntry[],
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] {
  const others = entries.map((entry) => ({
    ...entry,
    fieldsV1: withoutSubtree(entry.fieldsV1 ?? {}, OFFER),
  }));
  return withOwn(others, object, manager, [fieldsAt(OFFER, {})]);
}

function fieldsAt(path: FieldPath, leaf: FieldsV1): FieldsV1 {
  return path.reduceRight((inner, segment) => ({ [segment]: inner }), leaf);
}

/** Adds fields to what a manager has applied. */
function withOwn(
  entries: readonly ManagedFieldsEntry[],
  { apiVersion }: AnyObject,
  manager: string,
  fields: readonly FieldsV1[],
): ManagedFieldsEntry[] {
  const own: ManagedFieldsEntry = entries.find((entry) => isAppliedBy(manager, entry)) ?? {
    ...{ manager, operation: 'Apply', apiVersion, fieldsType: 'FieldsV1' },
  };
  const fieldsV1 = fields.reduce(union, own.fieldsV1 ?? {});
  return dropEmpty([...entries.filter((entry) => entry !== own), { ...own, fieldsV1 }]);
}

/** Returns the entries of an object when what other managers of the same kind have applied is this manager's. */
export function withSiblingsTaken(object: AnyObject, manager: string): readonly ManagedFieldsEntry[] {
  const entries = managedFieldsOf(object);
  const isSibling = (entry: ManagedFieldsEntry): boolean =>
    entry.manager !== manager &&
    areSiblings(entry.manager ?? '', manager) &&
    isAppliedBy(entry.manager ?? '', entry);
  const taken = entries.filter(isSibling).flatMap(({ fieldsV1 }) => fieldsV1 ?? []);
  if (taken.length === 0) return entries;
  return withOwn(
    entries.filter((entry) => !isSibling(entry)),
    object,
    manager,
    taken,
  );
}

/**
 * Returns the entries of an object when what legacy managers wrote is this manager's, so that its next apply removes what
 * it doesn't name; the same entries where they wrote nothing. Labels and annotations stay theirs, also those of a template:
 * other tools go by them. So do replicas, which an autoscaler keeps without a record while it agrees with them.
 * @see https://github.com/kubernetes/client-go/blob/v0.36.3/util/csaupgrade/upgrade.go
 */
export function withContentTaken(object: AnyObject, manager: string): readonly ManagedFieldsEntry[] {
  const entries = managedFieldsOf(object);
  const taken: FieldsV1[] = [];
  const others = entries.map((entry) => {
    const { fieldsV1 = {}, apiVersion } = entry;
    const content = isLegacy(entry) && apiVersion === object.apiVersion ? contentOf(fieldsV1) : {};
    if (isLeaf(content)) return entry;
    taken.push(content);
    return { ...entry, fieldsV1: without(fieldsV1, content) };
  });
  return taken.length === 0 ? entries : withOwn(others, object, manager, taken);
}

function contentOf({ 'f:spec': spec, ...fields }: FieldsV1): FieldsV1 {
  const { 'f:replicas': _, ...specified } = spec ?? {};
  const { 'f:status': status, ...content } = withoutMetadata({
    ...fields,
    ...(spec && { 'f:spec': specified }),
  });
  return content;
}

/** A value of the name, as in a ConfigMap, is no metadata. */
function withoutMetadata(fields: FieldsV1): FieldsV1 {
  const left = Object.entries(fields).flatMap(([segment, child]) => {
    if (isLeaf(child)) return [[segment, child] as const];
    const rest = segment === 'f:metadata' ? {} : withoutMetadata(child);
    return isLeaf(rest) ? [] : [[segment, rest] as const];
  });
  return Object.fromEntries(left);
}

/** Returns the entries of an object when what this manager applied is recorded in the version that it applies now. */
export function withApiVersion(object: AnyObject, manager: string, apiVersion: string): ManagedFieldsEntry[] {
  return managedFieldsOf(object).map((entry) =>
    isAppliedBy(manager, entry) ? { ...entry, apiVersion } : entry,
  );
}

/**
 * Returns the items of a keyed list that keep an intent from being stored, because they have a value that one of its own
 * items has: those that the intent doesn't name itself. In lists of lists, only those below items that it does name.
 * @param field as the API server names it, e.g. `spec.ports[1].name`
 */
export function itemsInTheWay(
  live: AnyObject,
  intent: AnyObject,
  field: string,
  value: unknown,
): FieldPath[] {
  const sets = managedFieldsOf(live).map(({ fieldsV1 = {} }) => fieldsV1);
  return search(field.replaceAll(/\[\d+\]/g, '.[]').split('.'), value, live, intent, sets);
}

/** Returns the items of keyed lists that stand beside those of an intent. */
export function itemsBeside(live: AnyObject, intent: AnyObject): FieldPath[] {
  const sets = managedFieldsOf(live).map(({ fieldsV1 = {} }) => fieldsV1);
  return besideIn(sets, intent);
}

/** Reports whether an object has a field of which every owner gives way: a default, or what a write has left. */
export function isUnapplied(object: AnyObject, path: FieldPath): boolean {
  const owners = managedFieldsOf(object).filter(({ fieldsV1 = {} }) => touches(fieldsV1, path));
  return owners.every(givesWay) && fieldAt(object, path) !== undefined;
}

function besideIn(sets: readonly FieldsV1[], intent: unknown): FieldPath[] {
  return [...new Set(sets.flatMap(Object.keys))].flatMap((segment) => {
    if (segment === 'f:metadata' || segment === '.' || segment.startsWith('v:')) return [];
    const isItem = segment.startsWith('k:');
    const wanted = isItem ? itemOf(intent, segment) : memberOf(intent, segment.slice(2));
    if (wanted === undefined) return isItem ? [[segment]] : [];
    const inside = sets.flatMap((set) => set[segment] ?? []);
    return besideIn(inside, wanted).map((path) => [segment, ...path]);
  });
}

/** @param names of fields from here on, with `[]` for an item of a list; the last is the field with the value */
function search(
  [name, ...names]: readonly string[],
  value: unknown,
  live: unknown,
  intent: unknown,
  sets: readonly FieldsV1[],
): FieldPath[] {
  if (name === undefined) return [];
  if (name !== '[]') {
    const inside = sets.flatMap((set) => set[`f:${name}`] ?? []);
    if (inside.length === 0) return [];
    const found = search(names, value, memberOf(live, name), memberOf(intent, name), inside);
    return found.map((path) => [`f:${name}`, ...path]);
  }
  const segments = new Set(sets.flatMap((set) => Object.keys(set)).filter((key) => key.startsWith('k:')));
  return [...segments].flatMap((segment) => {
    const [item, wanted] = [itemOf(live, segment), itemOf(intent, segment)];
    if (names.length === 1)
      return wanted === undefined && memberOf(item, names[0] ?? '') === value ? [[segment]] : [];
    if (wanted === undefined) return [];
    const inside = sets.flatMap((set) => set[segment] ?? []);
    return search(names, value, item, wanted, inside).map((path) => [segment, ...path]);
  });
}
