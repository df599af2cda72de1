import type { Clock } from './clock.js';

/** Long enough that the pauses cost nothing, short enough that no answer, probe or timer waits for it noticeably. */
const TURN_MILLISECONDS = 10;
/** For a clock that stands still. */
const TURN_ITEMS = 100;

export interface BreatherProps {
  readonly clock: Clock;
  /** Ends when the event loop has looked after everything else. */
  readonly nextTurn: () => Promise<void>;
}

/**
 * Lets the event loop breathe. Work that never waits for anything, such as reconciles of what is as it should be,
 * goes on in one turn of the loop as long as there is some; timers, answers and probes would wait for all of it.
 */
export class Breather {
  private turn: { readonly until: number; left: number; readonly over: Promise<void> } | undefined;

  constructor(private readonly props: BreatherProps) {}

  /** To be called before each item: what to wait for if this turn of the event loop has had enough of them. */
  pause(): Promise<void> | undefined {
    const now = this.props.clock.monotonic();
    if (!this.turn) {
      const over = this.props.nextTurn().then(() => {
        this.turn = undefined;
      });
      this.turn = { until: now + TURN_MILLISECONDS, left: TURN_ITEMS, over };
    }
    this.turn.left--;
    return this.turn.left < 0 || now >= this.turn.until ? this.turn.over : undefined;
  }
}
