import type { CustomResourceProps } from '../contract/kind.js';
import type { ObjectMeta } from '../contract/object.js';

/**
 * Returns labels and annotations of a custom resource to be copied to an object that its construct renders, as those by which costs are
 * attributed. Only of a kind that `readsMetadata`.
 *
 * @param metadata of the props
 * @param names whole names, or beginnings that end with `*`: `['team', 'billing.example.com/*']`
 * @example
 * ```ts
 * new ApiObject(this, 'Deployment', {
 *   metadata: { name: metadata.name, ...inheritedMetadata(metadata, ['team']) },
 * ```
 */
export function inheritedMetadata(
  metadata: CustomResourceProps<unknown>['metadata'],
  names: readonly string[],
): Pick<ObjectMeta, 'labels' | 'annotations'> {
  const isNamed = (name: string): boolean =>
    names.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
  const pick = (all: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> | undefined => {
    const named = Object.entries(all).filter(([name]) => isNamed(name));
    return named.length > 0 ? Object.fromEntries(named) : undefined;
  };
  const [labels, annotations] = [pick(metadata.labels), pick(metadata.annotations)];
  return { ...(labels && { labels }), ...(annotations && { annotations }) };
}
