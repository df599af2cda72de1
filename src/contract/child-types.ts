import type { Watch } from './controller.js';
import type { RenderedKind } from './kind.js';
import { keepIdentity, keepStatus } from './projections.js';
import { controllerOf, groupOf, objectKey } from './object.js';
import type { AnyObject } from './object.js';
import type { ResourceType } from './resource.js';

/** What a kind wants kept of an object beside its identity. */
export type Keep = (object: AnyObject) => Readonly<Record<string, unknown>> | undefined;

/** A type of children, and how its objects are treated. */
export interface ChildType extends ResourceType {
  /** See `ApplyStep.recreate`. @default false */
  readonly recreate?: boolean;
  /** See `Watch.optional`. @default false */
  readonly optional?: boolean;
  /** @default - identity, our annotations and the status */
  readonly keep?: Keep;
}

/** A type of objects that are read for the status. */
export interface RelatedType extends ResourceType {
  readonly selector: string;
  readonly keep: Keep;
  readonly nameOf: (object: AnyObject) => string | undefined;
}

/** A kind without what the adapter doesn't need. */
export interface OwningKind extends RenderedKind {
  readonly name: string;
  readonly children: readonly ChildType[];
  readonly formerChildren: readonly ResourceType[];
  /** @default - none */
  readonly related?: readonly RelatedType[];
  /** The fields that the schema of the status has. @default - any */
  readonly statusFields?: readonly string[];
}

/** What is watched for a kind whose custom resources own their children; the kind itself first. */
export function watchesFor(kind: OwningKind): Watch[] {
  const owned = (type: ResourceType): Watch => ({ type, mapsTo: (object) => ownersKey(kind.type, object) });
  return [
    {
      type: kind.type,
      keep: keepWithoutManagedFields,
      // An owner reference that blocks the owner's deletion may only be set by who may finalize the owner.
      // https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement
      writes: ['status', 'finalizers'],
      mapsTo: (cr) => [keyOf(cr)],
    },
    ...kind.children.map((type) => ({
      ...owned(type),
      writes: ['create', 'patch', 'delete'] as const,
      ...(type.optional && { optional: true }),
      ...(type.keep && { keep: projection(type.keep, keepStatus) }),
    })),
    // Of what isn't installed any more, nothing is left to be pruned.
    ...kind.formerChildren.map((type) => ({
      ...owned(type),
      optional: true,
      writes: ['delete'] as const,
    })),
    ...(kind.related ?? []).map((type) => ({
      type,
      selector: type.selector,
      readOnly: true,
      keep: projection(type.keep, keepRelated),
      mapsTo: (object: AnyObject) => relatedKey(kind.type, type, object),
    })),
  ];
}

export function keyOf({ metadata }: Pick<AnyObject, 'metadata'>): string {
  return objectKey(metadata.namespace, metadata.name);
}

/** The custom resource that controls the object, whatever version of its API the owner reference was written in. */
function ownersKey({ apiVersion, kind, namespaced }: ResourceType, object: AnyObject): string[] {
  const owner = controllerOf(object);
  if (owner?.kind !== kind) return [];
  if (groupOf(owner.apiVersion) !== groupOf(apiVersion)) return [];
  return [objectKey(namespaced ? object.metadata.namespace : undefined, owner.name)];
}

function relatedKey({ namespaced }: ResourceType, { nameOf }: RelatedType, object: AnyObject): string[] {
  const name = nameOf(object);
  return name ? [objectKey(namespaced ? object.metadata.namespace : undefined, name)] : [];
}

/** Custom resources are kept whole, for the renderer, but for the bookkeeping that nobody reads. */
function keepWithoutManagedFields(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

/** What `nameOf` goes by too: the labels. */
function keepRelated(object: AnyObject): AnyObject {
  const identity = keepIdentity(object);
  const { labels } = object.metadata;
  return labels ? { ...identity, metadata: { ...identity.metadata, labels } } : identity;
}

type Projection = NonNullable<Watch['keep']>;

/** One function for each `keep`: kinds that keep the same share a store. */
const projections = new WeakMap<Keep, Map<Projection, Projection>>();

/** The object as `base` keeps it, and what `keep` returns beside that. */
function projection(keep: Keep, base: Projection): Projection {
  const known = projections.get(keep) ?? new Map<Projection, Projection>();
  projections.set(keep, known);
  const made = known.get(base) ?? combined(keep, base);
  known.set(base, made);
  return made;
}

function combined(keep: Keep, base: Projection): Projection {
  return (object) => {
    const more = keep(object);
    if (more === undefined) return undefined;
    const kept = base(object);
    if (!kept) return undefined;
    const metadata = { ...(more.metadata as object | undefined), ...kept.metadata };
    return { ...more, ...kept, metadata };
  };
}
