import { OperatorError } from '../contract/error.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { ApiRequest, ApiResponse, Transport } from './transport.js';

/** Knows whether this process may write. */
export interface Fence {
  /** Synchronous, and right at the very moment that it is asked. */
  admits(): boolean;
}

/**
 * Lets writes through only while the fence admits them. Reads, watches and the lease's own calls pass.
 *
 * **Guarantees.** A write is checked when it is asked for, and again right before it is handed to its connection, so
 * what waited for credentials, a connection or its turn meanwhile is held back as well.
 *
 * **Caveats.** What has been handed to its connection can't be called back: see docs/decisions/0013-leadership.md.
 *
 * **Errors.** OperatorError `NotLeading`, to be tried again at once: keys are kept until this process leads again.
 */
export function fenced(transport: Transport, fence: Fence, metrics: Metrics): Transport {
  const admit = (): void => {
    if (fence.admits()) return;
    metrics.fencedWrites.inc();
    throw new OperatorError({
      reason: 'NotLeading',
      message: 'This process may not write, since it does not hold the lease for certain',
      retry: 'now',
    });
  };
  return {
    host: transport.host,
    request: async (request: ApiRequest): Promise<ApiResponse> => {
      if (request.method === 'GET' || request.lease) return transport.request(request);
      admit();
      return transport.request({ ...request, admit });
    },
    stream: (request) => transport.stream(request),
    close: () => transport.close(),
  };
}
