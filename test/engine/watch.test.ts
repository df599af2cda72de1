import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Api } from '../../src/engine/api.js';
import type { Transport } from '../../src/engine/transport.js';
import { runWatch, WatchFailure } from '../../src/engine/watch.js';
import type { ObjectEvent } from '../../src/engine/watch.js';
import { CONFIG_MAP, configMap } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

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
    heard: () => undefined,
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

  it('lets others have their turn while it reads what has arrived already', async () => {
    let turns = 0;
    let reading = true;
    const turn = (): void => {
      turns++;
      if (reading) setImmediate(turn);
    };
    setImmediate(turn);
    await read([Buffer.from(TEXT.repeat(3_000))]);
    reading = false;
    expect(turns).toBeGreaterThan(5);
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
    expect(events).toHaveLength(1);
  });
});
