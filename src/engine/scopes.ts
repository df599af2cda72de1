import type { Scope } from './api.js';
import type { WatchedStore } from './cache.js';

/** What has to be watched for one store: everything at once, or each namespace by itself. */
export function scopesOf(
  watched: Pick<WatchedStore, 'type' | 'selector' | 'name' | 'namespaces'>,
  namespaces: readonly string[],
): Scope[] {
  const { type, selector, name } = watched;
  const scope = { type, ...(selector !== undefined && { selector }), ...(name !== undefined && { name }) };
  const only = watched.namespaces ?? namespaces;
  if (!type.namespaced || (only.length === 0 && !watched.namespaces)) return [scope];
  return only.map((namespace) => ({ ...scope, namespace }));
}
