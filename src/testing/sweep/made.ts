import type { Kind, KindContext } from '../../contract/kind.js';
import type { Watch } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';

/** Objects of a type that a kind applies, as far as its watches say where. */
export interface Made {
  readonly type: ResourceType;
  /** Shared by many, and in these namespaces alone. @default - they are the custom resource's own, beside it */
  readonly namespaces?: readonly string[];
  /** Of what is shared. @default - every name */
  readonly name?: string;
  /** Whether one that has gone is made anew, not only applied to. */
  readonly isCreated: boolean;
}

/** What the controllers of a kind apply. */
export function madeBy(kind: Kind, context: KindContext): Made[] {
  return watchesOf(kind, context)
    .filter(isApplied)
    .map(({ type, namespaces, name, writes = [] }) => ({
      ...{ type, isCreated: writes.includes('create') },
      ...(namespaces && { namespaces }),
      ...(name !== undefined && { name }),
    }));
}

/** Types of objects that a kind deletes and never applies: they are others'. */
export function removedBy(kind: Kind, context: KindContext): ResourceType[] {
  const watches = watchesOf(kind, context);
  const applied = new Set(watches.filter(isApplied).map(({ type }) => groupKind(type)));
  return distinct(
    watches
      .filter(({ type, writes = [] }) => writes.includes('delete') && !applied.has(groupKind(type)))
      .map(({ type }) => type),
  );
}

export function distinct(types: readonly ResourceType[]): ResourceType[] {
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

/** For how long the controllers of a kind may wait for further events before they do anything. */
export function settleMilliseconds(kind: Kind, context: KindContext): number {
  return Math.max(0, ...kind.controllers(context).map(({ settle }) => settle?.quietMilliseconds ?? 0));
}

export function isMadeBy(
  { type, namespaces, name }: Made,
  { kind, apiVersion, metadata }: AnyObject,
): boolean {
  return (
    groupKind(type) === groupKind({ kind, apiVersion }) &&
    (namespaces?.includes(metadata.namespace ?? '') ?? true) &&
    (name ?? metadata.name) === metadata.name
  );
}

function watchesOf(kind: Kind, context: KindContext): Watch[] {
  return kind
    .controllers(context)
    .flatMap(({ watches }) => watches)
    .filter(({ type }) => type.namespaced && groupKind(type) !== groupKind(kind.type));
}

function isApplied({ writes = [] }: Watch): boolean {
  return writes.includes('create') || writes.includes('patch');
}
