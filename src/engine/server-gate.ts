import { OperatorError } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { Breaker } from './breaker.js';
import type { Reach } from './breaker.js';
import type { Clock } from './clock.js';
import { OverloadPause, saysOverloaded } from './overload-pause.js';
import { SlowStart } from './slow-start.js';
import type { ApiRequest, ApiResponse } from './transport.js';
import { WaitingLine } from './waiting-line.js';
import { WriteLimit } from './write-limit.js';
import type { Round } from './write-limit.js';

const OVERLOAD_LOG_MILLISECONDS = 60_000;

/** Why requests are held back. */
export type Pause = 'overloaded' | 'unreachable';

/** Of one that has been let through; given back with what became of it. */
export type Pass = { readonly write: false } | { readonly write: true; readonly round: Round };

export type Answer = Pick<ApiResponse, 'status' | 'retryAfterSeconds'>;

export interface ServerGateProps {
  /** Host and port, for messages. */
  readonly host: string;
  /** Something cheap, whose answer shows that the server is there; rejects when there is none. */
  readonly probe: (signal: AbortSignal) => Promise<Answer>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Writes under way at once, at most. @default 32 */
  readonly maxWrites?: number;
}

/**
 * Lets requests through to one API server, as many as it bears.
 *
 * **Guarantees.** After 429, 503 or 504 nothing is sent for as long as the server asks, but for calls that keep the
 * lease. While the server is out of reach, nothing but one small request at a time is sent. Whoever has waited is let
 * through in order and little by little.
 *
 * **Errors.** While the server is out of reach, a write, and a read that has no signal, fails at once with
 * `Unreachable`: what a reconcile has begun is stale by the time the server is back, and nobody could call it off.
 */
export class ServerGate {
  private readonly breaker: Breaker;
  private readonly overload: OverloadPause;
  private readonly writeLimit: WriteLimit;
  private readonly slowStart: SlowStart;
  private readonly leases = new WaitingLine();
  private readonly reads = new WaitingLine();
  private readonly writes = new WaitingLine();
  private readonly listeners: ((pause: Pause | undefined) => void)[] = [];
  private told: Pause | undefined;
  private overloadLoggedAt = -Infinity;

  constructor(private readonly props: ServerGateProps) {
    const { clock, random, metrics } = props;
    const onOverload = (): void => {
      this.changed();
    };
    this.overload = new OverloadPause({ clock, random, onChange: onOverload });
    this.breaker = new Breaker({
      clock,
      random,
      probe: async (signal) => {
        const answer = await props.probe(signal);
        this.heard(answer);
      },
      onChange: (before) => {
        this.reachChanged(before);
      },
    });
    this.writeLimit = new WriteLimit({
      max: props.maxWrites ?? 32,
      onChange: (limit) => {
        metrics.writeConcurrency.set(limit);
      },
    });
    this.slowStart = new SlowStart({
      clock,
      random,
      onMore: () => {
        this.admit();
      },
    });
    metrics.serverPaused.set({ reason: 'overloaded' }, 0);
    metrics.serverPaused.set({ reason: 'unreachable' }, 0);
  }

  get pause(): Pause | undefined {
    if (this.breaker.reach.phase === 'unreachable') return 'unreachable';
    return this.overload.active ? 'overloaded' : undefined;
  }

  /** Tells each time a pause begins, ends or gets another reason. */
  onChange(listener: (pause: Pause | undefined) => void): void {
    this.listeners.push(listener);
  }

  /** Waits for its turn. Whoever has been let through says what became of it, by `answered` or `failed`. */
  async enter({ method, lease, signal }: ApiRequest): Promise<Pass> {
    if (lease) {
      if (this.breaker.reach.phase !== 'reachable') await this.leases.wait(false, signal);
      return { write: false };
    }
    const write = method !== 'GET';
    const impatient = write || signal === undefined;
    if (impatient && this.breaker.reach.phase === 'unreachable') throw this.unreachable();
    const line = write ? this.writes : this.reads;
    const free = this.open && this.slowStart.done && line.length === 0 && (!write || this.writeLimit.free);
    if (!free) {
      await line.wait(impatient, signal);
      // The place of a write was taken when it was admitted.
    } else if (write) {
      this.writeLimit.begin();
    }
    return write ? { write, round: this.writeLimit.round } : { write };
  }

  /** There was an answer, of whatever status. */
  answered(pass: Pass, answer: Answer): void {
    if (pass.write) {
      this.writeLimit.end();
      if (saysOverloaded(answer.status)) this.writeLimit.halve(pass.round);
      else this.writeLimit.grow();
    }
    this.heard(answer);
    this.admit();
  }

  /** There was no answer. */
  failed(pass: Pass, error: Error): void {
    if (pass.write) {
      this.writeLimit.end();
      if (isTimeout(error)) this.writeLimit.halve(pass.round);
    }
    this.breaker.failed(error);
    this.admit();
  }

  /** It was called off, or never sent: that says nothing about the server. */
  calledOff(pass: Pass): void {
    if (pass.write) this.writeLimit.end();
    this.admit();
  }

  /** Nothing is tried any more, and whoever waits is refused. */
  close(): void {
    this.breaker.close();
    const error = new OperatorError({
      reason: 'Unreachable',
      message: 'The connection to the API server was closed',
      retry: 'backoff',
    });
    for (const line of [this.leases, this.reads, this.writes]) line.refuseAll(error);
    this.overload.end();
    this.slowStart.finish();
  }

  private get open(): boolean {
    return this.breaker.reach.phase === 'reachable' && !this.overload.active;
  }

  private heard({ status, retryAfterSeconds }: Answer): void {
    // First, so that those who wait for an answer aren't let through into the overload that it tells of.
    if (saysOverloaded(status)) this.overload.begin(retryAfterSeconds);
    else this.overload.served();
    this.breaker.answered();
  }

  private reachChanged(before: Reach): void {
    const { log, host, clock } = this.props;
    const { reach } = this.breaker;
    if (reach.phase === 'unreachable') {
      const hint = 'Check that the API server is running and reachable';
      log.warn({ server: host, error: reach.error.message, hint }, 'API server unreachable, requests wait');
      for (const line of [this.reads, this.writes]) line.refuseImpatient(this.unreachable());
    } else if (before.phase === 'unreachable') {
      const seconds = Math.round((clock.monotonic() - before.since) / 1000);
      log.info({ server: host, seconds }, 'API server reachable again');
    }
    this.changed();
  }

  private changed(): void {
    this.tell();
    if (this.breaker.reach.phase === 'reachable') while (this.leases.length > 0) this.leases.admitFirst();
    if (!this.open) this.slowStart.reset();
    else this.slowStart.begin();
  }

  private tell(): void {
    const { pause } = this;
    if (pause === this.told) return;
    this.told = pause;
    const { metrics, log, host, clock } = this.props;
    for (const reason of ['overloaded', 'unreachable'] as const)
      metrics.serverPaused.set({ reason }, pause === reason ? 1 : 0);
    if (pause === 'overloaded' && clock.monotonic() - this.overloadLoggedAt >= OVERLOAD_LOG_MILLISECONDS) {
      this.overloadLoggedAt = clock.monotonic();
      log.warn(
        { server: host, writeConcurrency: this.writeLimit.limit },
        'API server overloaded, requests wait',
      );
    }
    for (const listener of this.listeners) listener(pause);
  }

  /** Lets in as many as may be. */
  private admit(): void {
    const { slowStart, writeLimit } = this;
    while (this.open && slowStart.mayAdmit) {
      if (this.writes.length > 0 && writeLimit.free) {
        slowStart.admitted();
        writeLimit.begin();
        this.writes.admitFirst();
      } else if (this.reads.length > 0) {
        slowStart.admitted();
        this.reads.admitFirst();
      } else {
        break;
      }
    }
    // Nobody is left, or only writes that wait for others to end.
    if (this.open && slowStart.mayAdmit) slowStart.finish();
  }

  private unreachable(): OperatorError {
    const { reach } = this.breaker;
    const cause = reach.phase === 'reachable' ? undefined : reach.error;
    return new OperatorError({
      reason: 'Unreachable',
      message: `The API server ${this.props.host} is unreachable (${cause?.message ?? 'no answer'})`,
      retry: 'backoff',
      cause,
    });
  }
}

function isTimeout(error: Error): boolean {
  return (
    'code' in error && (error.code === 'UND_ERR_HEADERS_TIMEOUT' || error.code === 'UND_ERR_BODY_TIMEOUT')
  );
}
