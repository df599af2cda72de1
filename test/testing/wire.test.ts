import { expect, test } from 'vitest';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../src/client/transport.js';
import { WatchLine } from '../../src/testing/watch-line.js';
import { Wire } from '../../src/testing/wire.js';

const PATH = '/api/v1/namespaces/shop/configmaps';

const event = (name: string, resourceVersion = '1'): WatchLine =>
  WatchLine.of('ADDED', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion } });
const listed = WatchLine.of('BOOKMARK', {
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
});

/** A server that answers what it is told to, and whose watch sends what is pushed. */
class Server implements Transport {
  readonly host = 'server';
  readonly got: string[] = [];
  answer: Promise<ApiResponse> = Promise.resolve({ status: 200, body: {} });
  private readonly lines: WatchLine[] = [];
  private wake: () => void = () => undefined;

  push(...lines: WatchLine[]): void {
    this.lines.push(...lines);
    this.wake();
  }

  request({ method, path }: ApiRequest): Promise<ApiResponse> {
    this.got.push(`${method} ${path}`);
    return this.answer;
  }

  stream(): Promise<ApiStream> {
    return Promise.resolve({ status: 200, chunks: this.chunks() });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  private async *chunks(): AsyncIterable<Uint8Array> {
    for (;;) {
      for (const { bytes } of this.lines.splice(0)) yield Buffer.concat([bytes, Buffer.from('\n')]);
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }
}

function started(): { readonly server: Server; readonly wire: Wire } {
  const server = new Server();
  return { server, wire: new Wire(server) };
}

const patch = (name: string): ApiRequest => ({ method: 'PATCH', path: `${PATH}/${name}`, body: {} });

/** The names in the next events. */
async function next(stream: ApiStream, count: number): Promise<string[]> {
  const names: string[] = [];
  for await (const chunk of stream.chunks) {
    const { object } = JSON.parse(Buffer.from(chunk).toString()) as {
      object: { metadata: { name: string } };
    };
    names.push(object.metadata.name);
    if (names.length === count) break;
  }
  return names;
}

test('killed before a write, it sends neither that nor anything after it', async () => {
  const { server, wire } = started();
  wire.killAt({ write: 2, when: 'before' });

  await wire.request(patch('a'));
  await expect(wire.request(patch('b'))).rejects.toThrow('The connection is lost');
  await expect(wire.request(patch('c'))).rejects.toThrow('The connection is lost');
  await expect(wire.stream({ method: 'GET', path: PATH })).rejects.toThrow('The connection is lost');

  expect(server.got).toEqual([`PATCH ${PATH}/a`]);
  expect(wire.diedAt).toBe('PATCH configmaps/b');
});

test('killed after a write, that is carried out, and its answer lost', async () => {
  const { server, wire } = started();
  wire.killAt({ write: 1, when: 'after' });

  await wire.request({ method: 'GET', path: PATH });
  await expect(wire.request(patch('a'))).rejects.toThrow('The connection is lost');
  await expect(wire.request(patch('b'))).rejects.toThrow('The connection is lost');

  expect(server.got).toEqual([`GET ${PATH}`, `PATCH ${PATH}/a`]);
});

test('after a cut it watches again once every watch is open again', async () => {
  const { wire } = started();
  await wire.stream({ method: 'GET', path: PATH });
  await wire.stream({ method: 'GET', path: `${PATH}-other` });
  expect(wire.isWatching).toBe(true);

  wire.cut();

  expect(wire.isWatching).toBe(false);
  await wire.stream({ method: 'GET', path: PATH });
  expect(wire.isWatching).toBe(false);
  await wire.stream({ method: 'GET', path: `${PATH}-other` });
  expect(wire.isWatching).toBe(true);
});

test('events are lost, doubled and late, and none overtakes another', async () => {
  const { server, wire } = started();
  wire.eventFault = () => (line) => {
    const { name } = line.object.metadata;
    if (name === 'lost') return 'lose';
    if (name === 'twice') return 'double';
    return name === 'late' ? 20 : 'pass';
  };
  const stream = await wire.stream({ method: 'GET', path: PATH });

  server.push(event('lost'), event('twice'), event('late'), event('after'));

  expect(await next(stream, 4)).toEqual(['twice', 'twice', 'late', 'after']);
});

test('what is listed passes unharmed, is recorded, and can be served again', async () => {
  const { server, wire } = started();
  wire.eventFault = () => () => 'lose';
  const query = { sendInitialEvents: 'true' };
  const stream = await wire.stream({ method: 'GET', path: PATH, query });
  server.push(event('a'), listed, event('b'));
  expect(await next(stream, 1)).toEqual(['a']);

  const later = new Wire(new Server());
  later.stale = new Map(wire.lists);

  const served = await later.stream({ method: 'GET', path: PATH, query });
  expect(await next(served, 2)).toEqual(['a', undefined]);
});

test('a watch learns that its version has expired', async () => {
  const { wire } = started();
  const stream = await wire.stream({ method: 'GET', path: PATH });

  wire.expire();

  for await (const chunk of stream.chunks) {
    expect(JSON.parse(Buffer.from(chunk).toString())).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    break;
  }
});
