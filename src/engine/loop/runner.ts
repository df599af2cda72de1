import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Change, ChangeSet } from '../../contract/change.js';
import type { Controller, Metric, TypeRef } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, splitKey } from '../../contract/object.js';
import { reading } from '../../values/origin.js';
import type { Conclusion, Plan } from '../../contract/plan.js';
import { declareMetric } from '../../telemetry/metrics.js';
import type { Metrics, RecordSample } from '../../telemetry/metrics.js';
import type { Logger } from '../../telemetry/logger.js';
import { StoreReader } from '../watch/reader.js';
import type { Stores } from '../watch/reader.js';
import type { Hand } from '../plan/hand.js';
import { handlersOf, interpret } from '../plan/interpret.js';
import type { Handlers, PlanOutcome } from '../plan/interpret.js';
import type { Observer } from '../preview/observe.js';
import { ServerTime } from '../../client/clock.js';
import { Lookups } from '../watch/lookups.js';
import type { LookupsProps } from '../watch/lookups.js';
import { TIMEOUT_REASON, Wakes } from './wakes.js';
import type { MadePlan } from './wakes.js';
import { Queue } from './work-queue.js';
import { REQUEUE } from '../../client/retry.js';

export interface RunnerProps {
  readonly controller: Controller;
  readonly stores: Stores;
  /** Hand by which plans are carried out; its log is that of the controller. */
  readonly hand: Omit<Hand, 'reader' | 'writer' | 'signal' | 'stopping'>;
  /** Reports what plans would do, for a dry hand. @default - none: plans are carried out */
  readonly observer?: Observer;
  readonly random: () => number;
  /** The server's clock. @default - never known */
  readonly time?: ServerTime;
  /** Asks the API server what queries of its plans find. */
  readonly lookups: Pick<LookupsProps, 'reflector' | 'count'>;
  /** Keys in work at once. */
  readonly workers: number;
}

/** The reason of a reconcile that was ended because this process may no longer write. */
const INTERRUPTED_REASON = 'Interrupted';

/** Time from which planning is logged as slow: it takes a few milliseconds, and a construct that takes longer usually reads files, or loops. */
const SLOW_PLAN_MILLISECONDS = 1_000;

/** Time of a turn: the pauses cost nothing, and no answer, probe or timer waits for it noticeably. */
const TURN_MILLISECONDS = 10;
/** Maximum number of keys in a turn, for a clock that stands still. */
const TURN_KEYS = 100;

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
  /** Name of the controller. */
  readonly name: string;
  readonly queue: Queue;
  readonly wakes: Wakes;
  /** Lookups of its plans; none where it declares no lookups. */
  readonly lookups: Lookups;
  private readonly reader: StoreReader;
  /** Types that its plans read. */
  private readonly types: readonly TypeRef[];
  private readonly handlers: Handlers;
  private readonly changes: ChangeMetrics;
  private readonly kindMetrics: KindMetrics;
  private readonly time: ServerTime;
  private readonly stopping = new AbortController();
  /** The reconciles under way, until the last request of each has been answered. */
  private readonly flights = new Set<AbortController>();
  private readonly landed: (() => void)[] = [];
  private isInterrupted = false;
  private turn: { readonly until: number; left: number; readonly over: Promise<void> } | undefined;

  constructor(private readonly props: RunnerProps) {
    const { controller, stores, random, hand, workers } = props;
    const { clock, log, metrics, memory } = hand;
    const { name, watches, lookups = [] } = controller;
    this.name = name;
    const queue = (this.queue = new Queue({ clock, random, metrics, controller: name }));
    const reader = (this.reader = StoreReader.open(watches, stores, name));
    this.types = [...watches, ...lookups].map(({ type }) => type);
    this.time = props.time ?? new ServerTime(clock);
    this.handlers = handlersOf(controller.handlers);
    this.kindMetrics = new KindMetrics(metrics, controller.metrics ?? [], log);
    this.changes = new ChangeMetrics(metrics, name);
    this.wakes = new Wakes({
      ...{ controller, reader, queue, workers, clock, random, memory, metrics, log },
    });
    const wake = (key: string): void => {
      queue.add(key, 'child');
    };
    this.lookups = new Lookups({ ...props.lookups, wake, clock });
  }

  /** Works until the queue is closed; then every worker finishes what it has begun. Never rejects. */
  async run(): Promise<void> {
    const { controller, workers, hand } = this.props;
    hand.metrics.controllerStarted(controller.name, workers);
    await Promise.all(Array.from({ length: workers }, () => this.work()));
    await this.idle();
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
    this.isInterrupted = true;
    for (const flight of this.flights) flight.abort(interrupted());
    // What was handed out a moment ago is begun by then.
    await setImmediate();
    await this.idle();
    this.isInterrupted = false;
    this.queue.release('interrupt');
  }

  /** Resolves once nothing is under way. */
  private async idle(): Promise<void> {
    if (this.flights.size > 0) await new Promise<void>((resolve) => this.landed.push(resolve));
  }

  private async work(): Promise<void> {
    for (;;) {
      const pause = this.pause();
      if (pause) await pause;
      const key = await this.queue.take();
      if (key === undefined) return;
      await this.handle(key);
    }
  }

  /**
   * Yields to the event loop. Work that never waits for anything, such as reconciles in steady state, goes on in one turn
   * of the loop as long as there is some; timers, answers and probes would wait for all of it.
   * @returns what to wait for if this turn has had enough keys
   */
  private pause(): Promise<void> | undefined {
    const now = this.props.hand.clock.monotonic();
    if (!this.turn) {
      const over = setImmediate().then(() => {
        this.turn = undefined;
      });
      this.turn = { until: now + TURN_MILLISECONDS, left: TURN_KEYS, over };
    }
    this.turn.left--;
    return this.turn.left < 0 || now >= this.turn.until ? this.turn.over : undefined;
  }

  /** Reconciles a key. It ends early when it takes too long, or this process may no longer write. */
  private async handle(key: string): Promise<void> {
    const { clock, metrics } = this.props.hand;
    const { name: controller } = this.props.controller;
    const flight = new AbortController();
    this.flights.add(flight);
    const timer = clock.setTimer(REQUEUE.timeout, () => {
      flight.abort(timedOut());
    });
    if (this.isInterrupted) flight.abort(interrupted());
    metrics.activeWorkers.inc({ controller });
    const outcome = await this.reconcile(key, flight.signal);
    metrics.activeWorkers.dec({ controller });
    const land = (): void => {
      timer.cancel();
      this.queue.done(key);
      this.flights.delete(flight);
      if (this.flights.size === 0) for (const resolve of this.landed.splice(0)) resolve();
    };
    if (outcome?.pending) void outcome.pending.then(land);
    else land();
  }

  private plan(key: string, now: Date): Plan {
    const { controller } = this.props;
    return reading(this.types, () =>
      controller.lookups
        ? this.lookups.plan(key, (finder) => controller.reconcile(key, this.reader.withFinder(finder), now))
        : controller.reconcile(key, this.reader, now),
    );
  }

  /** Never rejects, and never loses the key. */
  private async reconcile(key: string, signal: AbortSignal): Promise<PlanOutcome | undefined> {
    const { controller, hand, observer } = this.props;
    const { clock, metrics, log } = hand;
    let outcome: PlanOutcome | undefined;
    try {
      const plannedAt = clock.monotonic();
      const plannedFor = this.time.corrected(clock.now());
      const plan = this.plan(key, plannedFor);
      const milliseconds = Math.round(clock.monotonic() - plannedAt);
      // Nothing can end it, and a lease may be lost over it.
      if (milliseconds > SLOW_PLAN_MILLISECONDS)
        log.warn({ ...splitKey(key), milliseconds }, 'planning took long, and held up all other work');
      // While the plan is carried out, what it touches may already change again.
      this.wakes.waitFor(key, plan);
      const { reader, handlers } = this;
      const own = { writer: { controller, key }, signal, stopping: this.stopping.signal };
      outcome = observer
        ? await observer.observe(plan, reader, handlers, own)
        : await interpret(plan, { ...hand, reader, ...own }, handlers, { status: this.wakes });
      const seconds = (clock.monotonic() - plannedAt) / 1000;
      metrics.reconcileSeconds.observe({ controller: controller.name }, seconds);
      this.finish(key, { plan, plannedFor, plannedAt }, outcome);
    } catch (error) {
      this.threw(key, error);
    }
    return outcome;
  }

  private finish(key: string, made: MadePlan, outcome: PlanOutcome): void {
    const { log } = this.props.hand;
    const { changes, statusChanges, conclusion, givenUp } = outcome;
    const fields = { ...splitKey(key), reconcileId: randomUUID() };
    if (conclusion.samples) this.kindMetrics.record(conclusion);
    this.wakes.waitFor(key, made.plan, changes);
    if (givenUp?.reason === INTERRUPTED_REASON) {
      const finished = changes.filter(({ error }) => error !== givenUp);
      this.changes.record(finished, log, fields);
      this.queue.add(key, 'change');
      log.debug(fields, 'reconcile interrupted');
      return;
    }
    this.changes.record(changes, log, fields);
    if (log.isLevelEnabled('debug')) {
      const statusWritten = statusChanges.some(({ action }) => action === 'configured');
      log.debug({ ...fields, changes: changes.length, statusWritten }, 'reconciled');
    }
    this.wakes.reconciled(key, made, outcome, fields);
    for (const other of conclusion.wakes ?? []) this.queue.add(other, 'initial');
  }

  /** The key is planned before anything else that could throw. */
  private threw(key: string, error: unknown): void {
    try {
      const retryMilliseconds = Math.round(this.wakes.threw(key));
      const fields = { ...splitKey(key), err: error, retryMilliseconds };
      this.props.hand.log.error(fields, 'reconcile threw, which is a bug');
    } catch {
      // The log or the metrics are broken, and nothing is left to report it with.
    }
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

  /** @param fields of log lines, beside those of the change */
  record(changes: ChangeSet, log: Logger, fields: object = {}): void {
    const { controller, metrics } = this;
    for (const { ref, action: done, drift, conflicts, isKnown } of changes) {
      const action = isKnown ? 'unchanged' : done;
      metrics.changes.inc({ controller, action });
      const level = LEVELS[action];
      if (log.isLevelEnabled(level)) {
        const more = { ...drift, ...(conflicts && { conflicts }) };
        log[level]({ ...fields, child: ref.kind, action, ...more }, `${describeRef(ref)} ${action}`);
      }
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
