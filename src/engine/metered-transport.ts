import { OperatorError } from '../contract/error.js';
import type { Metrics } from '../telemetry/metrics.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

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
