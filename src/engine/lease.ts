import { ApiError } from './api-error.js';
import type { Clock } from './clock.js';
import { microTime } from './event-sender.js';
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
