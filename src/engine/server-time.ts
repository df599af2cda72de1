import type { Clock } from './clock.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** How far the clock of the API server is ahead of ours, by its last answer that told the time. */
export class ServerTime {
  /** @default - undefined: none has told it yet */
  skewMilliseconds: number | undefined;
}

/**
 * Reads the server's clock off the answers that pass by.
 *
 * **Caveats.** The server tells whole seconds, so the skew is up to a second too little; and the way back may take more
 * than half of the time, or less.
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-date
 */
export function timed(transport: Transport, time: ServerTime, clock: Clock): Transport {
  const measured = async <T extends { readonly dateMilliseconds?: number }>(
    answer: Promise<T>,
  ): Promise<T> => {
    const sentAt = clock.monotonic();
    const { dateMilliseconds } = await answer;
    if (dateMilliseconds !== undefined) {
      const wayBack = (clock.monotonic() - sentAt) / 2;
      time.skewMilliseconds = Math.round(dateMilliseconds - (clock.now() - wayBack));
    }
    return answer;
  };
  return {
    host: transport.host,
    request: (req: ApiRequest): Promise<ApiResponse> => measured(transport.request(req)),
    stream: (req: ApiRequest): Promise<ApiStream> => measured(transport.stream(req)),
    close: () => transport.close(),
  };
}
