import { OperatorError } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { sleep, systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { fenced } from './fenced-transport.js';
import type { Fence } from './fenced-transport.js';
import { ServerGate } from './server-gate.js';
import { timed } from './server-time.js';
import type { ServerTime } from './server-time.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';
import { isConnectionLoss } from './undici-transport.js';

export interface ConnectProps {
  /** The bare way to the API server. */
  readonly wire: Transport;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Where the server's clock is kept. */
  readonly time: ServerTime;
  /** Writes under way at once, at most. @default - that of `ServerGate` */
  readonly maxWrites?: number;
}

/**
 * Puts between the engine and the API server what every request passes, in this order: a second try where a connection
 * ended under the first, the gate, the meter, the fence, and an eye on the server's clock. So the second try waits at
 * the gate too, what has waited is fenced when it leaves, and what is measured is the server's time alone.
 */
export function connect(props: ConnectProps): { readonly transport: Transport; readonly gate: ServerGate } {
  const { wire, fence, clock, random, log, metrics, time, maxWrites } = props;
  const measured = metered(fenced(timed(wire, time), fence, metrics), metrics, clock);
  const gate = new ServerGate({
    ...{ transport: measured, clock, random, log, metrics },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  return { transport: retried(gate, metrics, clock), gate };
}

/** Counts and times what goes through a transport; what was held back and never sent is neither counted nor timed. */
export function metered(transport: Transport, metrics: Metrics, clock: Clock = systemClock): Transport {
  const { host } = transport;
  const measured = async <T extends { readonly status: number }>(
    req: ApiRequest,
    answer: Promise<T>,
  ): Promise<T> => {
    const startedAt = clock.monotonic();
    let code = '<error>';
    let sent = true;
    try {
      const response = await answer;
      code = String(response.status);
      return response;
    } catch (error) {
      sent = !(error instanceof OperatorError);
      throw error;
    } finally {
      if (sent) {
        metrics.requests.inc({ code, method: req.method, host });
        metrics.requestSeconds.observe({ verb: req.method, host }, (clock.monotonic() - startedAt) / 1000);
      }
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => measured(req, transport.request(req)),
    stream: (req): Promise<ApiStream> => measured(req, transport.stream(req)),
    close: () => transport.close(),
  };
}

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
