import type { Clock, Timer } from './clock.js';

/** Before the next try, by the failures in a row so far; the last holds for all that follow. */
const PAUSES_MILLISECONDS = [50, 1_000, 2_000, 5_000];
/** So that many clients of one server don't try together; a pause is shortened by up to this share of itself. */
const JITTER = 0.1;
/** One failure may be a connection that ended; after this many there is no doubt. */
const FAILURES_UNTIL_CERTAIN = 3;
/** Shorter than the pauses, so that a try that hangs doesn't stretch them. */
const PROBE_TIMEOUT_MILLISECONDS = 4_000;

interface Outage {
  readonly failures: number;
  readonly error: Error;
  /** When the first request got no answer, by the monotonic clock. */
  readonly since: number;
}

/** Whether the server can be reached, as far as we know. */
export type Reach =
  /** The last that we heard of it was an answer. */
  | { readonly phase: 'reachable' }
  /** There was no answer, and nobody has found out yet whether that was more than a connection that ended. */
  | ({ readonly phase: 'doubtful' } & Outage)
  /** There was no answer several times in a row. */
  | ({ readonly phase: 'unreachable' } & Outage);

export interface BreakerProps {
  readonly clock: Clock;
  readonly random: () => number;
  /** Sends something cheap; rejects when there is no answer. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  readonly onChange: (before: Reach) => void;
}

/**
 * Finds out when a server is back that doesn't answer, by one cheap request at a time.
 *
 * **Guarantees.** It tries almost at once, after 1 s, after 2 s and then every 4.5 to 5 s, and never twice at a time. Any
 * answer, of whatever status and to whomever, ends it.
 */
export class Breaker {
  reach: Reach = { phase: 'reachable' };
  private timer: Timer | undefined;
  private probing: AbortController | undefined;
  private closed = false;

  constructor(private readonly props: BreakerProps) {}

  answered(): void {
    if (this.reach.phase === 'reachable') return;
    this.stop();
    this.become({ phase: 'reachable' });
  }

  /** A request got no answer. Once there is doubt, only the breaker's own requests tell more. */
  failed(error: Error): void {
    if (this.closed || this.reach.phase !== 'reachable') return;
    this.next({ failures: 1, error, since: this.props.clock.monotonic() }, 0);
  }

  close(): void {
    this.closed = true;
    this.stop();
  }

  /** Plans the next try; the last one took so long. */
  private next(outage: Outage, tookMilliseconds: number): void {
    const { clock, random } = this.props;
    const { failures } = outage;
    const pause = PAUSES_MILLISECONDS[Math.min(failures, PAUSES_MILLISECONDS.length) - 1] ?? 0;
    // Counted from one try to the next, however long a try takes.
    const delay = pause * (1 - JITTER * random()) - tookMilliseconds;
    this.timer = clock.setTimer(Math.max(0, delay), () => void this.probe(outage));
    this.become({ phase: failures < FAILURES_UNTIL_CERTAIN ? 'doubtful' : 'unreachable', ...outage });
  }

  private async probe({ failures, since }: Outage): Promise<void> {
    const { clock } = this.props;
    const controller = new AbortController();
    this.probing = controller;
    const startedAt = clock.monotonic();
    const late = Promise.withResolvers<never>();
    const timeout = clock.setTimer(PROBE_TIMEOUT_MILLISECONDS, () => {
      late.reject(new Error(`no answer within ${String(PROBE_TIMEOUT_MILLISECONDS / 1000)} s`));
      controller.abort();
    });
    try {
      // A plugin that gets credentials may hang too, and knows no signal.
      await Promise.race([this.props.probe(controller.signal), late.promise]);
      this.answered();
    } catch (error) {
      if (this.probing === controller)
        this.next({ failures: failures + 1, error: error as Error, since }, clock.monotonic() - startedAt);
    } finally {
      timeout.cancel();
    }
  }

  private stop(): void {
    const { probing } = this;
    this.timer?.cancel();
    this.timer = undefined;
    this.probing = undefined;
    probing?.abort();
  }

  private become(reach: Reach): void {
    const before = this.reach;
    this.reach = reach;
    if (before.phase !== reach.phase) this.props.onChange(before);
  }
}
