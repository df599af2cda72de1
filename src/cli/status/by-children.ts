import type { ChildStatus, ResourceStatus, Verdict } from './document.js';
import type { Place } from './operators.js';

/**
 * A custom resource of which no controller has said anything, since none is there, is judged by its children, as after
 * `reconstruct apply`; unless some of them couldn't be listed. Any other stays as it is.
 * @param unattended the places that no operator looks after
 */
export function byChildren(resource: ResourceStatus, unattended: readonly Place[]): ResourceStatus {
  const { verdict, children, unseen = [], kind, apiVersion, namespace } = resource;
  const isUnattended = unattended.some(
    (place) =>
      place.kind.type.kind === kind &&
      place.kind.type.apiVersion === apiVersion &&
      place.namespace === namespace,
  );
  if (!isUnattended || verdict.word !== 'Unknown' || children.length === 0 || unseen.length > 0)
    return resource;
  return {
    ...resource,
    verdict: {
      ...{ word: wordOf(children), reason: 'ByChildren', current: true, byChildren: true },
      message: 'Nobody puts drift right: no operator looks after it',
    },
  };
}

function wordOf(children: readonly ChildStatus[]): Verdict['word'] {
  if (children.some(({ phase }) => phase === 'stalled')) return 'Stalled';
  return children.every(({ phase }) => phase === 'ready') ? 'Ready' : 'Reconciling';
}
