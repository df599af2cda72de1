import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { childrenFieldManager } from '../contract/names.js';
import { controllerOf, objectId } from '../contract/object.js';
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
      const objects = await cluster.list(type, { metadataOnly: true });
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

/** How often it is looked again for what was replaced or has gone under the hand. */
const MOST_LOOKS = 10;

/**
 * Gives up all that is ours in these objects. Where one was replaced or has gone meanwhile, it is looked again.
 * @returns what others' objects can't do without: that keeps none of the others
 */
export async function releaseAll(
  seen: readonly Share[],
  look: () => Promise<readonly Share[]>,
  cluster: Cluster,
  tell: Tell,
): Promise<OperatorError[]> {
  const refusals = new Map<string, OperatorError>();
  let shares = seen;
  for (let looks = 1; shares.length > 0; looks++) {
    let isStale = false;
    for (const share of shares) {
      try {
        await release(share, cluster, tell);
      } catch (error) {
        const reason = error instanceof OperatorError ? error.reason : undefined;
        if (reason === 'Invalid') refusals.set(idOf(share), error as OperatorError);
        else if ((reason === 'Conflict' || reason === 'NotFound') && looks < MOST_LOOKS) isStale = true;
        else throw error;
      }
    }
    shares = isStale ? (await look()).filter((share) => !refusals.has(idOf(share))) : [];
  }
  return [...refusals.values()];
}

function idOf({ object, fieldManager }: Share): string {
  return `${objectId(object)} ${fieldManager}`;
}

/** An intent that names nothing but the object gives up all that is ours in it, and nothing else. */
async function release({ type, object, fieldManager }: Share, cluster: Cluster, tell: Tell): Promise<void> {
  const { namespace, name, uid } = object.metadata;
  const nothing = {
    ...{ apiVersion: type.apiVersion, kind: type.kind },
    metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
  };
  await cluster.apply(type, nothing, { fieldManager, force: false });
  tell(`${nameOf(nothing)} released from ${fieldManager}`);
}
