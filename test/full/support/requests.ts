import type { AuditEntry } from '../../../sandbox/audit.js';
import type { Cluster } from './cluster.js';

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/**
 * The requests of one user that are received from the moment this is called, by the API server's audit log: those that were
 * answered, and those whose effect is seen.
 * @param namespace - only those about objects in it
 */
export async function requestsFromNowOn(
  cluster: Cluster,
  user: string,
  namespace?: string,
): Promise<() => Promise<AuditEntry[]>> {
  const from = Date.now();
  const before = await cluster.sandbox.audit(user);
  const known = new Set(before.map(({ auditID }) => auditID));
  return async () => {
    const since = (await cluster.sandbox.audit(user)).slice(before.length);
    // A watch that was there already may end only now.
    const isNew = ({ auditID, requestReceivedTimestamp }: AuditEntry): boolean =>
      !known.has(auditID) && Date.parse(requestReceivedTimestamp) >= from;
    return onePerRequest(since.filter(isNew).filter(isIn(namespace)));
  };
}

/** Selects the requests about one namespace; all of them where none is given. */
export function isIn(namespace: string | undefined): (entry: AuditEntry) => boolean {
  return ({ objectRef }) => namespace === undefined || objectRef?.namespace === namespace;
}

/** Those that change something. */
export function writes(entries: readonly AuditEntry[]): AuditEntry[] {
  return entries.filter(({ verb }) => WRITES.has(verb));
}

/** For messages and assertions: `patch deployments shop/web 201`. */
export function summary({ verb, objectRef, code }: AuditEntry): string {
  const { resource = '', subresource, namespace = '', name = '' } = objectRef ?? {};
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `${verb} ${what} ${namespace}/${name} ${code ?? ''}`;
}

/** A watch has two entries: one when it begins, one when it ends. */
function onePerRequest(entries: readonly AuditEntry[]): AuditEntry[] {
  return [...new Map(entries.map((entry) => [entry.auditID, entry])).values()];
}
