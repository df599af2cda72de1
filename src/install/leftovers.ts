import { controllerOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
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
 * What of others is in a namespace, for people; empty where it can be deleted without loss.
 * @param isOurs what goes anyway
 */
export async function leftoversIn(
  namespace: string,
  cluster: Cluster,
  isOurs: (object: AnyObject) => boolean = () => false,
): Promise<string> {
  const names: string[] = [];
  for (const type of await cluster.namespacedTypes()) {
    const objects = await cluster.list(type, { namespace });
    const foreign = objects.filter(
      (object) =>
        !isKubernetesOwn(object) &&
        object.metadata.deletionTimestamp === undefined &&
        // It goes with its owner, which is seen for itself.
        !controllerOf(object) &&
        !isOurs(object),
    );
    names.push(...foreign.map(({ kind, metadata: { name } }) => `${kind} ${name}`));
  }
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return names.slice(0, NAMED).join(', ') + more;
}
