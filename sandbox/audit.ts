import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { writeYaml } from '#values/yaml.js';
import { ownUsers } from './users.js';

/** Line of the audit log: a request, at one of its stages. */
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
  return writeYaml({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    rules: [
      { level: 'None', users: ['system:apiserver', ...Object.values(ownUsers)] },
      { level: 'None', userGroups: ['system:serviceaccounts:kube-system'] },
      { level: 'Metadata' },
    ],
  });
}

/** Time in which a request is usually handled; without an end by then, it may have lost its API server. */
const HANDLED_MILLISECONDS = 10_000;
const LOOK_MILLISECONDS = 5;

/** An audit log that grows: what was read of it once isn't read again. */
export class AuditLog {
  private readonly path: string;
  private readonly handledMilliseconds: number;
  private readonly byUser = new Map<string, UserEntries>();

  constructor(path: string, handledMilliseconds = HANDLED_MILLISECONDS) {
    this.path = path;
    this.handledMilliseconds = handledMilliseconds;
  }

  /**
   * The entries of one user, oldest first. A log that is not there yet has none. What a request does may be seen before its
   * entry is written, so the entries of requests that are being handled are waited for.
   */
  async entries(user: string): Promise<AuditEntry[]> {
    let known = this.byUser.get(user);
    if (!known) this.byUser.set(user, (known = new UserEntries(this.path, user)));
    const deadline = performance.now() + this.handledMilliseconds;
    await known.readOn();
    const handled = [...known.unanswered];
    while (handled.some((id) => known.unanswered.has(id)) && performance.now() < deadline) {
      await delay(LOOK_MILLISECONDS);
      await known.readOn();
    }
    for (const id of handled) known.unanswered.delete(id);
    return [...known.entries];
  }
}

class UserEntries {
  readonly entries: AuditEntry[] = [];
  /** Requests of which nothing but their coming was read. */
  readonly unanswered = new Set<string>();
  private readonly path: string;
  private readonly user: string;
  /** Bytes that have been read. */
  private offset = 0;
  private reading: Promise<void> = Promise.resolve();

  constructor(path: string, user: string) {
    this.path = path;
    this.user = user;
  }

  async readOn(): Promise<void> {
    const before = this.reading.catch(() => undefined);
    this.reading = before.then(() => this.read());
    await this.reading;
  }

  private async read(): Promise<void> {
    const news = await readFrom(this.path, this.offset);
    // What comes after the last line is a line still being written.
    const whole = news.subarray(0, news.lastIndexOf('\n') + 1);
    const mark = `"username":${JSON.stringify(this.user)}`;
    const events = whole
      .toString('utf8')
      .split('\n')
      .filter((line) => line.includes(mark))
      .map((line) => JSON.parse(line) as AuditEvent)
      .filter(({ user }) => user.username === this.user);
    this.offset += whole.length;
    for (const event of events) {
      if (event.stage === 'RequestReceived') {
        this.unanswered.add(event.auditID);
      } else {
        this.unanswered.delete(event.auditID);
        this.entries.push(parseEntry({ ...event, stage: event.stage }));
      }
    }
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
interface AuditEvent extends Omit<AuditEntry, 'user' | 'uri' | 'code' | 'stage'> {
  readonly stage: AuditEntry['stage'] | 'RequestReceived';
  readonly user: { readonly username: string };
  readonly requestURI: string;
  readonly responseStatus?: { readonly code?: number };
}

function parseEntry(event: AuditEvent & Pick<AuditEntry, 'stage'>): AuditEntry {
  const { auditID, stage, userAgent, verb, objectRef, requestReceivedTimestamp, stageTimestamp } = event;
  return {
    ...{ auditID, stage, user: event.user.username, verb, uri: event.requestURI },
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(objectRef === undefined ? {} : { objectRef }),
    ...(event.responseStatus?.code === undefined ? {} : { code: event.responseStatus.code }),
    ...{ requestReceivedTimestamp, stageTimestamp },
  };
}
