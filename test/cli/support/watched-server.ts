import type { AnyObject } from '../../../src/contract/object.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../../src/engine/transport.js';
import { failure } from '../../engine/support/builders.js';
import { ScriptedStream } from '../../engine/support/scripted-transport.js';

/** An API server that has these, by plural: it lists and watches them, and refuses what it is told to refuse. */
export class WatchedServer implements Transport {
  readonly host = 'api.test';
  readonly streams: ScriptedStream[] = [];
  /** What lists are answered with, by plural. */
  readonly refused = new Map<string, ApiResponse>();
  readonly unwatchable = new Set<string>();
  /** It takes requests, and never answers. */
  silent = false;
  lists = 0;

  constructor(private readonly objects: Readonly<Record<string, readonly AnyObject[]>>) {}

  async request({ path }: ApiRequest): Promise<ApiResponse> {
    this.lists++;
    if (this.silent) return new Promise(() => undefined);
    const plural = pluralOf(path);
    const body = { metadata: { resourceVersion: '100' }, items: this.objects[plural] ?? [] };
    return this.refused.get(plural) ?? { status: 200, body };
  }

  async stream(request: ApiRequest): Promise<ApiStream> {
    if (this.silent) return new Promise(() => undefined);
    const plural = pluralOf(request.path);
    const stream = new ScriptedStream(request);
    this.streams.push(stream);
    if (this.unwatchable.has(plural)) {
      const { status, body } = failure(403, 'Forbidden', `${plural} is forbidden: cannot watch`);
      return { status, chunks: stream.send(JSON.stringify(body)).end().chunks() };
    }
    for (const object of this.objects[plural] ?? []) stream.event('ADDED', object);
    return { status: 200, chunks: stream.listed('100').chunks() };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function pluralOf(path: string): string {
  return path.split('/').at(-1)!;
}
