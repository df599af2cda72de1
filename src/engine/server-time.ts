import { TOLERATED_SKEW_MILLISECONDS } from '../contract/controller.js';
import type { Clock } from './clock.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/**
 * Clock of the API server, by its last answer with a date.
 *
 * @remarks
 * Kept against the monotonic clock, so that a step of the wall clock changes nothing: the skew follows it at once. While
 * the machine is suspended the monotonic clock may stand still; until the next answer, times are then late, never early.
 */
export class ServerTime {
  /** Time of the server less that of the monotonic clock. */
  private offset: number | undefined;

  constructor(private readonly clock: Clock) {}

  /** How far the server is ahead of the wall clock. @defaultValue undefined: no answer has given a date yet */
  get skewMilliseconds(): number | undefined {
    if (this.offset === undefined) return undefined;
    return Math.round(this.offset + this.clock.monotonic() - this.clock.now());
  }

  /** Takes a time of the wall clock to the clock that counts: the server's where they differ by more than is tolerated. */
  corrected(wallMilliseconds: number): Date {
    const { skewMilliseconds: skew = 0 } = this;
    return new Date(wallMilliseconds + (Math.abs(skew) > TOLERATED_SKEW_MILLISECONDS ? skew : 0));
  }

  /** Returns a time of the monotonic clock by the clock that counts. */
  at(monotonicMilliseconds: number): Date {
    const { clock } = this;
    return this.corrected(Math.round(clock.now() - clock.monotonic() + monotonicMilliseconds));
  }

  /** Learns from the date of an answer that has just come. What it took on its way back makes times late, never early. */
  answered(dateMilliseconds: number): void {
    this.offset = dateMilliseconds - this.clock.monotonic();
  }
}

/**
 * Reads the server's clock off the answers that pass by.
 *
 * **Caveats.** The server sends whole seconds, so the skew is up to a second too little, and less by what an answer takes.
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-date
 */
export function timed(transport: Transport, time: ServerTime): Transport {
  const measured = async <T extends { readonly dateMilliseconds?: number }>(
    answer: Promise<T>,
  ): Promise<T> => {
    const { dateMilliseconds } = await answer;
    if (dateMilliseconds !== undefined) time.answered(dateMilliseconds);
    return answer;
  };
  return {
    host: transport.host,
    request: (req: ApiRequest): Promise<ApiResponse> => measured(transport.request(req)),
    stream: (req: ApiRequest): Promise<ApiStream> => measured(transport.stream(req)),
    close: () => transport.close(),
  };
}
