import { OperatorError } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { pauseAskedBy } from './api-error.js';
import { sleep, systemClock, timed } from './clock.js';
import type { Clock, ServerTime, Timer } from './clock.js';
import { isConnectionLoss } from './transport.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** A `Retry-After` is lengthened by the first share, since the server counts from when it answers, and up to the second by chance. */
const ASKED_MARGIN = 0.05;
const ASKED_JITTER = 0.15;
/** Before the next try, by the failures in a row so far; the last holds for all that follow. */
const PAUSES_MILLISECONDS = [50, 1_000, 2_000, 5_000];
/** So that many clients of one server don't try together; a pause is shortened by up to this share of itself. */
const JITTER = 0.1;
/** One failure may be a connection that ended; after this many there is no doubt. */
const FAILURES_UNTIL_CERTAIN = 3;
/** Shorter than the pauses, so that a try that hangs doesn't stretch them. */
const PROBE_TIMEOUT_MILLISECONDS = 4_000;
/** A server that starts is ready sooner; one that isn't may lack something that few requests need, such as a KMS plugin. */
const NOT_READY_LIMIT_MILLISECONDS = 60_000;

/**
 * A server that starts answers other requests, `/version` among them, before it can do what they ask for. Every user
 * may read this one (`system:public-info-viewer`), as a rule.
 */
const PROBE: ApiRequest = { method: 'GET', path: '/readyz' };

/** Whether the server can be reached, as far as we know. */
type Reach =
  /** The last that was heard of it was an answer. */
  | { readonly phase: 'reachable' }
  /** There was no answer: an outage, or a single connection that ended. */
  | ({ readonly phase: 'doubtful' } & Outage)
  /** There was no answer several times in a row. */
  | ({ readonly phase: 'unreachable' } & Outage);

interface Outage {
  readonly failures: number;
  readonly error: Error;
  /** When the first request got no answer, by the monotonic clock. */
  readonly since: number;
}

/** An answer that has asked for a pause. */
interface Refusal {
  readonly response: ApiResponse;
  /** Its request isn't sent again before, by the monotonic clock. */
  readonly until: number;
}

/** The server answers, and says that it isn't ready: so since a moment by the monotonic clock. */
class NotReady extends Error {
  constructor(
    status: number,
    readonly since: number,
  ) {
    super(`${PROBE.path} answers ${status}`);
  }
}

interface Waiter {
  /** It can be called off, so it may wait for a server that is out of reach. */
  readonly patient: boolean;
  readonly admit: () => void;
  readonly refuse: (error: Error) => void;
}

export interface ServerGateProps {
  /** What is behind the gate. */
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Writes under way at once, at most. @default 32 */
  readonly maxWrites?: number;
}

/**
 * Bounds the writes under way, keeps `Retry-After`, and holds requests back while the API server is out of reach.
 *
 * **Guarantees.** What an answer says, 429 and the like included, holds for its request alone: the same verb for the same
 * object, which gets that answer again, unsent, until the time is over. Writes beyond the limit
 * wait, first come, first served. While the server is out of reach, nothing is sent but the lease's own calls and one
 * small request at a time: after 50 ms, 1 s, 2 s and then every 4.5 to 5 s. Doubt ends with any answer, an outage only
 * with a server that says it is ready, that doesn't let this user ask, or that was not ready for a minute of answers.
 *
 * **Caveats.** A stream that was answered and breaks later says nothing: its reader opens another, which does.
 *
 * **Errors.** While the server is out of reach, a write, and a read that has no signal, fails at once with
 * `Unreachable`: the plan it belongs to is stale by the time the server is back, and it could not be called off.
 */
export class ServerGate implements Transport {
  readonly host: string;
  private reach: Reach = { phase: 'reachable' };
  private readonly reads = new Set<Waiter>();
  private readonly writes = new Set<Waiter>();
  private writesUnderWay = 0;
  /** By request; those of the longest ago come first. */
  private readonly refusals = new Map<string, Refusal>();
  private readonly maxWrites: number;
  private readonly listeners: ((isUnreachable: boolean) => void)[] = [];
  private timer: Timer | undefined;
  private probing: AbortController | undefined;
  private closed = false;

  constructor(private readonly props: ServerGateProps) {
    this.host = props.transport.host;
    this.maxWrites = props.maxWrites ?? 32;
    props.metrics.serverUnreachable.set(0);
  }

  get isUnreachable(): boolean {
    return this.reach.phase === 'unreachable';
  }

  /** Calls back each time an outage begins or ends. */
  onChange(listener: (isUnreachable: boolean) => void): void {
    this.listeners.push(listener);
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    const send = async (): Promise<ApiResponse> => this.through(req, () => this.props.transport.request(req));
    // Watches and lists keep the pause themselves; a create has no name in its path by which to know it.
    if (req.lease || req.method === 'GET' || req.method === 'POST') return send();
    const { clock, random } = this.props;
    const id = `${req.method} ${req.path}`;
    const earlier = this.refusals.get(id);
    const left = (earlier?.until ?? 0) - clock.monotonic();
    if (earlier && left > 0) return { ...earlier.response, retryAfterSeconds: left / 1000, isRepeated: true };
    this.refusals.delete(id);
    const response = await send();
    const asked = pauseAskedBy(response) * (1 + ASKED_MARGIN + ASKED_JITTER * random());
    if (asked === 0) return response;
    const now = clock.monotonic();
    for (const [past, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(past);
    }
    this.refusals.set(id, { response, until: now + asked });
    return { ...response, retryAfterSeconds: asked / 1000 };
  }

  async stream(req: ApiRequest): Promise<ApiStream> {
    return this.through(req, () => this.props.transport.stream(req));
  }

  /** Nothing is tried any more, and what waits is refused. */
  async close(): Promise<void> {
    this.closed = true;
    this.endProbe();
    const message = 'The connection to the API server was closed';
    const error = new OperatorError({ reason: 'Unreachable', message, retry: 'backoff' });
    for (const { refuse } of [...this.reads, ...this.writes]) refuse(error);
    await this.props.transport.close();
  }

  private async through<T>(req: ApiRequest, send: () => Promise<T>): Promise<T> {
    const { method, lease = false, signal } = req;
    const isWrite = method !== 'GET' && !lease;
    if (!lease) await this.enter(isWrite, signal);
    try {
      const answer = await send();
      // The lease isn't held back, so its answer may come from a server that isn't ready.
      if (!lease && this.reach.phase === 'doubtful') this.reached();
      return answer;
    } catch (error) {
      // What was called off, or held back by a fence within, says nothing about the server.
      if (!signal?.aborted && !(error instanceof OperatorError)) this.failed(error as Error);
      throw error;
    } finally {
      if (isWrite) this.writesUnderWay--;
      this.admit();
    }
  }

  private async enter(isWrite: boolean, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const patient = !isWrite && signal !== undefined;
    if (!patient && this.isUnreachable) throw this.unreachable();
    const line = isWrite ? this.writes : this.reads;
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        line.delete(waiter);
        signal?.removeEventListener('abort', calledOff);
      };
      const calledOff = (): void => {
        waiter.refuse(signal?.reason as Error);
      };
      const waiter: Waiter = {
        patient,
        admit: () => {
          leave();
          if (isWrite) this.writesUnderWay++;
          resolve();
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      line.add(waiter);
      signal?.addEventListener('abort', calledOff);
      this.admit();
    });
  }

  /** Lets in, in order, what may go now. */
  private admit(): void {
    if (this.reach.phase !== 'reachable') return;
    for (const { admit } of this.reads) admit();
    for (const { admit } of this.writes) {
      if (this.writesUnderWay >= this.maxWrites) return;
      admit();
    }
  }

  /** A request got no answer. Once there is doubt, only the gate's own requests count. */
  private failed(error: Error): void {
    if (this.closed || this.reach.phase !== 'reachable') return;
    this.planProbe({ failures: 1, error, since: this.props.clock.monotonic() }, 0);
  }

  private reached(): void {
    this.endProbe();
    this.become({ phase: 'reachable' });
    this.admit();
  }

  /** Plans the next try; the last one took so long. */
  private planProbe(outage: Outage, tookMilliseconds: number): void {
    const { clock, random } = this.props;
    const pause = PAUSES_MILLISECONDS[Math.min(outage.failures, PAUSES_MILLISECONDS.length) - 1] ?? 0;
    // Counted from one try to the next, however long a try takes.
    const delay = pause * (1 - JITTER * random()) - tookMilliseconds;
    this.timer = clock.setTimer(Math.max(0, delay), () => void this.probe(outage));
    const phase = outage.failures < FAILURES_UNTIL_CERTAIN ? 'doubtful' : 'unreachable';
    this.become({ phase, ...outage });
  }

  private async probe({ failures, since, error: before }: Outage): Promise<void> {
    const { clock, transport } = this.props;
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
      const sent = transport.request({ ...PROBE, signal: controller.signal });
      const { status } = await Promise.race([sent, late.promise]);
      if (this.isUnreachable && status >= 500) this.notReady(status, before);
      if (this.probing === controller) this.reached();
    } catch (error) {
      if (this.probing === controller)
        this.planProbe(
          { failures: failures + 1, error: error as Error, since },
          clock.monotonic() - startedAt,
        );
    } finally {
      timeout.cancel();
    }
  }

  /** @throws NotReady unless it has lasted for so long that requests have to decide */
  private notReady(status: number, before: Error): void {
    const { clock, log } = this.props;
    const now = clock.monotonic();
    const error = new NotReady(status, before instanceof NotReady ? before.since : now);
    const isOver = now - error.since >= NOT_READY_LIMIT_MILLISECONDS;
    const message = isOver
      ? 'API server not ready for 60 s, requests are sent'
      : 'API server not ready, requests wait';
    const hint = '`kubectl get --raw /readyz?verbose` names what fails';
    if (isOver || error.since === now) log.warn({ server: this.host, error: error.message, hint }, message);
    if (!isOver) throw error;
  }

  private endProbe(): void {
    const { probing } = this;
    this.timer?.cancel();
    this.probing = undefined;
    probing?.abort();
  }

  private become(reach: Reach): void {
    const before = this.reach;
    this.reach = reach;
    const { isUnreachable } = this;
    if (isUnreachable === (before.phase === 'unreachable')) return;
    const { log, clock, metrics } = this.props;
    metrics.serverUnreachable.set(isUnreachable ? 1 : 0);
    if (reach.phase === 'unreachable') {
      const hint = 'Check that the API server is running and reachable';
      log.warn(
        { server: this.host, error: reach.error.message, hint },
        'API server unreachable, requests wait',
      );
      const error = this.unreachable();
      for (const { patient, refuse } of [...this.reads, ...this.writes]) if (!patient) refuse(error);
    } else if (before.phase === 'unreachable') {
      const seconds = Math.round((clock.monotonic() - before.since) / 1000);
      log.info({ server: this.host, seconds }, 'API server reachable again');
    }
    for (const listener of this.listeners) listener(isUnreachable);
  }

  private unreachable(): OperatorError {
    const cause = this.reach.phase === 'reachable' ? undefined : this.reach.error;
    const state = cause instanceof NotReady ? 'not ready' : 'unreachable';
    return new OperatorError({
      reason: 'Unreachable',
      message: `The API server ${this.host} is ${state} (${cause?.message ?? 'no answer'})`,
      retry: 'backoff',
      cause,
    });
  }
}

/** Knows whether this process may write. */
export interface Fence {
  /** Synchronous, and right at the very moment that it is asked. */
  admits(): boolean;
}

/**
 * Lets writes through only while the fence admits them. Reads, watches and the lease's own calls pass.
 *
 * **Guarantees.** A write is checked when it is asked for, and again right before it is handed to its connection, so
 * what waited for credentials, a connection or its turn meanwhile is held back as well.
 *
 * **Caveats.** What has been handed to its connection can't be called back: see docs/decisions/0013-leadership.md.
 *
 * **Errors.** OperatorError `NotLeading`, to be tried again at once: keys are kept until this process leads again.
 */
export function fenced(transport: Transport, fence: Fence, metrics: Metrics): Transport {
  const admit = (): void => {
    if (fence.admits()) return;
    metrics.fencedWrites.inc();
    throw new OperatorError({
      reason: 'NotLeading',
      message: 'This process may not write, since it does not hold the lease for certain',
      retry: 'now',
    });
  };
  return {
    host: transport.host,
    request: async (request: ApiRequest): Promise<ApiResponse> => {
      if (request.method === 'GET' || request.lease) return transport.request(request);
      admit();
      return transport.request({ ...request, admit });
    },
    stream: (request) => transport.stream(request),
    close: () => transport.close(),
  };
}

export interface ConnectProps {
  /** The bare way to the API server. */
  readonly wire: Transport;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Where the server's clock is kept. */
  readonly time: ServerTime;
  /** Writes under way at once, at most. @default - that of `ServerGate` */
  readonly maxWrites?: number;
}

/**
 * Puts between the engine and the API server what every request passes, in this order: a second try where a connection
 * ended under the first, the gate, the meter, the fence, and an eye on the server's clock. So the second try waits at
 * the gate too, what has waited is fenced when it leaves, and what is measured is the server's time alone.
 */
export function connect(props: ConnectProps): { readonly transport: Transport; readonly gate: ServerGate } {
  const { wire, fence, clock, random, log, metrics, time, maxWrites } = props;
  const measured = metered(fenced(timed(wire, time), fence, metrics), metrics, clock);
  const gate = new ServerGate({
    ...{ transport: measured, clock, random, log, metrics },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  return { transport: retried(gate, metrics, clock), gate };
}

/** Counts and times what goes through a transport; what was held back and never sent is neither counted nor timed. */
export function metered(transport: Transport, metrics: Metrics, clock: Clock = systemClock): Transport {
  const { host } = transport;
  const measured = async <T extends { readonly status: number }>(
    req: ApiRequest,
    answer: Promise<T>,
  ): Promise<T> => {
    const startedAt = clock.monotonic();
    let code = '<error>';
    let sent = true;
    try {
      const response = await answer;
      code = String(response.status);
      return response;
    } catch (error) {
      sent = !(error instanceof OperatorError);
      throw error;
    } finally {
      if (sent) {
        metrics.requests.inc({ code, method: req.method, host });
        metrics.requestSeconds.observe({ verb: req.method, host }, (clock.monotonic() - startedAt) / 1000);
      }
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => measured(req, transport.request(req)),
    stream: (req): Promise<ApiStream> => measured(req, transport.stream(req)),
    close: () => transport.close(),
  };
}

/** Until all of undici has heard of the end of a connection: sooner, the second try may be put on the same one. */
const PAUSE_MILLISECONDS = 50;
const NEVER = new AbortController().signal;

/**
 * Sends a request a second time when its connection ended under it before there was an answer, so that a server that
 * goes away politely, or a balancer that closes what is idle, is no failure of a reconcile.
 *
 * **Assumptions.** Whatever is sent may be sent twice. Reads and applies may; deletes and updates name the version
 * that they are for; what is created has a name, so that the second try is answered with 409 if the first got through.
 */
export function retried(transport: Transport, metrics: Metrics, clock: Clock = systemClock): Transport {
  const { host } = transport;
  const twice = async <T>(
    req: ApiRequest,
    send: () => Promise<T>,
    again: () => Promise<T> = send,
  ): Promise<T> => {
    try {
      return await send();
    } catch (error) {
      if (req.signal?.aborted || !isConnectionLoss(error)) throw error;
      metrics.requestRetries.inc({ verb: req.method, host });
      await sleep(clock, PAUSE_MILLISECONDS, req.signal ?? NEVER);
      req.signal?.throwIfAborted();
      return again();
    }
  };
  return {
    host,
    request: (req): Promise<ApiResponse> => {
      const send = (): Promise<ApiResponse> => transport.request(req);
      return twice(req, send, async () => ({ ...(await send()), isSecondTry: true }));
    },
    stream: (req): Promise<ApiStream> => twice(req, () => transport.stream(req)),
    close: () => transport.close(),
  };
}
