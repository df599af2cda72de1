import { OperatorError } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { pauseAskedBy } from './api-error.js';
import { sleep, unlessAborted, within } from './clock.js';
import type { Clock } from './clock.js';
import { RETRY_AFTER_MARGIN, SERVER, MAX_WRITES } from './retry.js';
import { isConnectionLoss, ProxyFailure } from './transport.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/**
 * A server that starts answers other requests, `/version` among them, before it can serve them. By default, every
 * user may read this one (`system:public-info-viewer`).
 */
const READYZ: ApiRequest = { method: 'GET', path: '/readyz' };

/** Guard of writes. */
export interface Fence {
  /** Reports whether this process may write, at the very moment that it is asked. */
  admits(): boolean;
}

export interface GateProps {
  /** The bare way to the API server. */
  readonly wire: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** @default - this process may always write */
  readonly fence?: Fence;
  /** Writes in flight. @default 32 */
  readonly maxWrites?: number;
}

/** Time without an answer of the server. */
interface Outage {
  readonly error: Error;
  /** Time of the first request without an answer, by the monotonic clock. */
  readonly since: number;
  /** Whether there was no answer several times in a row, and it isn't a single connection that ended. */
  readonly isCertain: boolean;
}

/** The server answers that it isn't ready. */
class NotReady extends Error {}

/** A response with `Retry-After`; its request isn't sent again before, by the monotonic clock. */
interface Refusal {
  readonly response: ApiResponse;
  readonly until: number;
}

/**
 * Way of every request of the engine to the API server: fenced, limited, counted, retried once after a lost connection,
 * and held back during an outage. Its guarantees are in docs/engine.md.
 */
export class Gate implements Transport {
  readonly host: string;
  private outage: Outage | undefined;
  private recovering: AbortController | undefined;
  private writes = 0;
  private readonly waiting = new Set<() => void>();
  /** Refusals by request, the oldest first. */
  private readonly refusals = new Map<string, Refusal>();
  private readonly listeners: ((isUnreachable: boolean) => void)[] = [];
  private closed = false;

  constructor(private readonly props: GateProps) {
    this.host = props.wire.host;
    props.metrics.serverUnreachable.set(0);
  }

  get isUnreachable(): boolean {
    return this.outage?.isCertain ?? false;
  }

  /** Calls back when an outage begins or ends, and when a server becomes ready that was used before it was. */
  onChange(listener: (isUnreachable: boolean) => void): void {
    this.listeners.push(listener);
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    const send = this.props.wire.request.bind(this.props.wire);
    // Watches and lists keep the pause themselves; a create has no name in its path by which to know it.
    if (req.lease || req.method === 'GET' || req.method === 'POST') return this.withSecondTry(req, send);
    const { clock, random } = this.props;
    const id = `${req.method} ${req.path}`;
    const earlier = this.refusals.get(id);
    const left = (earlier?.until ?? 0) - clock.monotonic();
    if (earlier && left > 0) return { ...earlier.response, retryAfterSeconds: left / 1000, isRepeated: true };
    this.refusals.delete(id);
    const response = await this.withSecondTry(req, send);
    if (response.status < 300) return response;
    const pause = pauseAskedBy(response) * (RETRY_AFTER_MARGIN.least + RETRY_AFTER_MARGIN.spread * random());
    if (pause === 0) return response;
    const now = clock.monotonic();
    for (const [past, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(past);
    }
    this.refusals.set(id, { response, until: now + pause });
    return { ...response, retryAfterSeconds: pause / 1000 };
  }

  async stream(req: ApiRequest): Promise<ApiStream> {
    return this.withSecondTry(req, this.props.wire.stream.bind(this.props.wire));
  }

  /** Ends probing, and fails what waits. */
  async close(): Promise<void> {
    this.closed = true;
    this.recovering?.abort();
    this.wake();
    await this.props.wire.close();
  }

  /**
   * Sends once more where the connection ended before there was an answer. All that is sent may be sent twice: reads and
   * applies may; deletes and updates name the version they are for; what is created has a name, and is answered with 409.
   */
  private async withSecondTry<T extends ApiResponse | ApiStream>(
    req: ApiRequest,
    send: (req: ApiRequest) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.once(req, send);
    } catch (error) {
      const { signal } = req;
      if (signal?.aborted || !isConnectionLoss(error)) throw error;
      this.props.metrics.requestRetries.inc({ verb: req.method, host: this.host });
      await sleep(this.props.clock, SERVER.secondTry, signal);
      signal?.throwIfAborted();
      return { ...(await this.once(req, send)), isSecondTry: true };
    }
  }

  private async once<T extends ApiResponse | ApiStream>(
    req: ApiRequest,
    send: (req: ApiRequest) => Promise<T>,
  ): Promise<T> {
    const { method, lease = false, signal } = req;
    const isWrite = method !== 'GET' && !lease;
    const isFenced = isWrite && req.query?.dryRun !== 'All';
    if (!lease) await this.acquire(isWrite, signal);
    const { clock, metrics } = this.props;
    const startedAt = clock.monotonic();
    let code: string | undefined = '<error>';
    try {
      if (isFenced) this.admit();
      const answer = await send(isFenced ? { ...req, admit: this.admit } : req);
      code = String(answer.status);
      // The lease isn't held back, so its answer may come from a server that isn't ready.
      if (!lease && this.outage && !this.outage.isCertain) this.recovered();
      return answer;
    } catch (error) {
      // What the fence has held back was never sent.
      if (error instanceof OperatorError) code = undefined;
      // Once there is an outage, only the probes count; what was called off says nothing about the server.
      else if (!signal?.aborted && !this.outage && !this.closed) void this.recover(error as Error);
      throw error;
    } finally {
      if (isWrite) this.writes--;
      this.wake();
      if (code !== undefined) {
        metrics.requests.inc({ code, method, host: this.host });
        metrics.requestSeconds.observe(
          { verb: method, host: this.host },
          (clock.monotonic() - startedAt) / 1000,
        );
      }
    }
  }

  private readonly admit = (): void => {
    const { fence, metrics } = this.props;
    if (!fence || fence.admits()) return;
    metrics.fencedWrites.inc();
    const message = 'This process may not write, since it does not hold the lease for certain';
    throw new OperatorError({ reason: 'NotLeading', message, retry: 'now' });
  };

  /** Resolves once the request may be sent; a write counts as in flight from then on. */
  private async acquire(isWrite: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { maxWrites = MAX_WRITES } = this.props;
    for (;;) {
      signal?.throwIfAborted();
      if (this.closed || (this.outage?.isCertain && (isWrite || !signal))) throw this.unreachable();
      if (!this.outage && (!isWrite || this.writes < maxWrites)) {
        if (isWrite) this.writes++;
        return;
      }
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => {
        resolve(undefined);
      };
      this.waiting.add(wake);
      await unlessAborted(promise, signal).finally(() => this.waiting.delete(wake));
    }
  }

  private wake(): void {
    for (const wake of this.waiting) wake();
  }

  /** Probes the server until it is ready. Never rejects. */
  private async recover(first: Error): Promise<void> {
    const { clock, random, log } = this.props;
    this.recovering?.abort();
    const { signal } = (this.recovering = new AbortController());
    const since = clock.monotonic();
    let notReadySince: number | undefined;
    let took = 0;
    this.setOutage({ error: first, since, isCertain: false });
    for (let failures = 1; ; failures++) {
      const pause = SERVER.probePauses[Math.min(failures, SERVER.probePauses.length) - 1] ?? 0;
      // Counted from one attempt to the next, however long an attempt takes.
      await sleep(clock, Math.max(0, pause * (1 - SERVER.probeJitter * random()) - took), signal);
      const startedAt = clock.monotonic();
      const error = signal.aborted ? undefined : await this.probe(signal);
      if (signal.aborted) return;
      if (!error) {
        this.recovered();
        return;
      }
      const now = clock.monotonic();
      took = now - startedAt;
      if (error instanceof NotReady) {
        const fields = {
          ...{ server: this.host, error: error.message },
          hint: '`kubectl get --raw /readyz?verbose` names what fails',
        };
        if (notReadySince === undefined) log.warn(fields, 'API server not ready, requests wait');
        notReadySince ??= now;
        if (now - notReadySince >= SERVER.notReady) {
          // Requests decide from now on, and start another recovery if need be; this one goes on until it is ready.
          if (this.outage) log.warn(fields, 'API server not ready for 60 s, requests are sent');
          if (this.outage) this.setOutage(undefined);
          continue;
        }
      } else if (!this.outage) {
        void this.recover(error);
        return;
      } else notReadySince = undefined;
      this.setOutage({ error, since, isCertain: failures + 1 >= SERVER.failuresUntilUnreachable });
    }
  }

  /** Returns why the server can't be used, if it can't. */
  private async probe(outer: AbortSignal): Promise<Error | undefined> {
    const { clock, wire } = this.props;
    try {
      // A plugin that issues credentials may hang too, and knows no signal.
      const ask = (signal: AbortSignal): Promise<ApiResponse> => wire.request({ ...READYZ, signal });
      const { status } = await within(clock, SERVER.probeTimeout, outer, ask);
      const isDoubt = this.outage && !this.outage.isCertain;
      return status >= 500 && !isDoubt ? new NotReady(`${READYZ.path} answers ${status}`) : undefined;
    } catch (error) {
      return error as Error;
    }
  }

  private recovered(): void {
    this.recovering?.abort();
    this.recovering = undefined;
    const wasOpen = !this.outage;
    this.setOutage(undefined);
    if (!wasOpen) return;
    // Requests were sent before it was ready, and what they failed needn't wait any longer.
    this.props.log.info({ server: this.host }, 'API server ready');
    for (const listener of this.listeners) listener(false);
  }

  private setOutage(outage: Outage | undefined): void {
    const before = this.outage;
    this.outage = outage;
    const { log, clock, metrics } = this.props;
    if (this.isUnreachable !== (before?.isCertain ?? false)) {
      metrics.serverUnreachable.set(this.isUnreachable ? 1 : 0);
      if (outage) {
        const isProxy = outage.error instanceof ProxyFailure;
        const hint = isProxy ? ProxyFailure.remedy : 'check that the API server is running and reachable';
        const fields = { server: this.host, error: outage.error.message, hint };
        log.warn(fields, 'API server unreachable, requests wait');
      } else if (before) {
        const seconds = Math.round((clock.monotonic() - before.since) / 1000);
        log.info({ server: this.host, seconds }, 'API server reachable again');
      }
      for (const listener of this.listeners) listener(this.isUnreachable);
    }
    this.wake();
  }

  private unreachable(): OperatorError {
    const cause = this.outage?.error;
    const state = cause instanceof NotReady ? 'not ready' : 'unreachable';
    const why = this.closed ? 'the connection was closed' : (cause?.message ?? 'no answer');
    return new OperatorError({
      ...{ reason: 'Unreachable', retry: 'backoff', cause },
      message: `The API server ${this.host} is ${state} (${why})`,
    });
  }
}
