import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { ownUsers } from './users.js';

/** One line of the audit log: a request, at one of its stages. */
export interface AuditEntry {
  /** The same for all entries of one request. */
  readonly auditID: string;
  /** ResponseStarted comes for watches only, when they begin; ResponseComplete when any request has ended. */
  readonly stage: 'ResponseStarted' | 'ResponseComplete' | 'Panic';
  readonly user: string;
  readonly userAgent?: string;
  /** Kubernetes' verb, for example `patch` or `watch`. */
  readonly verb: string;
  /** Path and query. */
  readonly uri: string;
  readonly objectRef?: AuditObjectRef;
  /** The HTTP status. */
  readonly code?: number;
  /** RFC 3339, with microseconds. */
  readonly requestReceivedTimestamp: string;
  /** RFC 3339, with microseconds. */
  readonly stageTimestamp: string;
}

/** The object a request is about. */
export interface AuditObjectRef {
  readonly apiGroup?: string;
  readonly apiVersion?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Logs who asked for what, without bodies, and leaves out the control plane's own requests. */
export function auditPolicy(): string {
  return stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [
      { level: 'None', users: ['system:apiserver', ...Object.values(ownUsers)] },
      { level: 'None', userGroups: ['system:serviceaccounts:kube-system'] },
      { level: 'Metadata' },
    ],
  });
}

/** The entries of one user in an audit log, oldest first. A log that is not there yet has none. */
export async function readAudit(path: string, user: string): Promise<AuditEntry[]> {
  let log: string;
  try {
    log = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  // The last piece is empty, or a line still being written.
  const lines = log.split('\n').slice(0, -1);
  const mark = `"username":${JSON.stringify(user)}`;
  return lines
    .filter((line) => line.includes(mark))
    .map((line) => parseEntry(JSON.parse(line) as AuditEvent))
    .filter((entry) => entry.user === user);
}

/** The part of audit.k8s.io/v1 Event that is read here. */
interface AuditEvent extends Omit<AuditEntry, 'user' | 'uri' | 'code'> {
  readonly user: { readonly username: string };
  readonly requestURI: string;
  readonly responseStatus?: { readonly code?: number };
}

function parseEntry(event: AuditEvent): AuditEntry {
  const { auditID, stage, userAgent, verb, objectRef, requestReceivedTimestamp, stageTimestamp } = event;
  return {
    ...{ auditID, stage, user: event.user.username, verb, uri: event.requestURI },
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(objectRef === undefined ? {} : { objectRef }),
    ...(event.responseStatus?.code === undefined ? {} : { code: event.responseStatus.code }),
    ...{ requestReceivedTimestamp, stageTimestamp },
  };
}
