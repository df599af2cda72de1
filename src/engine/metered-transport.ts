import type { Metrics } from '../telemetry/metrics.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** Counts what goes through a transport. */
export function metered(transport: Transport, metrics: Metrics): Transport {
  const { host } = transport;
  const counted = async <T extends { readonly status: number }>(
    req: ApiRequest,
    answer: Promise<T>,
  ): Promise<T> => {
    try {
      const response = await answer;
      metrics.requests.inc({ code: String(response.status), method: req.method, host });
      return response;
    } catch (error) {
      metrics.requests.inc({ code: '<error>', method: req.method, host });
      throw error;
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => counted(req, transport.request(req)),
    stream: (req): Promise<ApiStream> => counted(req, transport.stream(req)),
    close: () => transport.close(),
  };
}
