import type { Scope } from './api.js';
import type { WatchedStore } from './stores.js';

/** What has to be watched for one store: everything at once, or each namespace by itself. */
export function scopesOf(watched: WatchedStore, namespaces: readonly string[]): Scope[] {
  const scope = { type: watched.type, ...(watched.selector !== undefined && { selector: watched.selector }) };
  if (!watched.type.namespaced || namespaces.length === 0) return [scope];
  return namespaces.map((namespace) => ({ ...scope, namespace }));
}
