import { messageOf } from '../contract/error.js';
import { LEASE_NAME } from '../contract/names.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ApiError } from './api-error.js';
import { elapsed, instant, sleep } from './clock.js';
import type { Clock, Instant, Timer } from './clock.js';
import { microTime } from './event-sender.js';
import type { Fence } from './gate.js';
import type { ApiRequest, Transport } from './transport.js';

/** `coordination.k8s.io/v1` Lease. What isn't named here is left as it is. */
export interface Lease {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly namespace: string; readonly name: string; readonly resourceVersion?: string };
  readonly spec?: LeaseSpec;
}

export interface LeaseSpec {
  /** Empty where the lease was given back. */
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  /** How often it went from one holder to another. */
  readonly leaseTransitions?: number;
}

export interface Claim {
  readonly identity: string;
  readonly durationSeconds: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The spec by which a lease is taken or renewed. Its times are for people: no holder trusts another one's clock. */
export function claimed(before: LeaseSpec | undefined, { identity, durationSeconds, now }: Claim): LeaseSpec {
  const time = microTime(now);
  const stays = before?.holderIdentity === identity;
  return {
    ...before,
    holderIdentity: identity,
    leaseDurationSeconds: durationSeconds,
    acquireTime: stays ? (before.acquireTime ?? time) : time,
    renewTime: time,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (stays || before === undefined ? 0 : 1),
  };
}

/** The spec by which a lease is given back; one second, for those that look at the time alone. */
export function givenBack(before: LeaseSpec | undefined, now: number): LeaseSpec {
  return {
    ...claimed(before, { identity: before?.holderIdentity ?? '', durationSeconds: 1, now }),
    holderIdentity: '',
  };
}

export interface CallOptions {
  readonly timeoutMilliseconds: number;
  readonly signal: AbortSignal;
}

/** The three requests that an election needs. Each throws an ApiError when the answer isn't a success. */
export class LeaseClient {
  private readonly collection: string;

  constructor(
    private readonly transport: Transport,
    private readonly clock: Clock,
    private readonly namespace: string,
    private readonly name: string,
  ) {
    this.collection = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  }

  /** Nothing if there is none. */
  async get(options: CallOptions): Promise<Lease | undefined> {
    try {
      return await this.send('Get', { method: 'GET', path: `${this.collection}/${this.name}` }, options);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async create(spec: LeaseSpec, options: CallOptions): Promise<Lease> {
    const { namespace, name } = this;
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { namespace, name }, spec };
    return this.send('Create', { method: 'POST', path: this.collection, body }, options);
  }

  /** Replaces exactly the version that was seen: whoever comes second gets a 409. */
  async update(seen: Lease, spec: LeaseSpec, options: CallOptions): Promise<Lease> {
    const body = { ...seen, spec };
    return this.send('Update', { method: 'PUT', path: `${this.collection}/${this.name}`, body }, options);
  }

  private async send(verb: string, request: ApiRequest, options: CallOptions): Promise<Lease> {
    const what = `${verb} Lease ${this.namespace}/${this.name}`;
    const response = await this.inTime(what, options, (signal) =>
      this.transport.request({ ...request, lease: true, signal }),
    );
    if (response.status < 200 || response.status > 299) throw new ApiError(what, response);
    return response.body as Lease;
  }

  /** Ends with the timeout whatever becomes of the request, e.g. while credentials are fetched in vain. */
  private async inTime<T>(
    what: string,
    { timeoutMilliseconds, signal }: CallOptions,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const aborted = new AbortController();
    const { promise: failed, reject } = Promise.withResolvers<never>();
    const fail = (message: string): void => {
      const error = new Error(`${what}: ${message}`);
      reject(error);
      aborted.abort(error);
    };
    const stop = (): void => {
      fail('given up, since this process stops');
    };
    const timer = this.clock.setTimer(timeoutMilliseconds, () => {
      fail(`no answer within ${(timeoutMilliseconds / 1000).toFixed(1)} s`);
    });
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    try {
      return await Promise.race([failed, request(aborted.signal)]);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', stop);
    }
  }
}

/** How often a lease is given back anew, when somebody has touched it meanwhile. */
const RELEASE_TRIES = 3;

/** Gives the lease back, so that nobody has to wait until it runs out. Does nothing where another one has it. */
export async function giveBack(
  client: LeaseClient,
  held: Lease,
  clock: Clock,
  options: CallOptions,
): Promise<void> {
  const holder = held.spec?.holderIdentity;
  let lease = held;
  for (let tries = 1; ; tries++) {
    try {
      await client.update(lease, givenBack(lease.spec, clock.now()), options);
      return;
    } catch (error) {
      if (!isConflict(error) || tries === RELEASE_TRIES) throw error;
      const now = await client.get(options);
      if (!now || now.spec?.holderIdentity !== holder) return;
      lease = now;
    }
  }
}

/** The lease was changed, made or deleted since it was seen. */
export function isConflict(error: unknown): boolean {
  return isMissing(error) || (error instanceof ApiError && error.code === 409);
}

export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

/** A renewal may be this late, beyond the lease's duration, before the process is unhealthy; as in controller-runtime. */
const UNHEALTHY_AFTER_MILLISECONDS = 20_000;
/** Of several candidates each asks at its own pace; never slower than the retry period, or takeovers would be late. */
const JITTER = 0.2;

export interface ElectorProps {
  readonly transport: Transport;
  /** Of the lease. */
  readonly namespace: string;
  /** @default reconstruct */
  readonly name?: string;
  /** Of this process, and of no other that ever was. */
  readonly identity: string;
  /** Others wait so long, from the last renewal they have seen. Whole seconds. @default 15 */
  readonly leaseDurationSeconds?: number;
  /** After this long without a renewal, nothing is written any more; shorter than the lease. @default 10000 */
  readonly renewDeadlineMilliseconds?: number;
  /** From one try to the next. @default 2000 */
  readonly retryPeriodMilliseconds?: number;
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The lease is ours: work may begin. Called synchronously, with the time since when nobody else can have had it. */
  readonly onLeading: (aloneSinceMonotonic: number) => void;
  /** The lease is lost: work has to stop. Called synchronously. */
  readonly onLost: () => void;
}

/** Where an elector stands. */
export type ElectorState =
  /** Not leading: it asks for the lease again and again. */
  | { readonly phase: 'standby' }
  /** The lease is ours; `renewed` is when the last successful renewal was sent, which the fence goes by. */
  | { readonly phase: 'leading'; readonly renewed: Instant }
  /** It has stopped: the lease is given back, and nothing is written any more. */
  | { readonly phase: 'released' };

/**
 * Holds the lease, or waits for it, and knows at any moment whether this process may write.
 *
 * **Guarantees.** No two processes admit writes at the same time, as long as no clock runs half as fast again as another.
 * Clocks may differ, and be set while this runs. A process that was stopped or suspended finds out before it writes again.
 *
 * **Assumptions.** Nobody edits or deletes the lease. No machine sets its clock back while it is suspended.
 *
 * **Caveats.** What was handed to a connection before the lease ran out may arrive later: the lease outlasts the fence
 * by half to allow for that.
 */
export class Elector implements Fence {
  private current: ElectorState = { phase: 'standby' };
  private readonly observed: ObservedLease;
  private expiry: Timer | undefined;
  private waitingFor: string | undefined;
  private failure: string | undefined;
  private readonly stopping = new AbortController();
  private readonly tried = new AbortController();
  private readonly client: LeaseClient;
  private readonly name: string;
  private readonly durationSeconds: number;
  private readonly renewDeadline: number;
  private readonly retryPeriod: number;

  constructor(private readonly props: ElectorProps) {
    this.name = props.name ?? LEASE_NAME;
    this.durationSeconds = props.leaseDurationSeconds ?? 15;
    this.renewDeadline = props.renewDeadlineMilliseconds ?? 10_000;
    this.retryPeriod = props.retryPeriodMilliseconds ?? 2_000;
    if (
      this.renewDeadline >= this.durationSeconds * 1000 ||
      this.retryPeriod * (1 + JITTER) >= this.renewDeadline
    )
      throw new RangeError('The lease has to outlast the renew deadline, and that the retry period');
    this.client = new LeaseClient(props.transport, props.clock, props.namespace, this.name);
    this.observed = new ObservedLease(props.clock, props.identity);
    props.metrics.leader.set({ name: this.name }, 0);
    props.metrics.leadershipLosses.inc({ name: this.name }, 0);
  }

  get state(): ElectorState {
    return this.current;
  }

  /** Aborts after the first try, whatever its outcome. */
  get firstTry(): AbortSignal {
    return this.tried.signal;
  }

  /** Timers may be late, so the age of the last renewal is looked at each time. */
  admits(): boolean {
    this.loseIfExpired();
    return this.current.phase === 'leading';
  }

  /** Why the process had better be restarted; empty while all is well. */
  unhealthy(): string[] {
    if (this.current.phase !== 'leading') return [];
    const seconds = elapsed(this.props.clock, this.current.renewed) / 1000;
    return seconds > this.durationSeconds + UNHEALTHY_AFTER_MILLISECONDS / 1000
      ? [`leader election: the lease was last renewed ${Math.round(seconds)} s ago`]
      : [];
  }

  /** Acquires the lease, keeps it, and acquires it anew when it is lost, until `release` is called. Never rejects. */
  async run(): Promise<void> {
    const { clock } = this.props;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await this.tryOnce();
        this.failure = undefined;
      } catch (error) {
        this.failed(`${messageOf(error)}${this.remedyOf(error)}`);
      }
      this.tried.abort();
      await sleep(clock, this.pause(), signal);
    }
  }

  /** Ends `run`, closes the fence, and then gives the lease back, if it is ours. Never rejects. */
  async release(): Promise<void> {
    const { log } = this.props;
    const held = this.current.phase === 'leading' ? this.observed.lease : undefined;
    this.stop();
    if (!held) return;
    try {
      const options = { ...this.callOptions(), signal: new AbortController().signal };
      await giveBack(this.client, held, this.props.clock, options);
      log.info('Released the lease');
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        'The lease was not released, so others have to wait until it runs out',
      );
    }
  }

  /** Ends the candidacy without giving the lease back, for a process that can't be sure to have written its last. */
  stop(): void {
    this.current = { phase: 'released' };
    this.expiry?.cancel();
    this.props.metrics.leader.set({ name: this.name }, 0);
    this.stopping.abort();
  }

  private async tryOnce(): Promise<void> {
    // Whoever has slept must know it before anything else.
    this.loseIfExpired();
    const { identity, metrics } = this.props;
    if (this.current.phase === 'leading') {
      if (await this.claimAs(this.observed.lease)) return;
      metrics.leaderSlowPath.inc({ name: this.name });
    }
    this.observed.observe(await this.client.get(this.callOptions()));
    const { holder, lease } = this.observed;
    if (holder !== identity) this.lose(holder ? `${holder} has it` : 'somebody has taken it away');
    if (holder !== identity && this.observed.remaining() > 0) this.waitFor(holder);
    else await this.claimAs(lease);
  }

  /** Takes or renews the lease, if it still is as it was seen. Returns false if it isn't. */
  private async claimAs(seen: Lease | undefined): Promise<boolean> {
    const { clock, identity } = this.props;
    const sentAt = instant(clock);
    const spec = claimed(seen?.spec, { identity, durationSeconds: this.durationSeconds, now: sentAt.wall });
    const options = this.callOptions();
    try {
      const answer = seen ? this.client.update(seen, spec, options) : this.client.create(spec, options);
      this.observed.observe(await answer);
    } catch (error) {
      // Where there is none to be created, its namespace is missing.
      if (isConflict(error) && (seen || !isMissing(error))) return false;
      throw error;
    }
    this.renewed(sentAt);
    return true;
  }

  private renewed(sentAt: Instant): void {
    const { clock, log, metrics, onLeading } = this.props;
    const left = this.renewDeadline - elapsed(clock, sentAt);
    // An answer that has slept on its way is no proof any more.
    if (left <= 0 || this.current.phase === 'released') return;
    const gained = this.current.phase === 'standby';
    this.current = { phase: 'leading', renewed: sentAt };
    this.expiry?.cancel();
    this.expiry = clock.setTimer(left, () => {
      this.loseIfExpired();
    });
    if (!gained) return;
    this.waitingFor = undefined;
    metrics.leader.set({ name: this.name }, 1);
    log.info({ identity: this.props.identity }, 'Became leader');
    onLeading(this.observed.aloneSince);
  }

  private loseIfExpired(): void {
    if (this.current.phase !== 'leading') return;
    const age = elapsed(this.props.clock, this.current.renewed);
    if (age < this.renewDeadline) return;
    const because = this.failure === undefined ? '' : `: ${this.failure}`;
    this.lose(`not renewed for ${(age / 1000).toFixed(1)} s${because}`);
  }

  private lose(why: string): void {
    if (this.current.phase !== 'leading') return;
    const { log, metrics, onLost } = this.props;
    this.current = { phase: 'standby' };
    this.expiry?.cancel();
    metrics.leader.set({ name: this.name }, 0);
    metrics.leadershipLosses.inc({ name: this.name });
    log.warn({ why }, 'Lost the lease');
    onLost();
  }

  private waitFor(holder: string): void {
    if (this.waitingFor === holder) return;
    this.waitingFor = holder;
    this.props.log.info({ holder }, `Waiting for ${holder}`);
  }

  private remedyOf(error: unknown): string {
    const { namespace } = this.props;
    const another = 'or name another namespace with --leader-election-namespace';
    if (isMissing(error)) return `; create namespace ${namespace}, ${another}`;
    const isForbidden = error instanceof ApiError && error.code === 403;
    return isForbidden
      ? `; grant get, create and update of leases in namespace ${namespace}, ${another}`
      : '';
  }

  private failed(message: string): void {
    if (this.failure === message || this.stopping.signal.aborted) return;
    this.failure = message;
    this.props.log.warn({ error: message }, 'failed to acquire or renew lease, retrying');
  }

  private callOptions(): CallOptions {
    const { clock } = this.props;
    const timeout = Math.max(1_000, this.renewDeadline / 2);
    const left =
      this.current.phase === 'leading' ? this.renewDeadline - elapsed(clock, this.current.renewed) : timeout;
    return { timeoutMilliseconds: Math.max(0, Math.min(timeout, left)), signal: this.stopping.signal };
  }

  /** A candidate asks again at the moment the lease runs out, if that is sooner than its next turn. */
  private pause(): number {
    if (this.current.phase === 'leading') return this.retryPeriod;
    const turn = this.retryPeriod / (1 + JITTER * this.props.random());
    const remaining = this.observed.remaining();
    return remaining > 0 ? Math.min(turn, remaining) : turn;
  }
}

/**
 * A lease as a candidate sees it. Only a record that changes is a sign of life of its holder, and only our own clock
 * says when it came: what the record has for times is by the clock of somebody else.
 */
class ObservedLease {
  private seen: Lease | undefined;
  private spec: string | undefined;
  private changedAt = 0;
  private alone = Infinity;

  /** @param identity of the candidate */
  constructor(
    private readonly clock: Clock,
    private readonly identity: string,
  ) {}

  /** As it was last seen. */
  get lease(): Lease | undefined {
    return this.seen;
  }

  /** Empty where nobody has it. */
  get holder(): string {
    return this.seen?.spec?.holderIdentity ?? '';
  }

  /** Since when, by our monotonic clock, nobody else can have had it; never, where somebody else is its holder. */
  get aloneSince(): number {
    return this.alone;
  }

  observe(lease: Lease | undefined): void {
    const now = this.clock.monotonic();
    const spec = JSON.stringify(lease?.spec);
    const changed = spec !== this.spec;
    if (changed) this.changedAt = now;
    this.spec = spec;
    this.seen = lease;
    const { holder } = this;
    if (holder !== '' && holder !== this.identity) this.alone = Infinity;
    // Where it has become free, somebody may have had it and given it back since it was seen last.
    else if (this.alone === Infinity || (changed && holder === '')) this.alone = now;
  }

  /** Milliseconds until it has run out, if it isn't renewed; 0 or less if it has, or if nobody has it. */
  remaining(): number {
    if (this.holder === '') return 0;
    const seconds = this.seen?.spec?.leaseDurationSeconds ?? 0;
    return this.changedAt + seconds * 1000 - this.clock.monotonic();
  }
}
