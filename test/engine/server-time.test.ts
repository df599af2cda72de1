import { describe, expect, it } from 'vitest';
import { ServerTime, timed } from '../../src/engine/clock.js';
import type { Transport } from '../../src/engine/transport.js';
import { VirtualClock } from './support/virtual-clock.js';

const GET = { method: 'GET', path: '/api' } as const;

/** A server whose clock is so far ahead of ours, and that takes so long for an answer, half of it for the way back. */
function setup(aheadMilliseconds: number, takesMilliseconds: number, tells = true) {
  const clock = new VirtualClock();
  const time = new ServerTime(clock);
  const server = { aheadMilliseconds };
  const answer = <T extends object>(more: T): T & { status: number; dateMilliseconds?: number } => {
    clock.jump(takesMilliseconds / 2);
    const dateMilliseconds = clock.now() + server.aheadMilliseconds;
    clock.jump(takesMilliseconds / 2);
    return { status: 200, ...more, ...(tells && { dateMilliseconds }) };
  };
  const wire: Transport = {
    host: 'api.test',
    request: () => Promise.resolve().then(() => answer({ body: {} })),
    stream: () => Promise.resolve().then(() => answer({ chunks: (async function* () {})() })),
    close: () => Promise.resolve(),
  };
  return { server, time, transport: timed(wire, time) };
}

describe('The clock of the API server', () => {
  it('is unknown before the first answer', () => {
    expect(setup(0, 0).time.skewMilliseconds).toBeUndefined();
  });

  it.each([
    [45_000, 0],
    [-45_000, 800],
    [0, 80_000],
  ])('is %d ms ahead, less what an answer that takes %d ms needs on its way back', async (ahead, takes) => {
    const { transport, time } = setup(ahead, takes);
    await transport.request(GET);
    expect(time.skewMilliseconds).toBe(ahead - takes / 2);
  });

  it('is known from the first byte of a watch, too', async () => {
    const { transport, time } = setup(2_000, 0);
    await transport.stream(GET);
    expect(time.skewMilliseconds).toBe(2_000);
  });

  it('is that of the last answer', async () => {
    const { transport, time, server } = setup(2_000, 0);
    await transport.request(GET);
    server.aheadMilliseconds = -60_000;
    await transport.request(GET);
    expect(time.skewMilliseconds).toBe(-60_000);
  });

  it('is not guessed from an answer that does not tell it', async () => {
    const { transport, time } = setup(2_000, 0, false);
    await transport.request(GET);
    expect(time.skewMilliseconds).toBeUndefined();
  });
});
