import { setTimeout as delay } from 'node:timers/promises';
import type { Transport } from '../../engine/transport.js';

/** A server that asks to come again later is asked so many times. */
const TRIES = 5;
const LONGEST_PAUSE_SECONDS = 5;

/** The same way to the API server, for somebody who waits: one that is busy is asked again. */
export function answering(transport: Transport): Transport {
  return {
    host: transport.host,
    request: async (req) => {
      for (let tries = 1; ; tries++) {
        const answer = await transport.request(req);
        if (answer.status !== 429 || tries === TRIES) return answer;
        await delay(1000 * Math.min(answer.retryAfterSeconds ?? 1, LONGEST_PAUSE_SECONDS));
      }
    },
    stream: (req) => transport.stream(req),
    close: () => transport.close(),
  };
}
