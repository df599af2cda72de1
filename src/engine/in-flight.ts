import { OperatorError } from '../contract/error.js';
import type { Clock, Timer } from './clock.js';

export interface InFlightProps {
  readonly clock: Clock;
  /** After this a reconcile is given up. */
  readonly timeoutMilliseconds: number;
}

/** One reconcile, from the moment its key is in work until the last request of it has been answered. */
export interface Flight {
  /** Aborted when the reconcile is to be given up; its reason is an OperatorError that says why. */
  readonly signal: AbortSignal;
  /** Nothing of it is under way any more. */
  end(): void;
}

/** The reason of a reconcile that took too long. */
export const TIMEOUT_REASON = 'ReconcileTimeout';
/** The reason of one that was ended because this process may no longer write. */
export const INTERRUPTED_REASON = 'Interrupted';

/** The reconciles under way, and what makes them end early: their time, or that this process may no longer write. */
export class InFlight {
  private readonly flights = new Set<AbortController>();
  private readonly landed: (() => void)[] = [];
  private interrupting = false;

  constructor(private readonly props: InFlightProps) {}

  begin(): Flight {
    const abort = new AbortController();
    this.flights.add(abort);
    let timer: Timer | undefined;
    if (this.interrupting) {
      abort.abort(interrupted());
    } else {
      timer = this.props.clock.setTimer(this.props.timeoutMilliseconds, () => {
        abort.abort(this.timedOut());
      });
    }
    return {
      signal: abort.signal,
      end: () => {
        timer?.cancel();
        if (this.flights.delete(abort) && this.flights.size === 0)
          for (const resolve of this.landed.splice(0)) resolve();
      },
    };
  }

  /** Gives up everything under way, and what begins until `resume`. */
  interrupt(): void {
    this.interrupting = true;
    for (const abort of this.flights) abort.abort(interrupted());
  }

  resume(): void {
    this.interrupting = false;
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    if (this.flights.size > 0) await new Promise<void>((resolve) => this.landed.push(resolve));
  }

  private timedOut(): OperatorError {
    const seconds = this.props.timeoutMilliseconds / 1000;
    return new OperatorError({
      reason: TIMEOUT_REASON,
      message: `The reconcile took longer than ${seconds} s and was given up; the API server may be slow, or the plan has too many steps`,
      retry: 'backoff',
    });
  }
}

function interrupted(): OperatorError {
  const message = 'The reconcile was interrupted, since this process may no longer write';
  return new OperatorError({ reason: INTERRUPTED_REASON, message, retry: 'now' });
}
