import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { watchEvents } from '../../src/engine/watch.js';
import type { WatchEvent } from '../../src/engine/watch.js';
import { configMap } from './support/builders.js';

async function read(...chunks: (Uint8Array | string)[]): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  // eslint-disable-next-line @typescript-eslint/require-await -- a stream of bytes
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield Buffer.from(chunk as string);
  };
  for await (const event of watchEvents(stream())) events.push(event);
  return events;
}

const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;

const EVENTS = [
  { type: 'ADDED', object: configMap('grün', '1', { annotations: { note: '日本語 🚀 naïve' } }) },
  { type: 'MODIFIED', object: configMap('b', '2') },
  { type: 'DELETED', object: configMap('b', '3') },
  { type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } },
  { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old resource version: 1 (4)' } },
];
const TEXT = EVENTS.map(({ type, object }) => line(type, object)).join('');
const BYTES = Buffer.from(TEXT);

describe('watchEvents', () => {
  it('reads one event a line', async () => {
    expect(await read(TEXT)).toEqual(EVENTS);
  });

  it('gives the same events wherever the bytes are split once', async () => {
    for (let at = 0; at <= BYTES.length; at++) {
      expect(await read(BYTES.subarray(0, at), BYTES.subarray(at))).toEqual(EVENTS);
    }
  });

  it('gives the same events however often the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: BYTES.length }), { maxLength: 30 }), async (cuts) => {
        const ends = [...cuts.sort((a, b) => a - b), BYTES.length];
        expect(await read(...ends.map((end, index) => BYTES.subarray(ends[index - 1] ?? 0, end)))).toEqual(
          EVENTS,
        );
      }),
    );
  });

  it('puts characters together that came byte by byte', async () => {
    const events = await read(...[...BYTES].map((byte) => Uint8Array.of(byte)));
    expect(events[0]?.object).toMatchObject({
      metadata: { name: 'grün', annotations: { note: '日本語 🚀 naïve' } },
    });
  });

  it('passes over empty lines', async () => {
    expect(await read(`\n\n${line('ADDED', configMap('a', '1'))}\n`, '\n')).toHaveLength(1);
  });

  it('takes long lines, however small their pieces', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.string({ unit: 'binary', maxLength: 20 }), fc.nat({ max: 5_000 })), {
          maxLength: 8,
        }),
        fc.integer({ min: 1, max: 700 }),
        fc.array(fc.nat({ max: 8 }), { maxLength: 3 }),
        async (texts, size, empty) => {
          const events = texts.map(([unit, times], index) => ({
            type: 'ADDED',
            object: configMap(`a${String(index)}`, '1', { annotations: { note: unit.repeat(times % 300) } }),
          }));
          const lines = events.map(({ type, object }) => line(type, object));
          for (const at of empty) lines.splice(at, 0, '\n');
          const bytes = Buffer.from(lines.join(''));
          const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
            bytes.subarray(index * size, (index + 1) * size),
          );
          expect(await read(...pieces)).toEqual(JSON.parse(JSON.stringify(events)));
        },
      ),
    );
  });

  it('copies the bytes of a long line once, not once for each of its pieces', async () => {
    const note = 'x'.repeat(4_000_000);
    const bytes = Buffer.from(line('ADDED', configMap('a', '1', { annotations: { note } })));
    const concat = vi.spyOn(Buffer, 'concat');
    onTestFinished(() => {
      concat.mockRestore();
    });
    const pieces = Array.from({ length: 4_001 }, (_, index) =>
      bytes.subarray(index * 1_000, (index + 1) * 1_000),
    );
    expect(await read(...pieces)).toHaveLength(1);
    expect(concat).toHaveBeenCalledTimes(1);
  });

  it('lets others have their turn while it reads what has arrived already', async () => {
    let turns = 0;
    let reading = true;
    const turn = (): void => {
      turns++;
      if (reading) setImmediate(turn);
    };
    setImmediate(turn);
    await read(TEXT.repeat(3_000));
    reading = false;
    expect(turns).toBeGreaterThan(5);
  });

  it('drops a rest that was cut off', async () => {
    const cut = line('MODIFIED', configMap('a', '2')).slice(0, -3);
    expect(await read(line('ADDED', configMap('a', '1')) + cut)).toHaveLength(1);
  });

  it('gives the events before a line that is none', async () => {
    const events: WatchEvent[] = [];
    // eslint-disable-next-line @typescript-eslint/require-await -- a stream of bytes
    const stream = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`${line('ADDED', configMap('a', '1'))}garbage\n`);
    };
    await expect(
      (async () => {
        for await (const event of watchEvents(stream())) events.push(event);
      })(),
    ).rejects.toThrow(SyntaxError);
    expect(events).toHaveLength(1);
  });

  it.each([
    ['text', 'upstream timed out'],
    ['half an object', '{"type":"ADDED","object":{"metadata"'],
    ['another type of event', '{"type":"UPDATED","object":{}}'],
    ['no type', '{"object":{}}'],
    ['no object', '{"type":"ADDED"}'],
    ['a bare word', 'null'],
    ['a list', '[]'],
  ])('throws a SyntaxError at a line with %s', async (_, text) => {
    await expect(read(`${text}\n`)).rejects.toThrow(SyntaxError);
  });

  it('throws at bytes that are no UTF-8', async () => {
    const broken = Buffer.from(line('ADDED', configMap('a?', '1')));
    broken[broken.indexOf('?')] = 0xff;
    await expect(read(broken)).rejects.toThrow(TypeError);
  });
});
