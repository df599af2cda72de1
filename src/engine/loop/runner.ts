import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Change, ChangeSet } from '../../contract/change.js';
import type { Controller, Metric, TypeRef } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, objectId, splitKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { reading } from '../../values/origin.js';
import type { Conclusion, Plan } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import { declareMetric } from '../../telemetry/metrics.js';
import type { Metrics, RecordSample } from '../../telemetry/metrics.js';
import type { Logger, LogLevel } from '../../telemetry/logger.js';
import { StoreReader } from '../watch/cache.js';
import type { Stores } from '../watch/cache.js';
import type { Hand } from '../plan/hand.js';
import { handlersOf, interpret } from '../plan/interpret.js';
import type { Handlers, PlanOutcome } from '../plan/interpret.js';
import type { Observer } from '../preview/observe.js';
import { ServerTime } from '../../client/clock.js';
import type { Clock, Timer } from '../../client/clock.js';
import { Lookups } from '../watch/lookups.js';
import type { LookupsProps } from '../watch/lookups.js';
import { INTERRUPTED_REASON, Requeue, TIMEOUT_REASON } from './requeue.js';
import { Blockers, Burst, Triggers } from './triggers.js';
import { Queue, QueueMetrics } from './work-queue.js';
import { REQUEUE } from '../../client/retry.js';

export interface RunnerProps {
  readonly controller: Controller;
  readonly stores: Stores;
  /** Hand by which plans are carried out; its log is that of the controller. */
  readonly hand: Omit<Hand, 'reader' | 'signal' | 'stopping'>;
  /** Reports what plans would do, for a dry hand. @default - none: plans are carried out */
  readonly observer?: Observer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The server's clock. @default - never known */
  readonly time?: ServerTime;
  /** Makes what follows a query of its plans. */
  readonly reflector: LookupsProps['reflector'];
  /** Keys in work at once. */
  readonly workers: number;
  /** Ends when the event loop has looked after everything else. @default setImmediate */
  readonly nextTurn?: () => Promise<void>;
}

/**
 * Runs one controller: from a change in a store to the key, through the queue, to the plan carried out.
 *
 * **Guarantees.** A key is never in work twice. One whose reconcile was given up counts as in work until its last
 * request has been answered, or has failed without one, so no two requests for it are ever under way; its
 * worker goes on with other keys. Nothing that a kind throws, nor a bug in here, ends a worker or loses a key.
 *
 * **Caveats.** A step that has begun is finished, however many requests it takes: the fence, and not the runner, keeps
 * a process that no longer leads from writing.
 */
export class Runner {
  readonly queue: Queue;
  private readonly reader: StoreReader;
  private readonly log: Logger;
  private readonly blockers = new Blockers();
  private readonly burst: Burst;
  private readonly inFlight: InFlight;
  private readonly nextTurn: () => Promise<void>;
  private readonly yielder: Yielder;
  private readonly changes: ChangeMetrics;
  private readonly requeue: Requeue;
  private readonly kindMetrics: KindMetrics;
  private readonly triggers: Triggers;
  private readonly handlers: Handlers;
  private readonly stopping = new AbortController();
  private readonly time: ServerTime;
  /** Lookups of its plans; none where it declares no lookups. */
  readonly lookups: Lookups;

  constructor(private readonly props: RunnerProps) {
    const { controller, stores, clock, random, log, metrics, hand } = props;
    const { name } = controller;
    const queueMetrics = new QueueMetrics(metrics, name);
    const queue = (this.queue = new Queue({ clock, random, observer: queueMetrics }));
    queueMetrics.readOnScrape(queue, clock);
    this.time = props.time ?? new ServerTime(clock);
    this.handlers = handlersOf(controller.handlers);
    const reader = StoreReader.open(controller.watches, stores, name);
    this.reader = reader;
    this.log = log.child({ controller: name, kind: controller.kind });
    this.kindMetrics = new KindMetrics(metrics, controller.metrics ?? [], this.log);
    this.inFlight = new InFlight(clock);
    this.nextTurn = props.nextTurn ?? (async () => setImmediate());
    this.yielder = new Yielder(clock, this.nextTurn);
    this.changes = new ChangeMetrics(metrics, name);
    this.requeue = new Requeue({ controller: name, queue, queueMetrics, clock, random, metrics });
    const burst = (this.burst = new Burst(clock));
    const shared = { controller, reader, queue, blockers: this.blockers, burst, log: this.log };
    this.triggers = new Triggers({ ...shared, refusals: hand.memory.refusals });
    const wake = (key: string): void => {
      queue.add(key, 'child');
    };
    this.lookups = new Lookups({ reflector: props.reflector, wake, clock });
  }

  /** Works until the queue is closed; then every worker finishes what it has begun. Never rejects. */
  async run(): Promise<void> {
    const { controller, workers, metrics } = this.props;
    metrics.controllerStarted(controller.name, workers);
    await Promise.all(Array.from({ length: workers }, () => this.work()));
    await this.inFlight.idle();
  }

  /** A complete list of a kind has come: keys that have failed since it wasn't served are taken again. */
  kindServed(type: TypeRef): void {
    const watched = this.props.controller.watches.some((watch) => groupKind(watch.type) === groupKind(type));
    if (watched) this.requeue.kindServed();
  }

  /**
   * Holds the queue while it is unknown what there is of a kind. Of an optional kind that is written, only plans that name an
   * object of it are withheld, when they are carried out.
   */
  setUncertain(type: TypeRef, reason: string, isDoubtful: boolean): void {
    const depends = this.props.controller.watches.some(
      (watch) => groupKind(watch.type) === groupKind(type) && (!watch.optional || watch.readOnly),
    );
    if (depends && isDoubtful) this.queue.hold(reason);
    else this.queue.release(reason);
  }

  /** While the server can't be reached nothing is begun; keys that it has failed are taken again when it is back. */
  serverUnreachable(isUnreachable: boolean): void {
    if (isUnreachable) {
      this.queue.hold('server');
      return;
    }
    this.requeue.serverReached();
    this.queue.release('server');
  }

  /** Something that no watch shows has changed: all keys are taken again, behind those with changes. */
  requeueAll(): void {
    this.triggers.all();
  }

  stop(): void {
    this.queue.close();
    this.lookups.stop();
    this.stopping.abort();
  }

  /**
   * Gives up what is under way, after the step that each reconcile is at; their keys are taken again, and first.
   * Nothing is begun meanwhile. Resolves once nothing is under way any more.
   */
  async interrupt(): Promise<void> {
    this.queue.hold('interrupt');
    this.inFlight.interrupt();
    // What was handed out a moment ago is begun by then.
    await this.nextTurn();
    await this.inFlight.idle();
    this.inFlight.resume();
    this.queue.release('interrupt');
  }

  /**
   * Reports whether a status may be left: in a burst, children come first. A user waits for them all, and a status that is
   * written once things have calmed down is one write instead of several. A key that was taken for its status gets it, and
   * so does one whose status has been left for as long as it may.
   */
  mayDeferStatus(key: string): boolean {
    const { queue, burst } = this;
    if (queue.laneOf(key) === 'status' || burst.isDue(key)) return false;
    return burst.isOn || queue.depth - queue.depthOf('status') > this.props.workers;
  }

  /** Reports whether failures usually pass when the key is taken again soon. */
  isTransient(...args: Parameters<Requeue['isTransient']>): boolean {
    return this.requeue.isTransient(...args);
  }

  private async work(): Promise<void> {
    const activeWorkers = this.props.metrics.activeWorkers.labels(this.props.controller.name);
    for (;;) {
      const pause = this.yielder.pause();
      if (pause) await pause;
      const key = await this.queue.take();
      if (key === undefined) return;
      const flight = this.inFlight.begin();
      activeWorkers.inc();
      const outcome = await this.reconcile(key, flight.signal);
      activeWorkers.dec();
      if (outcome?.pending) {
        void outcome.pending.then(() => {
          this.queue.done(key);
          flight.end();
        });
      } else {
        this.queue.done(key);
        flight.end();
      }
    }
  }

  private plan(key: string, now: Date): Plan {
    const { controller } = this.props;
    const { watches, lookups } = controller;
    const types = [...watches, ...(lookups ?? [])].map(({ type }) => type);
    return reading(types, () =>
      lookups
        ? this.lookups.plan(key, (finder) => controller.reconcile(key, this.reader.withFinder(finder), now))
        : controller.reconcile(key, this.reader, now),
    );
  }

  /** Never rejects, and never loses the key. */
  private async reconcile(key: string, signal: AbortSignal): Promise<PlanOutcome | undefined> {
    const { controller, clock, metrics, hand, observer } = this.props;
    let outcome: PlanOutcome | undefined;
    try {
      const plannedAt = clock.monotonic();
      const plannedFor = this.time.corrected(clock.now());
      const plan = this.plan(key, plannedFor);
      const milliseconds = Math.round(clock.monotonic() - plannedAt);
      // Nothing can end it, and a lease may be lost over it.
      if (milliseconds > SLOW_PLAN_MILLISECONDS)
        this.log.warn({ ...splitKey(key), milliseconds }, 'planning took long, and held up all other work');
      // While the plan is carried out, what it touches may already change again.
      this.waitFor(key, blockersIn(plan));
      const reader = this.reader.forKey(key);
      const signals = { signal, stopping: this.stopping.signal };
      outcome = observer
        ? await observer.observe(plan, reader, this.handlers, signals)
        : await interpret(plan, { ...hand, reader, ...signals }, this.handlers, { status: this });
      const seconds = (clock.monotonic() - plannedAt) / 1000;
      metrics.reconcileSeconds.observe({ controller: controller.name }, seconds);
      this.finish(key, { plan, plannedFor, plannedAt }, outcome);
    } catch (error) {
      this.threw(key, error);
    }
    return outcome;
  }

  private finish(
    key: string,
    made: { plan: Plan; plannedFor: Date; plannedAt: number },
    outcome: PlanOutcome,
  ): void {
    const { changes, statusChanges, conclusion, givenUp, statusLeft } = outcome;
    const log = new ReconcileLog(this.log, key);
    this.kindMetrics.record(conclusion);
    this.waitFor(key, blockersIn(made.plan, changes));
    if (givenUp?.reason === INTERRUPTED_REASON) {
      const finished = changes.filter(({ error }) => error !== givenUp);
      this.changes.record(finished, log);
      this.queue.add(key, 'change');
      log.at('debug')?.debug('reconcile interrupted');
      return;
    }
    this.changes.record(changes, log);
    log.at('debug')?.debug(
      {
        changes: changes.length,
        statusWritten: statusChanges.some(({ action }) => action === 'configured'),
      },
      'reconciled',
    );
    this.requeue.afterReconcile(key, made, outcome, log);
    if (!statusLeft) this.burst.written(key);
    if (statusLeft === 'busy') this.queue.addWithin(key, this.burst.left(key), 'status');
  }

  /** Has the key woken by changes of these objects, and by the release of what they claim. */
  private waitFor(key: string, objects: readonly AnyObject[]): void {
    const ids = objects.flatMap((object) => [objectId(object), ...this.reader.claimsOf(object)]);
    this.blockers.wait(key, ids);
  }

  /** The key is planned before anything else that could throw. */
  private threw(key: string, error: unknown): void {
    try {
      const retryMilliseconds = Math.round(this.requeue.afterException(key));
      const log = this.log.child(splitKey(key));
      log.error({ err: error, retryMilliseconds }, 'reconcile threw, which is a bug');
    } catch {
      // The log or the metrics are broken, and nothing is left to report it with.
    }
  }
}

/**
 * Returns the objects that may be in the way of a plan: no watch need map one of another owner to the key. A foreign step's is mapped.
 * @param changes where it is carried out, only of the steps that have failed, or weren't tried
 */
function blockersIn({ steps }: Plan, changes?: ChangeSet): AnyObject[] {
  const isDone = ({ action, skippedFor, waitsFor }: Change): boolean =>
    action === 'skipped' ? Boolean(skippedFor ?? waitsFor) : action !== 'failed';
  const active = steps.filter((step) => step.do !== 'barrier');
  return active.flatMap((step, index) => {
    const change = changes?.[index];
    return step.do.includes('/') || (change && isDone(change)) ? [] : step.object;
  });
}

/** Time from which planning is logged as slow: it takes a few milliseconds, and a construct that takes longer usually reads files, or loops. */
const SLOW_PLAN_MILLISECONDS = 1_000;

/** Time of a turn: the pauses cost nothing, and no answer, probe or timer waits for it noticeably. */
const TURN_MILLISECONDS = 10;
/** Maximum number of items in a turn, for a clock that stands still. */
const TURN_ITEMS = 100;

/**
 * Yields to the event loop. Work that never waits for anything, such as reconciles in steady state, goes on in one turn
 * of the loop as long as there is some; timers, answers and probes would wait for all of it.
 */
export class Yielder {
  private turn: { readonly until: number; left: number; readonly over: Promise<void> } | undefined;

  /** @param nextTurn ends when the event loop has looked after everything else */
  constructor(
    private readonly clock: Clock,
    private readonly nextTurn: () => Promise<void>,
  ) {}

  /** Called before each item. Returns what to wait for if this turn of the event loop has had enough of them. */
  pause(): Promise<void> | undefined {
    const now = this.clock.monotonic();
    if (!this.turn) {
      const over = this.nextTurn().then(() => {
        this.turn = undefined;
      });
      this.turn = { until: now + TURN_MILLISECONDS, left: TURN_ITEMS, over };
    }
    this.turn.left--;
    return this.turn.left < 0 || now >= this.turn.until ? this.turn.over : undefined;
  }
}

/** Records what the plans of one controller measure, by the metrics that it declares. */
export class KindMetrics {
  private readonly byName: ReadonlyMap<string, RecordSample>;

  constructor(
    metrics: Metrics,
    declared: readonly Metric[],
    private readonly log: Logger,
  ) {
    this.byName = new Map(declared.map((metric) => [metric.name, declareMetric(metrics.registry, metric)]));
  }

  /** Never throws: what is wrong with a sample is a bug of the kind, and no reason to lose its key. */
  record({ samples = [] }: Conclusion): void {
    try {
      for (const { metric, labels = {}, value } of samples) {
        const record = this.byName.get(metric);
        if (!record) throw new Error(`${metric} isn't among the controller's metrics`);
        record(labels, value);
      }
    } catch (error) {
      this.log.error({ err: error }, 'samples can not be recorded, which is a bug of the kind');
    }
  }
}

/** Maximum number of writers that have a series of their own: names may be ever new. */
const MANAGER_LIMIT = 20;

const LEVELS = {
  created: 'info',
  configured: 'info',
  recreated: 'info',
  deleted: 'info',
  corrected: 'warn',
  drifted: 'warn',
  unchanged: 'debug',
  skipped: 'debug',
  // Why is logged where the retry is planned.
  failed: 'debug',
} as const satisfies Record<Change['action'], keyof Logger>;

/** Logs and counts what became of the objects of a controller's plans. */
export class ChangeMetrics {
  private readonly managers = new Set<string>();

  constructor(
    private readonly metrics: Metrics,
    private readonly controller: string,
  ) {}

  record(changes: ChangeSet, log: Pick<ReconcileLog, 'at'>): void {
    const { controller, metrics } = this;
    for (const { ref, action: done, drift, conflicts, isKnown } of changes) {
      const action = isKnown ? 'unchanged' : done;
      metrics.changes.inc({ controller, action });
      const level = LEVELS[action];
      const more = { ...drift, ...(conflicts && { conflicts }) };
      log.at(level)?.[level]({ child: ref.kind, action, ...more }, `${describeRef(ref)} ${action}`);
      if (action !== 'corrected') continue;
      const names = drift?.managers.length ? drift.managers.map((name) => this.named(name)) : ['unknown'];
      for (const manager of new Set(names)) metrics.drift.inc({ controller, manager });
    }
  }

  private named(manager: string): string {
    if (this.managers.has(manager)) return manager;
    if (this.managers.size >= MANAGER_LIMIT) return 'other';
    this.managers.add(manager);
    return manager;
  }
}

/** Log of one reconcile. Most have nothing to log, so its fields are made for the first line that is written. */
export class ReconcileLog {
  private child: Logger | undefined;

  constructor(
    private readonly parent: Logger,
    private readonly key: string,
  ) {}

  /** Returns nothing where lines of this level aren't written. */
  at(level: LogLevel): Logger | undefined {
    if (!this.parent.isLevelEnabled(level)) return undefined;
    return (this.child ??= this.parent.child({ ...splitKey(this.key), reconcileId: randomUUID() }));
  }
}

/** Reconcile, from the moment its key is in work until the last request of it has been answered. */
interface Flight {
  /** Aborted when the reconcile is to be given up; its reason is an OperatorError that says why. */
  readonly signal: AbortSignal;
  /** Ends the flight: no request of it is under way any more. */
  end(): void;
}

/** The reconciles under way, and what makes them end early: their time, or that this process may no longer write. */
class InFlight {
  private readonly flights = new Set<AbortController>();
  private readonly landed: (() => void)[] = [];
  private interrupting = false;

  constructor(private readonly clock: Clock) {}

  begin(): Flight {
    const abort = new AbortController();
    this.flights.add(abort);
    let timer: Timer | undefined;
    if (this.interrupting) {
      abort.abort(interrupted());
    } else {
      timer = this.clock.setTimer(REQUEUE.timeout, () => {
        abort.abort(timedOut());
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
}

function timedOut(): OperatorError {
  return new OperatorError({
    reason: TIMEOUT_REASON,
    message: `The reconcile took longer than ${REQUEUE.timeout / 1000} s and was given up; the API server may be slow, or the plan has too many steps`,
    retry: 'backoff',
  });
}

function interrupted(): OperatorError {
  const message = 'The reconcile was interrupted, since this process may no longer write';
  return new OperatorError({ reason: INTERRUPTED_REASON, message, retry: 'now' });
}
