import { controllerOf, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { isPartial } from './cluster.js';
import type { Cluster } from './cluster.js';

/** How many are named. */
const NAMED = 3;

/** What Kubernetes itself puts into every namespace, or leaves there for a while. */
function isKubernetesOwn({ kind, metadata: { name } }: AnyObject): boolean {
  if (kind === 'ConfigMap') return name === 'kube-root-ca.crt';
  if (kind === 'ServiceAccount') return name === 'default';
  return ['Event', 'Endpoints', 'EndpointSlice'].includes(kind);
}

/**
 * Why a namespace can't be deleted without loss, for people: `since others have something in it: ...`. Empty where it
 * can. Reads metadata alone, since there may be Secrets in it.
 * @param isOurs what goes anyway
 */
export async function leftoversIn(
  namespace: string,
  cluster: Cluster,
  isOurs: (object: AnyObject) => boolean = () => false,
): Promise<string> {
  const { types, unseen } = await cluster.namespacedTypes();
  const seen = new Map<string, AnyObject>();
  const unlisted = [...unseen];
  for (const type of types) {
    try {
      for (const object of await cluster.list(type, { namespace, metadataOnly: true }))
        seen.set(object.metadata.uid ?? objectId(object), object);
    } catch (error) {
      if (!isPartial(error)) throw error;
      unlisted.push(groupKind(type));
    }
  }
  const foreign = [...seen.values()].filter(
    (object) =>
      !isKubernetesOwn(object) &&
      object.metadata.deletionTimestamp === undefined &&
      // It goes with its owner, which is seen for itself.
      !seen.has(controllerOf(object)?.uid ?? '') &&
      !isOurs(object),
  );
  const reasons = [
    ...(foreign.length > 0 ? [`others have something in it: ${some(foreign.map(shortName))}`] : []),
    ...(unlisted.length > 0 ? [`${some(unlisted)} couldn't be looked at`] : []),
  ];
  return reasons.length > 0 ? `since ${reasons.join(', and since ')}` : '';
}

function shortName({ kind, metadata: { name } }: AnyObject): string {
  return `${kind} ${name}`;
}

function some(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return names.slice(0, NAMED).join(', ') + more;
}
