import type { Metrics } from '../telemetry/metrics.js';
import { isConnectionLoss } from './connection-loss.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/**
 * Sends a request a second time when its connection ended under it before there was an answer, so that a server that
 * goes away politely, or a balancer that closes what is idle, is no failure of a reconcile.
 *
 * **Assumptions.** Whatever is sent may be sent twice. Reads and applies may; deletes and updates name the version
 * that they are for; what is created has a name, so that the second try is answered with 409 if the first got through.
 */
export function retried(transport: Transport, metrics: Metrics): Transport {
  const { host } = transport;
  const twice = async <T>(req: ApiRequest, send: () => Promise<T>): Promise<T> => {
    try {
      return await send();
    } catch (error) {
      if (req.signal?.aborted || !isConnectionLoss(error)) throw error;
      metrics.requestRetries.inc({ verb: req.method, host });
      return send();
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => twice(req, () => transport.request(req)),
    stream: (req): Promise<ApiStream> => twice(req, () => transport.stream(req)),
    close: () => transport.close(),
  };
}
