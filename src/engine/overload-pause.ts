import { backoffDelay } from './backoff.js';
import type { Clock, Timer } from './clock.js';

/** For a server that doesn't say how long. */
const UNASKED = { initialMilliseconds: 100, maxMilliseconds: 10_000, jitter: 0.5 };
/** A server that asks for more is asked again after this all the same. */
const LONGEST_MILLISECONDS = 60_000;

/** It has more to do than it can, or says that it will soon. */
export function saysOverloaded(status: number): boolean {
  return status === 429 || status === 503 || status === 504;
}

export interface OverloadPauseProps {
  readonly clock: Clock;
  readonly random: () => number;
  /** It has begun, or is over. */
  readonly onChange: () => void;
}

/** The time that an overloaded server is given. */
export class OverloadPause {
  private until = 0;
  private timer: Timer | undefined;
  /** Pauses that the server hasn't asked for, since it last did what it was asked to. */
  private unasked = 0;

  constructor(private readonly props: OverloadPauseProps) {}

  get active(): boolean {
    return this.timer !== undefined;
  }

  /** The server is overloaded: pauses for as long as it asks, or a little longer than the last time. */
  begin(retryAfterSeconds = 0): void {
    const { clock, random } = this.props;
    let delay = Math.min(retryAfterSeconds * 1000, LONGEST_MILLISECONDS);
    if (!(delay > 0)) {
      // Of those that were under way together, the first has started the pause.
      if (this.active) return;
      delay = backoffDelay(UNASKED, this.unasked++, random);
    }
    const until = clock.monotonic() + delay;
    if (this.active && until <= this.until) return;
    this.until = until;
    const before = this.timer;
    before?.cancel();
    this.timer = clock.setTimer(delay, () => {
      this.end();
    });
    if (!before) this.props.onChange();
  }

  /** The server did what it was asked to. */
  served(): void {
    this.unasked = 0;
  }

  end(): void {
    if (!this.timer) return;
    this.timer.cancel();
    this.timer = undefined;
    this.props.onChange();
  }
}
