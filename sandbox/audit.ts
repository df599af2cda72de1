import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
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

/** An audit log that grows: what was read of it once isn't read again. */
export class AuditLog {
  private readonly path: string;
  private readonly byUser = new Map<string, UserEntries>();

  constructor(path: string) {
    this.path = path;
  }

  /** The entries of one user, oldest first. A log that is not there yet has none. */
  async entries(user: string): Promise<AuditEntry[]> {
    let known = this.byUser.get(user);
    if (!known) this.byUser.set(user, (known = new UserEntries(this.path, user)));
    return known.read();
  }
}

class UserEntries {
  private readonly path: string;
  private readonly user: string;
  private readonly entries: AuditEntry[] = [];
  /** Bytes that have been read. */
  private offset = 0;
  private reading: Promise<void> = Promise.resolve();

  constructor(path: string, user: string) {
    this.path = path;
    this.user = user;
  }

  async read(): Promise<AuditEntry[]> {
    const before = this.reading.catch(() => undefined);
    this.reading = before.then(() => this.readOn());
    await this.reading;
    return [...this.entries];
  }

  private async readOn(): Promise<void> {
    const news = await readFrom(this.path, this.offset);
    // What comes after the last line is a line still being written.
    const whole = news.subarray(0, news.lastIndexOf('\n') + 1);
    const mark = `"username":${JSON.stringify(this.user)}`;
    const found: AuditEntry[] = [];
    for (const line of whole.toString('utf8').split('\n')) {
      if (!line.includes(mark)) continue;
      const entry = parseEntry(JSON.parse(line) as AuditEvent);
      if (entry.user === this.user) found.push(entry);
    }
    this.entries.push(...found);
    this.offset += whole.length;
  }
}

async function readFrom(path: string, offset: number): Promise<Buffer> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
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
