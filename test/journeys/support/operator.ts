import { closeSync, openSync, readSync } from 'node:fs';
import { inject } from 'vitest';
import type { AuditEntry } from '../../../sandbox/audit.js';
import { openSandbox } from '../../../sandbox/client.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import { Cluster, eventually } from '../../support/cluster.js';
import type { LogLine } from '../../support/operator.js';
import { requestsFromNowOn, settled } from '../../support/requests.js';
import { Subject } from '../../support/subject.js';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly operator: SharedOperatorHandle;
  }
}

/** The operator that runs for all journeys. */
export interface SharedOperatorHandle {
  readonly user: string;
  readonly pid: number;
  /** JSON lines, from its start. */
  readonly logFile: string;
}

/** The control plane, as its admin sees it. */
export const cluster = new Cluster(openSandbox(inject('sandbox')));

/** The operator that runs for all journeys, seen from one test file. */
export const operator = {
  ...inject('operator'),
  /** Waits until it has written nothing in the namespace for a second. */
  settled: (namespace: string): Promise<void> => settled(cluster, inject('operator').user, { namespace }),
  /** Its requests in the namespace from now on, by the audit log. */
  requestsFromNowOn: (namespace: string): Promise<() => Promise<AuditEntry[]>> =>
    requestsFromNowOn(cluster, inject('operator').user, namespace),
};

/** What the operator logs from a moment on. */
export interface OperatorLog {
  /** Resolves with the first line that matches. */
  logged(matches: (line: LogLine) => boolean): Promise<LogLine>;
}

/** Returns the operator's log from now on. */
export function logFromNowOn(): OperatorLog {
  const { logFile } = operator;
  let offset = textFrom(logFile, 0).length;
  const lines: LogLine[] = [];
  const readOn = (): void => {
    const text = textFrom(logFile, offset);
    const end = text.lastIndexOf(0x0a) + 1;
    offset += end;
    for (const line of text.subarray(0, end).toString().split('\n'))
      if (line !== '') lines.push(JSON.parse(line) as LogLine);
  };
  return {
    logged: (matches) =>
      eventually(() => {
        readOn();
        const line = lines.find(matches);
        if (line) return line;
        throw new Error('The operator has not logged it');
      }),
  };
}

function textFrom(file: string, offset: number): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const parts: Buffer[] = [];
    for (let at = offset; ;) {
      const part = Buffer.alloc(1 << 20);
      const read = readSync(descriptor, part, 0, part.length, at);
      if (read === 0) return Buffer.concat(parts);
      parts.push(part.subarray(0, read));
      at += read;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** A namespace of its own for the custom resources of a journey. */
export async function journey(kind: OwnedKind, purpose: string): Promise<Subject> {
  return new Subject(cluster, kind, await cluster.makeNamespace(purpose));
}
