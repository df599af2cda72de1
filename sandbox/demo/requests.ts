import type { AuditEntry } from '../audit.js';

/** How many requests there were, by Kubernetes' verb. A watch is in the audit log twice and counts once. */
export function countRequests(
  entries: readonly Pick<AuditEntry, 'auditID' | 'verb'>[],
): ReadonlyMap<string, number> {
  const verbs = new Map(entries.map(({ auditID, verb }) => [auditID, verb]));
  const counts = new Map<string, number>();
  for (const verb of verbs.values()) counts.set(verb, (counts.get(verb) ?? 0) + 1);
  return counts;
}

/** For example `12 requests: 7 patch, 3 watch, 2 list`. */
export function describeRequests(counts: ReadonlyMap<string, number>): string {
  const byCount = [...counts].sort(([, a], [, b]) => b - a);
  const total = byCount.reduce((sum, [, count]) => sum + count, 0);
  return `${total} requests: ${byCount.map(([verb, count]) => `${count} ${verb}`).join(', ')}`;
}
