import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { Api } from '../../src/client/api.js';
import { CONFIG_MAP, DEPLOYMENT, configMap } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import type { Transport } from '../../src/client/transport.js';
import { WatchFailure, runWatch } from '../../src/engine/watch/watch.js';
import type { ObjectEvent } from '../../src/engine/watch/watch.js';
import { VirtualClock } from './support/virtual-clock.js';

function newApi(): { api: Api; transport: ScriptedTransport; signal: AbortSignal } {
  const transport = new ScriptedTransport();
  transport.respond = () => ({ status: 200, body: { metadata: { resourceVersion: '7' }, items: [] } });
  return { api: new Api(transport), transport, signal: new AbortController().signal };
}

describe('Api, without an answer', () => {
  const failing = (error: unknown): Promise<unknown> => {
    const { api, transport } = newApi();
    transport.respond = () => {
      throw error;
    };
    return api.get(DEPLOYMENT, 'shop/web').catch((thrown: unknown) => thrown);
  };
  const fetchFailed = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });

  it.each([
    new Error('read ECONNRESET'),
    Object.assign(new Error('too late'), { code: 'UND_ERR_HEADERS_TIMEOUT' }),
    fetchFailed,
  ])('says that the server is out of reach: %s', async (error) => {
    expect(await failing(error)).toMatchObject({
      ...{ reason: 'Unreachable', retry: 'backoff', cause: error },
      message: `Get Deployment shop/web: the API server gave no answer (${error.message})`,
    });
  });

  it.each([
    new TypeError('x is not a function'),
    new RangeError('Maximum call stack size exceeded'),
    Object.assign(new Error('invalid path'), { code: 'UND_ERR_INVALID_ARG' }),
  ])('leaves a bug what it is: %s', async (error) => {
    expect(await failing(error)).toBe(error);
  });
});

async function read(chunks: readonly Uint8Array[], events: ObjectEvent[] = []): Promise<ObjectEvent[]> {
  // eslint-disable-next-line @typescript-eslint/require-await -- a stream of bytes
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    yield* chunks;
  };
  const transport = { stream: () => Promise.resolve({ status: 200, chunks: stream() }) };
  await runWatch({
    api: new Api(transport as unknown as Transport),
    ...{ scope: { type: CONFIG_MAP }, clock: new VirtualClock(), query: {} },
    signal: new AbortController().signal,
    opened: () => undefined,
    pulse: { heardAt: 0 },
    handle: (event) => events.push(event),
  });
  return events;
}

const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;

const EVENTS = [
  { type: 'ADDED', object: configMap('grün', '1', { annotations: { note: '日本語 🚀 naïve' } }) },
  { type: 'MODIFIED', object: configMap('b', '2') },
  { type: 'DELETED', object: configMap('b', '3') },
  { type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } },
];
const TEXT = EVENTS.map(({ type, object }) => line(type, object)).join('\n');
const BYTES = Buffer.from(TEXT);

describe('A watch', () => {
  it('gives one event a line, however often the bytes are split, within characters too', async () => {
    expect(await read([...BYTES].map((byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: BYTES.length }), { maxLength: 30 }), async (cuts) => {
        const ends = [...cuts.sort((a, b) => a - b), BYTES.length];
        const chunks = ends.map((end, index) => BYTES.subarray(ends[index - 1] ?? 0, end));
        expect(await read(chunks)).toEqual(EVENTS);
      }),
    );
  });

  it.each([
    ['text', 'upstream timed out'],
    ['half an object', '{"type":"ADDED","object":{"metadata"'],
    ['another type of event', '{"type":"UPDATED","object":{}}'],
    ['no object', '{"type":"ADDED"}'],
    ['a bare word', 'null'],
    ['bytes that are no UTF-8', Uint8Array.of(0xff)],
  ])('ends at a line with %s, after the events before it', async (_, bad) => {
    const events: ObjectEvent[] = [];
    const bytes = Buffer.concat([
      Buffer.from(line('ADDED', configMap('a', '1'))),
      Buffer.from(bad as string),
      Buffer.from('\n'),
    ]);
    const failure = await read([bytes], events).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(WatchFailure);
    expect(failure).toMatchObject({ kind: 'unusable' });
    // The text may be a Secret's.
    expect((failure as Error).message).toMatch(/^a line of \d+ bytes is no watch event$/);
    expect(events).toHaveLength(1);
  });
});
