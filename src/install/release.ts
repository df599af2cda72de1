import type { Kind } from '../contract/kind.js';
import { childrenFieldManager } from '../contract/names.js';
import { controllerOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { nameOf } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';

/** Something of a kind's in an object that isn't its own. */
export interface Share {
  readonly type: ResourceType;
  readonly object: AnyObject;
  readonly fieldManager: string;
}

/**
 * Where kinds have written into objects that are shared, by the record of the API server: whatever targets they were
 * told of, now or earlier.
 */
export async function sharesOf(kinds: readonly Kind[], cluster: Cluster): Promise<Share[]> {
  const shares = await Promise.all(
    kinds.filter(({ rendering }) => 'together' in rendering).map((kind) => sharesOfKind(kind, cluster)),
  );
  // A port is closed before what it leads to is taken away.
  return shares.flat().sort((a, b) => rank(a) - rank(b));
}

async function sharesOfKind(kind: Kind, cluster: Cluster): Promise<Share[]> {
  const fieldManager = childrenFieldManager(kind.type.kind);
  const found = await Promise.all(
    appliedTypes(kind).map(async (type) => {
      const objects = await cluster.list(type);
      return objects
        .filter((object) => isManagedBy(fieldManager, object) && !controllerOf(object))
        .map((object) => ({ type, object, fieldManager }));
    }),
  );
  return found.flat();
}

function appliedTypes(kind: Kind): ResourceType[] {
  const types = kind
    .controllers({ render: () => [] })
    .flatMap(({ watches }) => watches)
    .filter(({ writes }) => writes?.includes('patch'))
    .map(({ type }) => type);
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

function isManagedBy(fieldManager: string, { metadata }: AnyObject): boolean {
  const { managedFields = [] } = metadata as {
    readonly managedFields?: readonly { manager?: string; operation?: string; subresource?: string }[];
  };
  return managedFields.some(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === 'Apply' && !subresource,
  );
}

function rank({ type }: Share): number {
  return type.kind === 'Service' ? 0 : 1;
}

/** Gives up all that is ours in an object, and nothing else: an intent that names nothing but the object. */
export async function release(
  { type, object, fieldManager }: Share,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const { namespace, name, uid } = object.metadata;
  const nothing = {
    ...{ apiVersion: type.apiVersion, kind: type.kind },
    metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
  };
  await cluster.apply(type, nothing, { fieldManager, force: false });
  tell(`${nameOf(nothing)} released from ${fieldManager}`);
}
