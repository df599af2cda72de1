import type { AnyObject } from '../contract/object.js';

/**
 * A set of fields as the API server records it in `metadata.managedFields`: a tree of `f:<field>`, `k:<list keys>`
 * and `v:<set value>`, with an empty object at each leaf. A `.` stands for the list item or map itself.
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

/** The segments from the root down to a field. */
export type FieldPath = readonly string[];

/** Everything that the API server has recorded about who owns what. */
export function managedFieldsOf(object: AnyObject): readonly ManagedFieldsEntry[] {
  const { managedFields } = object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields ?? [];
}

/** Whether an entry is what this manager has applied to the object itself. */
export function isAppliedBy(manager: string, entry: ManagedFieldsEntry): boolean {
  return entry.manager === manager && entry.operation === 'Apply' && !entry.subresource;
}

/** The paths that are in one set and not in another; several that are missing as a whole are one path. */
export function difference(fields: FieldsV1, others: FieldsV1): FieldPath[] {
  return Object.entries(fields).flatMap(([segment, child]) => {
    if (segment === '.') return [];
    const other = others[segment];
    if (!other) return [[segment, ...onlyPath(child)]];
    return difference(child, other).map((path) => [segment, ...path]);
  });
}

/** As far down as there is nothing beside. */
function onlyPath(fields: FieldsV1): FieldPath {
  const [only, ...others] = Object.keys(fields);
  if (only === undefined || only === '.' || others.length > 0) return [];
  return [only, ...onlyPath(fields[only] ?? {})];
}

/** Whether a set has something at the path, or owns a list or map as a whole in which the path lies. */
export function touches(fields: FieldsV1, path: FieldPath): boolean {
  let node = fields;
  for (const [depth, segment] of path.entries()) {
    const child = node[segment];
    if (!child) return depth > 0 && isLeaf(node);
    node = child;
  }
  return true;
}

/**
 * A set without what another has too. Of an item of a keyed list that both own, only items in lists below it are left:
 * else a default that the first owns there would keep the item alive when the second drops it.
 * @returns the same set if the two have nothing in common
 */
export function without(fields: FieldsV1, others: FieldsV1): FieldsV1 {
  let left: Record<string, FieldsV1> | undefined;
  for (const [segment, child] of Object.entries(fields)) {
    const other = others[segment];
    if (!other || segment === '.') continue;
    const rest = withoutBelow(segment, child, other);
    if (rest === child) continue;
    left ??= { ...fields };
    if (rest) left[segment] = rest;
    else Reflect.deleteProperty(left, segment);
  }
  return left ?? fields;
}

/** What is left of one child; nothing if it goes. */
function withoutBelow(segment: string, child: FieldsV1, other: FieldsV1): FieldsV1 | undefined {
  if (isLeaf(child) && isLeaf(other)) return undefined;
  const bothOwnItem = segment.startsWith('k:') && '.' in child && '.' in other;
  if (bothOwnItem) return itemsBelow(child, other);
  const rest = without(child, other);
  // That a map is there is of no interest to whoever owns nothing in it.
  return rest !== child && Object.keys(rest).every((name) => name === '.') ? undefined : rest;
}

/** The items of lists in a set that aren't in another; nothing if there are none. */
function itemsBelow(fields: FieldsV1, others: FieldsV1): FieldsV1 | undefined {
  const items: Record<string, FieldsV1> = {};
  for (const [segment, child] of Object.entries(fields)) {
    if (segment === '.') continue;
    const other = others[segment];
    const isField = segment.startsWith('f:');
    const left = isField
      ? itemsBelow(child, other ?? {})
      : other
        ? withoutBelow(segment, child, other)
        : child;
    if (left) items[segment] = left;
  }
  return isLeaf(items) ? undefined : items;
}

/** A set without what is at the path, and all below it. */
export function withoutSubtree(fields: FieldsV1, [segment = '', ...rest]: FieldPath): FieldsV1 {
  const { [segment]: child, ...others } = fields;
  if (!child) return fields;
  const left = rest.length === 0 ? undefined : withoutSubtree(child, rest);
  if (left === child) return fields;
  const empty = !left || Object.keys(left).every((name) => name === '.');
  return empty ? others : { ...others, [segment]: left };
}

/** A set with another one added to it. */
export function union(fields: FieldsV1, others: FieldsV1): FieldsV1 {
  const both: Record<string, FieldsV1> = { ...fields };
  for (const [segment, child] of Object.entries(others)) {
    const known = both[segment];
    both[segment] = known ? union(known, child) : child;
  }
  return both;
}

/** The set that has exactly one path, and all that is given below it. */
export function setOf(path: FieldPath, below: FieldsV1): FieldsV1 {
  return path.reduceRight<FieldsV1>((node, segment) => ({ [segment]: node }), below);
}

/** For people: `.spec.template.spec.containers[name="app"].image`. */
export function describePath(path: FieldPath): string {
  return path.map(describeSegment).join('');
}

function describeSegment(segment: string): string {
  const value = segment.slice(2);
  if (segment.startsWith('k:')) {
    const keys = Object.entries(JSON.parse(value) as Record<string, unknown>);
    return `[${keys.map(([name, key]) => `${name}=${JSON.stringify(key)}`).join(',')}]`;
  }
  if (segment.startsWith('v:')) return `[${value}]`;
  return /^[\w-]+$/.test(value) ? `.${value}` : `[${JSON.stringify(value)}]`;
}

function isLeaf(fields: FieldsV1): boolean {
  return Object.keys(fields).length === 0;
}
