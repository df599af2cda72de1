import type { Clock, Timer } from './clock.js';

/** About a round trip: long enough to hear whether those who went before were welcome. */
const STEP_MILLISECONDS = 50;

export interface SlowStartProps {
  readonly clock: Clock;
  readonly random: () => number;
  /** More may be let in now. */
  readonly onMore: () => void;
}

/** After a pause, lets one in, then two, four and so on, so that those who waited don't bring about the next one. */
export class SlowStart {
  private left = Infinity;
  private timer: Timer | undefined;

  constructor(private readonly props: SlowStartProps) {}

  /** Everybody may go. */
  get done(): boolean {
    return this.left === Infinity;
  }

  get mayAdmit(): boolean {
    return this.left > 0;
  }

  admitted(): void {
    this.left--;
  }

  /** A pause is over. */
  begin(): void {
    this.reset();
    this.more(1);
  }

  /** A pause has begun. */
  reset(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.left = 0;
  }

  /** Nobody waits any more. */
  finish(): void {
    this.reset();
    this.left = Infinity;
  }

  private more(step: number): void {
    const { clock, random, onMore } = this.props;
    this.left = step;
    this.timer = clock.setTimer(STEP_MILLISECONDS * (0.5 + random()), () => {
      this.more(step * 2);
    });
    onMore();
  }
}
