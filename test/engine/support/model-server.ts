import type { AnyObject } from '../../../src/contract/object.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../../src/client/transport.js';
import { configMap, failure } from './builders.js';
import { ScriptedStream } from './scripted-transport.js';
import type { Answer } from './scripted-transport.js';

interface HistoryEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly version: number;
  readonly object: AnyObject;
}

interface Watcher {
  readonly stream: ScriptedStream;
  /** Everything up to this version has been sent. */
  sent: number;
  /** The list that has to be sent first. */
  list: readonly HistoryEvent[] | undefined;
}

/**
 * One collection with its history, as the API server keeps it in etcd. What happens is sent only when `deliver` is
 * called, so that every watch may lag behind at will; versions older than `compacted` are forgotten.
 */
export class ModelServer implements Transport {
  readonly host = 'api.test:443';
  readonly objects = new Map<string, AnyObject>();
  /** The next requests, for lists and watches, are answered with these. */
  readonly refusals: Answer[] = [];
  private readonly history: HistoryEvent[] = [];
  private watchers: Watcher[] = [];
  private version = 100;
  private compacted = 0;
  private uids = 0;

  /** Creates or changes an object. Returns it as the answer to the write shows it. */
  put(name: string): AnyObject {
    const before = this.objects.get(name);
    const uid = before?.metadata.uid ?? `uid-${String(++this.uids)}`;
    const object = configMap(name, String(++this.version), { uid });
    this.objects.set(name, object);
    this.history.push({ type: before ? 'MODIFIED' : 'ADDED', version: this.version, object });
    return object;
  }

  remove(name: string): void {
    const before = this.objects.get(name);
    if (!before) return;
    this.objects.delete(name);
    const metadata = { ...before.metadata, resourceVersion: String(++this.version) };
    this.history.push({ type: 'DELETED', version: this.version, object: { ...before, metadata } });
  }

  /** Forgets all versions but the last. */
  compact(): void {
    this.compacted = this.version;
  }

  /** Sends the next events, and a bookmark after the last one; in the middle of the bytes where told. */
  deliver(count: number, splitAt = 0): void {
    for (const watcher of this.open()) {
      const lines = this.nextLines(watcher, count);
      const bytes = Buffer.from(lines.join(''));
      watcher.stream.send(bytes.subarray(0, splitAt)).send(bytes.subarray(splitAt));
    }
  }

  /** Sends what was sent last once more. */
  repeat(count: number): void {
    for (const { stream, sent, list } of this.open()) {
      if (list) continue;
      const old = this.history.filter(({ version }) => version <= sent).slice(-count);
      for (const { type, object } of old) stream.event(type, object);
    }
  }

  /** Ends every connection, some after half an event. */
  cut(how: 'end' | 'break' | 'half'): void {
    for (const watcher of this.open()) {
      const [line = ''] = how === 'half' ? this.nextLines(watcher, 1) : [];
      watcher.stream.send(line.slice(0, line.length / 2));
      if (how === 'break') watcher.stream.break();
      else watcher.stream.end();
    }
    this.watchers = [];
  }

  async request({ query }: ApiRequest): Promise<ApiResponse> {
    const refusal = this.refusals.shift();
    if (refusal instanceof Error) throw refusal;
    if (refusal) return refusal;
    if (query?.continue !== undefined) return failure(410, 'Expired', 'The continue token is too old');
    const metadata = { resourceVersion: String(this.version) };
    return Promise.resolve({ status: 200, body: { metadata, items: [...this.objects.values()] } });
  }

  async stream(request: ApiRequest): Promise<ApiStream> {
    const refusal = this.refusals.shift();
    if (refusal instanceof Error) throw refusal;
    const stream = new ScriptedStream(request);
    if (refusal) {
      stream.send(JSON.stringify(refusal.body)).end();
      return { status: refusal.status, chunks: stream.chunks() };
    }
    const from = Number(request.query?.resourceVersion ?? this.version);
    if (request.query?.sendInitialEvents) {
      const object = (item: AnyObject): HistoryEvent => ({ type: 'ADDED', version: 0, object: item });
      // They come in no particular order.
      this.watchers.push({ stream, sent: from, list: [...this.objects.values()].reverse().map(object) });
    } else if (from < this.compacted) {
      stream.event('ERROR', { code: 410, reason: 'Expired', message: 'too old resource version' }).end();
    } else {
      this.watchers.push({ stream, sent: from, list: undefined });
    }
    return Promise.resolve({ status: 200, chunks: stream.chunks() });
  }

  async close(): Promise<void> {
    await Promise.resolve();
  }

  private open(): Watcher[] {
    return (this.watchers = this.watchers.filter(({ stream }) => !stream.closed));
  }

  private nextLines(watcher: Watcher, count: number): string[] {
    const lines: string[] = [];
    if (watcher.list) {
      for (const { type, object } of watcher.list) lines.push(line(type, object));
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      lines.push(line('BOOKMARK', { metadata: { resourceVersion: String(watcher.sent), annotations } }));
      watcher.list = undefined;
    }
    const news = this.history.filter(({ version }) => version > watcher.sent).slice(0, count);
    for (const { type, object, version } of news) {
      lines.push(line(type, object));
      watcher.sent = version;
    }
    if (watcher.sent === this.version)
      lines.push(line('BOOKMARK', { metadata: { resourceVersion: String(this.version) } }));
    return lines;
  }
}

function line(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}
