import { messageOf } from '../../contract/error.js';
import { LEASE_NAME } from '../../contract/names.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { ApiError } from '../../client/api-error.js';
import { elapsed, instant, sleep, within } from '../../client/clock.js';
import type { Clock, Instant, Timer } from '../../client/clock.js';
import { microTime } from './events.js';
import type { Fence } from '../../client/gate.js';
import { LEASE, retried, TRIES } from '../../client/retry.js';
import type { ApiRequest, ApiResponse, Transport } from '../../client/transport.js';

/** `coordination.k8s.io/v1` Lease. What isn't named here is left as it is. */
export interface Lease {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: LeaseSpec;
}

/** Its times are for people: no candidate trusts another one's clock. */
export interface LeaseSpec {
  /** Empty where the lease was released. */
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  /** Changes from one holder to another. */
  readonly leaseTransitions?: number;
}

export interface ElectorProps {
  readonly transport: Transport;
  /** Namespace of the lease. */
  readonly namespace: string;
  /** Identity of this process, and of no other that ever was. */
  readonly identity: string;
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The lease is ours: work may begin. Called synchronously, with the time since when no other process can have had it. */
  readonly onLeading: (aloneSinceMonotonic: number) => void;
  /** The lease is lost: work has to stop. Called synchronously. */
  readonly onLost: () => void;
  /** The annotations of the lease have changed. @default - nothing follows from them */
  readonly onAnnotated?: () => void;
}

/** State of a candidate. */
type Candidacy =
  /** Waits for the lease; `behind` is the holder that was logged. */
  | { readonly is: 'waiting'; readonly behind?: string }
  /** Holds the lease: the fence goes by the time at which the last successful renewal was sent. */
  | { readonly is: 'leading'; readonly renewedAt: Instant; readonly expiry: Timer }
  /** Has stopped, and writes nothing any more. */
  | { readonly is: 'stopped' };

/**
 * Holds the lease, or waits for it, and knows at any moment whether this process may write. Its guarantees are in
 * docs/engine.md.
 */
export class Elector implements Fence {
  private state: Candidacy = { is: 'waiting' };
  private readonly observed: ObservedLease;
  private failure: string | undefined;
  /** Annotations that the next renewal writes. */
  private readonly noted = new Map<string, string>();
  private readonly stopping = new AbortController();
  private readonly tried = new AbortController();
  private readonly collection: string;

  constructor(private readonly props: ElectorProps) {
    const { namespace, clock, identity, metrics } = props;
    this.collection = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
    this.observed = new ObservedLease(clock, identity);
    metrics.leader.set({ name: LEASE_NAME }, 0);
    metrics.leadershipLosses.inc({ name: LEASE_NAME }, 0);
  }

  /** Aborts after the first try, whatever its outcome. */
  get firstTry(): AbortSignal {
    return this.tried.signal;
  }

  /** Time at which the last successful renewal was sent; undefined while the lease isn't ours. */
  get renewedAt(): Instant | undefined {
    return this.state.is === 'leading' ? this.state.renewedAt : undefined;
  }

  /** Returns an annotation of the lease. */
  annotation(name: string): string | undefined {
    return this.noted.get(name) ?? this.observed.lease?.metadata.annotations?.[name];
  }

  /** Writes an annotation of the lease with its next renewal. */
  annotate(name: string, value: string): void {
    this.noted.set(name, value);
  }

  /** Reports whether this process may write: by the age of the last renewal, since timers may be late. */
  admits(): boolean {
    this.loseIfExpired();
    return this.renewedAt !== undefined;
  }

  /** Returns reasons to restart the process; none while all is well. */
  unhealthy(): string[] {
    if (!this.renewedAt) return [];
    const age = elapsed(this.props.clock, this.renewedAt);
    return age > LEASE.durationSeconds * 1000 + LEASE.unhealthyAfter
      ? [`leader election: the lease was last renewed ${Math.round(age / 1000)} s ago`]
      : [];
  }

  /** Acquires the lease, keeps it, and acquires it again when it is lost, until `release` is called. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await this.tryOnce();
        this.failure = undefined;
      } catch (error) {
        this.failed(`${messageOf(error)}${this.remedyOf(error)}`);
      }
      this.tried.abort();
      await sleep(this.props.clock, this.pause(), signal);
    }
  }

  /** Ends `run`, closes the fence, and then releases the lease, if it is ours. Never rejects. */
  async release(): Promise<void> {
    const { log } = this.props;
    const held = this.renewedAt && this.observed.lease;
    this.stop();
    if (!held) return;
    try {
      await this.giveBack(held);
      log.info('released the lease');
    } catch (error) {
      const message = 'the lease was not released, so others have to wait until it runs out';
      log.warn({ error: messageOf(error) }, message);
    }
  }

  /** Ends the candidacy without releasing the lease, for a process that can't be sure to have written its last. */
  stop(): void {
    this.enter({ is: 'stopped' });
    this.props.metrics.leader.set({ name: LEASE_NAME }, 0);
    this.stopping.abort();
  }

  private async tryOnce(): Promise<void> {
    // A process that has slept must know it before anything else.
    this.loseIfExpired();
    const { identity, metrics, log } = this.props;
    const { signal } = this.stopping;
    if (this.renewedAt) {
      if (await this.claim(this.observed.lease)) return;
      metrics.leaderSlowPath.inc({ name: LEASE_NAME });
    }
    this.observe(await this.get(signal));
    const { holder, lease } = this.observed;
    if (holder !== identity) this.lose(holder ? `${holder} has it` : 'it was taken away');
    if (holder === identity || this.observed.remaining() <= 0) await this.claim(lease);
    else if (this.state.is === 'waiting' && this.state.behind !== holder) {
      this.enter({ is: 'waiting', behind: holder });
      log.info({ holder }, `waiting for ${holder}`);
    }
  }

  /** Takes or renews the lease, if it still is as it was seen. Returns false if it isn't. */
  private async claim(seen: Lease | undefined): Promise<boolean> {
    const { clock, identity, namespace } = this.props;
    const { signal } = this.stopping;
    const sentAt = instant(clock);
    const spec = claimed(seen?.spec, identity, LEASE.durationSeconds, sentAt.wall);
    const noted = [...this.noted];
    const annotations = { ...seen?.metadata.annotations, ...Object.fromEntries(noted) };
    const metadata = {
      ...{ namespace, name: LEASE_NAME, ...seen?.metadata },
      ...(noted.length > 0 && { annotations }),
    };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...seen, metadata, spec };
    const request = { method: 'POST', path: this.collection, body: lease } as const;
    try {
      this.observe(seen ? await this.update(lease, signal) : await this.send('Create', signal, request));
    } catch (error) {
      // Where there is none to be created, its namespace is missing.
      if (isConflict(error) && (seen || !isMissing(error))) return false;
      throw error;
    }
    for (const [name, value] of noted) if (this.noted.get(name) === value) this.noted.delete(name);
    this.renewed(sentAt);
    return true;
  }

  private observe(lease: Lease | undefined): void {
    const before = JSON.stringify(this.observed.lease?.metadata.annotations);
    this.observed.observe(lease);
    if (before !== JSON.stringify(lease?.metadata.annotations)) this.props.onAnnotated?.();
  }

  private async giveBack(held: Lease): Promise<void> {
    const { identity, clock } = this.props;
    const { signal } = new AbortController();
    let lease: Lease | undefined = held;
    const release = async (): Promise<void> => {
      // One second, for those that look at the time alone.
      const spec = { ...claimed(lease?.spec, identity, 1, clock.now()), holderIdentity: '' };
      if (lease) await this.update({ ...lease, spec }, signal);
    };
    await retried(TRIES.release, release, async (error) => {
      if (!isConflict(error)) return false;
      const now = await this.get(signal);
      lease = now?.spec?.holderIdentity === identity ? now : undefined;
      return true;
    });
  }

  private renewed(sentAt: Instant): void {
    const { clock, log, metrics, onLeading, identity } = this.props;
    const left = LEASE.renewDeadline - elapsed(clock, sentAt);
    // An answer that has slept on its way is no proof any more.
    if (left <= 0 || this.state.is === 'stopped') return;
    const wasLeading = this.state.is === 'leading';
    const expiry = clock.setTimer(left, () => {
      this.loseIfExpired();
    });
    this.enter({ is: 'leading', renewedAt: sentAt, expiry });
    if (wasLeading) return;
    metrics.leader.set({ name: LEASE_NAME }, 1);
    log.info({ identity }, 'became leader');
    onLeading(this.observed.aloneSince);
  }

  private loseIfExpired(): void {
    if (!this.renewedAt) return;
    const age = elapsed(this.props.clock, this.renewedAt);
    if (age < LEASE.renewDeadline) return;
    const because = this.failure === undefined ? '' : `: ${this.failure}`;
    this.lose(`not renewed for ${(age / 1000).toFixed(1)} s${because}`);
  }

  private lose(why: string): void {
    if (this.state.is !== 'leading') return;
    const { log, metrics, onLost } = this.props;
    this.enter({ is: 'waiting' });
    this.noted.clear();
    metrics.leader.set({ name: LEASE_NAME }, 0);
    metrics.leadershipLosses.inc({ name: LEASE_NAME });
    log.warn({ why }, 'lost the lease');
    onLost();
  }

  private enter(state: Candidacy): void {
    if (this.state.is === 'leading') this.state.expiry.cancel();
    this.state = state;
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

  /** A candidate asks again at the moment the lease runs out, if that is sooner than its next turn. */
  private pause(): number {
    if (this.renewedAt) return LEASE.retryPeriod;
    const turn = LEASE.retryPeriod / (1 + LEASE.jitter * this.props.random());
    const remaining = this.observed.remaining();
    return remaining > 0 ? Math.min(turn, remaining) : turn;
  }

  /** Undefined if there is none. */
  private async get(signal: AbortSignal): Promise<Lease | undefined> {
    const path = `${this.collection}/${LEASE_NAME}`;
    return this.send('Get', signal, { method: 'GET', path }).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
  }

  /** Replaces exactly the version that was seen: the second of two gets a 409. */
  private async update(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const path = `${this.collection}/${LEASE_NAME}`;
    return this.send('Update', signal, { method: 'PUT', path, body: lease });
  }

  /** Ends in time whatever becomes of the request, as where a credential plugin hangs. */
  private async send(verb: string, stop: AbortSignal, request: ApiRequest): Promise<Lease> {
    const { clock, transport, namespace } = this.props;
    const what = `${verb} Lease ${namespace}/${LEASE_NAME}`;
    let timeout = LEASE.renewDeadline / 2;
    if (this.renewedAt)
      timeout = Math.max(0, Math.min(timeout, LEASE.renewDeadline - elapsed(clock, this.renewedAt)));
    const ask = (signal: AbortSignal): Promise<ApiResponse> =>
      transport.request({ ...request, lease: true, signal });
    const response = await within(clock, timeout, stop, ask);
    if (response.status < 200 || response.status > 299) throw new ApiError(what, response);
    return response.body as Lease;
  }
}

/** The spec by which a lease is taken or renewed. */
function claimed(
  before: LeaseSpec | undefined,
  identity: string,
  durationSeconds: number,
  now: number,
): LeaseSpec {
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

/** Reports whether the lease was changed, created or deleted since it was seen. */
function isConflict(error: unknown): boolean {
  return isMissing(error) || (error instanceof ApiError && error.code === 409);
}

function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

/**
 * A lease as a candidate sees it. Only a record that changes is a sign of life of its holder, and only our own clock
 * says when it came: the times of the record are by another one's clock.
 */
class ObservedLease {
  /** Lease as it was last seen. */
  lease: Lease | undefined;
  /** Since when, by our monotonic clock, no other process can have had it; never, where another one is its holder. */
  aloneSince = Infinity;
  private spec: string | undefined;
  private changedAt = 0;

  /** @param identity of the candidate */
  constructor(
    private readonly clock: Clock,
    private readonly identity: string,
  ) {}

  /** Empty where there is none. */
  get holder(): string {
    return this.lease?.spec?.holderIdentity ?? '';
  }

  observe(lease: Lease | undefined): void {
    const now = this.clock.monotonic();
    const spec = JSON.stringify(lease?.spec);
    const changed = spec !== this.spec;
    if (changed) this.changedAt = now;
    this.spec = spec;
    this.lease = lease;
    const { holder } = this;
    if (holder !== '' && holder !== this.identity) this.aloneSince = Infinity;
    // Where it has become free, another one may have had and released it since it was seen last.
    else if (this.aloneSince === Infinity || (changed && holder === '')) this.aloneSince = now;
  }

  /** Milliseconds until it has run out, if it isn't renewed; 0 or less if it has, or if it has no holder. */
  remaining(): number {
    if (this.holder === '') return 0;
    const seconds = this.lease?.spec?.leaseDurationSeconds ?? 0;
    return this.changedAt + seconds * 1000 - this.clock.monotonic();
  }
}
