import type { Metrics } from '../telemetry/metrics.js';
import { sleep, systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { isConnectionLoss } from './connection-loss.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** Until all of undici has heard of the end of a connection: sooner, the second try may be put on the same one. */
const PAUSE_MILLISECONDS = 50;
const NEVER = new AbortController().signal;

/**
 * Sends a request a second time when its connection ended under it before there was an answer, so that a server that
 * goes away politely, or a balancer that closes what is idle, is no failure of a reconcile.
 *
 * **Assumptions.** Whatever is sent may be sent twice. Reads and applies may; deletes and updates name the version
 * that they are for; what is created has a name, so that the second try is answered with 409 if the first got through.
 */
export function retried(transport: Transport, metrics: Metrics, clock: Clock = systemClock): Transport {
  const { host } = transport;
  const twice = async <T>(
    req: ApiRequest,
    send: () => Promise<T>,
    again: () => Promise<T> = send,
  ): Promise<T> => {
    try {
      return await send();
    } catch (error) {
      if (req.signal?.aborted || !isConnectionLoss(error)) throw error;
      metrics.requestRetries.inc({ verb: req.method, host });
      await sleep(clock, PAUSE_MILLISECONDS, req.signal ?? NEVER);
      req.signal?.throwIfAborted();
      return again();
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => {
      const send = (): Promise<ApiResponse> => transport.request(req);
      return twice(req, send, async () => ({ ...(await send()), isSecondTry: true }));
    },
    stream: (req): Promise<ApiStream> => twice(req, () => transport.stream(req)),
    close: () => transport.close(),
  };
}
