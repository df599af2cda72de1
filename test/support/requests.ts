import type { AuditEntry } from '../../sandbox/audit.js';
import type { AnyObject } from '../../src/contract/object.js';
import { collection, eventually } from './cluster.js';
import type { Cluster, Place } from './cluster.js';

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/**
 * Records the requests of one user that are received from the moment this is called, by the API server's audit log: those
 * that were answered, and those whose effect is seen.
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
    const entries = since.filter(isNew).filter(isIn(namespace));
    // A watch has two entries: one when it begins, one when it ends.
    return [...new Map(entries.map((entry) => [entry.auditID, entry])).values()];
  };
}

/** Selects the requests about one namespace; all of them where none is given. */
function isIn(namespace: string | undefined): (entry: AuditEntry) => boolean {
  return ({ objectRef }) => namespace === undefined || objectRef?.namespace === namespace;
}

/** Selects those that change something. */
export function writes(entries: readonly AuditEntry[]): AuditEntry[] {
  return entries.filter(({ verb }) => WRITES.has(verb));
}

/** For messages and assertions: `patch deployments shop/web 201`. */
export function summary({ verb, objectRef, code }: AuditEntry): string {
  const { resource = '', subresource, namespace = '', name = '' } = objectRef ?? {};
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `${verb} ${what} ${namespace}/${name} ${code ?? ''}`;
}

/**
 * Waits until a user has written nothing for a second: the consequences of its own writes have happened by then.
 * @param options.namespace - only writes in it count, for an operator that works for several tests
 */
export async function settled(
  cluster: Cluster,
  user: string,
  options: { readonly deadlineMilliseconds?: number; readonly namespace?: string } = {},
): Promise<void> {
  const { deadlineMilliseconds = 30_000, namespace } = options;
  await eventually(
    async () => {
      // Before it is read, which takes its time.
      const now = Date.now();
      const last = writes(await cluster.sandbox.audit(user)).findLast(isIn(namespace));
      if (last && now - Date.parse(last.stageTimestamp) < 1_000)
        throw new Error(`${user} still writes: ${summary(last)}`);
    },
    { deadlineMilliseconds, intervalMilliseconds: 200 },
  );
}

interface WatchEvent {
  readonly type: string;
  readonly object: AnyObject;
}

/** Every state of one object from now on, by a watch of its own. The object exists when the recording begins. */
export class Recording<T extends AnyObject> implements AsyncDisposable {
  private readonly events: WatchEvent[] = [];
  private readonly end = new AbortController();
  private reading: Promise<void> = Promise.resolve();

  private constructor(
    private readonly cluster: Cluster,
    private readonly place: Place,
  ) {}

  /** The first state is the present one. */
  static async start<T extends AnyObject>(cluster: Cluster, place: Place): Promise<Recording<T>> {
    const recording = new Recording<T>(cluster, place);
    const path = collection(place.type, place.namespace);
    const query = { fieldSelector: `metadata.name=${place.name}` };
    recording.reading = recording.read(await cluster.watch(path, query, recording.end.signal));
    await eventually(() => {
      if (recording.events.length === 0) throw new Error(`The watch of ${path} has yet to begin`);
    });
    return recording;
  }

  /** Returns all states so far, oldest first, once the present one is among them. */
  async states(): Promise<T[]> {
    const { metadata } = await this.cluster.get(this.place);
    await eventually(() => {
      const seen = this.events.some(
        ({ object }) => object.metadata.resourceVersion === metadata.resourceVersion,
      );
      if (!seen) throw new Error(`The watch has yet to deliver version ${metadata.resourceVersion ?? ''}`);
    });
    const odd = this.events.find(({ type }) => type !== 'ADDED' && type !== 'MODIFIED');
    if (odd) throw new Error(`The watch has delivered ${JSON.stringify(odd)}`);
    return this.events.map(({ object }) => object as T);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort();
    await this.reading;
  }

  private async read(lines: AsyncIterable<string>): Promise<void> {
    try {
      for await (const line of lines) this.events.push(JSON.parse(line) as WatchEvent);
    } catch (error) {
      // So it ends where reading stops.
      if (!this.end.signal.aborted) throw error;
    }
  }
}

/** Returns the values that follow each other, each once. */
export function changesOf<T>(values: readonly T[]): T[] {
  return values.filter((value, index) => index === 0 || value !== values[index - 1]);
}
