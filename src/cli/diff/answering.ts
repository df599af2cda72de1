import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../contract/error.js';
import type { ApiRequest, ApiResponse, Transport } from '../../engine/transport.js';
import { CliError } from '../exit.js';

/** A server that asks to come again later is asked so many times. */
const TRIES = 5;
const LONGEST_PAUSE_SECONDS = 5;

/**
 * The same way to the API server, for somebody who waits: one that is busy is asked again, and one that doesn't answer is
 * told with exit code 3.
 */
export function answering(transport: Transport): Transport {
  const ask = async (req: ApiRequest): Promise<ApiResponse> => {
    try {
      return await transport.request(req);
    } catch (error) {
      throw new CliError(
        `The cluster at ${transport.host} doesn't answer: ${messageOf(error)}; check that it is up`,
        3,
      );
    }
  };
  return {
    host: transport.host,
    request: async (req) => {
      for (let tries = 1; ; tries++) {
        const answer = await ask(req);
        if (answer.status !== 429 || tries === TRIES) return answer;
        await delay(1000 * Math.min(answer.retryAfterSeconds ?? 1, LONGEST_PAUSE_SECONDS));
      }
    },
    stream: (req) => transport.stream(req),
    close: () => transport.close(),
  };
}
