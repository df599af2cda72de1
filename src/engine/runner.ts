import { setImmediate } from 'node:timers/promises';
import type { Change, ChangeSet } from '../contract/change.js';
import type { Controller, Plan, TypeRef, Metric } from '../contract/controller.js';
import { describeRef, splitKey } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { declareMetric } from '../telemetry/declared-metric.js';
import type { RecordSample } from '../telemetry/declared-metric.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { carryOut } from './carry-out.js';
import type { Outcome, Tools } from './carry-out.js';
import type { Clock } from './clock.js';
import { Deletions } from './deletions.js';
import { FollowUp, ReconcileLog } from './follow-up.js';
import type { MadePlan } from './follow-up.js';
import { InFlight, INTERRUPTED_REASON } from './in-flight.js';
import { waitsFor } from './node-ports.js';
import { Queue, QueueMetrics } from './work-queue.js';
import { ServerTime } from './clock.js';
import { StoreReader } from './cache.js';
import type { Stores } from './cache.js';
import { Blockers, Rush, Triggers } from './triggers.js';

const RECONCILE_TIMEOUT_MILLISECONDS = 120_000;

export interface RunnerProps {
  readonly controller: Controller;
  readonly stores: Stores;
  readonly tools: Tools;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The server's clock. @default - it is never known */
  readonly time?: ServerTime;
  /** Keys in work at once. */
  readonly workers: number;
  /** A reconcile that takes longer is given up and tried again after a pause. @default 120_000 */
  readonly reconcileTimeoutMilliseconds?: number;
  /** Ends when the event loop has looked after everything else. @default setImmediate */
  readonly nextTurn?: () => Promise<void>;
}

/**
 * Runs one controller: from a change in a store to the key, through the queue, to the plan carried out.
 *
 * **Guarantees.** A key is never in work twice. One whose reconcile was given up counts as in work until its last
 * request has been answered, or has failed for want of an answer, so no two requests for it are ever under way; its
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
  private readonly rush: Rush;
  private readonly postponed: Postponed;
  private readonly inFlight: InFlight;
  private readonly nextTurn: () => Promise<void>;
  private readonly breather: Breather;
  private readonly changes: ChangeMetrics;
  private readonly followUp: FollowUp;
  private readonly kindMetrics: KindMetrics;
  private readonly triggers: Triggers;
  private readonly time: ServerTime;

  constructor(private readonly props: RunnerProps) {
    const { controller, stores, clock, random, log, metrics } = props;
    const { reconcileTimeoutMilliseconds: timeoutMilliseconds = RECONCILE_TIMEOUT_MILLISECONDS } = props;
    const queueMetrics = new QueueMetrics(metrics, controller.name);
    this.queue = new Queue({ clock, random, observer: queueMetrics });
    queueMetrics.readOnScrape(this.queue, clock);
    this.time = props.time ?? new ServerTime(clock);
    const { time } = this;
    this.reader = StoreReader.open(controller.watches, stores, {
      controller: controller.name,
      deletions: new Deletions(clock, time),
      time,
    });
    this.log = log.child({ controller: controller.name, kind: controller.kind });
    this.kindMetrics = new KindMetrics(metrics, controller.metrics ?? [], this.log);
    this.rush = new Rush(clock);
    this.postponed = new Postponed(clock);
    this.inFlight = new InFlight({ clock, timeoutMilliseconds });
    this.nextTurn = props.nextTurn ?? (async () => setImmediate());
    this.breather = new Breather({ clock, nextTurn: this.nextTurn });
    this.changes = new ChangeMetrics(metrics, controller.name);
    const { queue, reader, blockers } = this;
    this.followUp = new FollowUp({
      controller: controller.name,
      queue,
      queueMetrics,
      clock,
      random,
      metrics,
    });
    this.triggers = new Triggers({ controller, reader, queue, blockers, rush: this.rush, log: this.log });
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
    if (watched) this.followUp.kindServed();
  }

  /** Begins nothing while it is doubtful what there is of a kind, unless only plans that name an object of it depend on that. */
  doubted(type: TypeRef, reason: string, isDoubtful: boolean): void {
    const depends = this.props.controller.watches.some(
      (watch) => groupKind(watch.type) === groupKind(type) && (!watch.optional || watch.readOnly),
    );
    if (depends && isDoubtful) this.queue.hold(reason);
    else this.queue.release(reason);
  }

  /** While the server is out of reach nothing is begun; keys that it has failed are taken again when it is back. */
  serverUnreachable(isUnreachable: boolean): void {
    if (isUnreachable) {
      this.queue.hold('server');
      return;
    }
    this.followUp.serverReached();
    this.queue.release('server');
  }

  /** Something that no watch tells of has changed: all keys are taken again, behind those that somebody waits for. */
  lookAgain(): void {
    this.triggers.all();
  }

  stop(): void {
    this.queue.close();
    this.props.tools.deleter.stop();
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

  private async work(): Promise<void> {
    for (;;) {
      const pause = this.breather.pause();
      if (pause) await pause;
      const key = await this.queue.take();
      if (key === undefined) return;
      await this.process(key);
    }
  }

  private async process(key: string): Promise<void> {
    const flight = this.inFlight.begin();
    const activeWorkers = this.props.metrics.activeWorkers.labels(this.props.controller.name);
    activeWorkers.inc();
    const { ended } = await this.reconcile(key, flight.signal);
    activeWorkers.dec();
    const land = (): void => {
      this.queue.done(key);
      flight.end();
    };
    if (ended) void ended.then(land);
    else land();
  }

  /** Never rejects, and never loses the key. Tells what has to end before the key may be taken again, if anything. */
  private async reconcile(key: string, signal: AbortSignal): Promise<{ readonly ended?: Promise<void> }> {
    const { controller, clock, metrics, tools } = this.props;
    let outcome: Outcome | undefined;
    try {
      const startedAt = clock.monotonic();
      const log = new ReconcileLog(this.log, key);
      const plannedFor = this.time.corrected(clock.now());
      const plan = controller.reconcile(key, this.reader, plannedFor);
      // While the plan is carried out, what it touches may already change again.
      this.blockers.wait(
        key,
        [...plan.apply, ...plan.delete.filter(({ foreign }) => !foreign)].flatMap(({ object }) =>
          waitsFor(object),
        ),
      );
      outcome = await carryOut(plan, this.reader.forKey(key), tools, signal, {
        othersWait: () => this.othersWait(key),
        mayPass: (errors) => this.followUp.mayPass(key, errors),
      });
      metrics.reconcileSeconds.observe(
        { controller: controller.name },
        (clock.monotonic() - startedAt) / 1000,
      );
      this.conclude(key, { plan, plannedFor, plannedAt: startedAt }, outcome, log);
    } catch (error) {
      this.threw(key, error);
    }
    return outcome?.pending ? { ended: outcome.pending } : {};
  }

  /**
   * In a burst, children come first: whoever waits for them waits for them all, and a status that is written once
   * things have calmed down is one write instead of several. A key that was taken for its status gets it, and so does
   * one whose status has been left for as long as it may.
   */
  private othersWait(key: string): boolean {
    const { queue, rush, postponed } = this;
    if (queue.laneOf(key) === 'status' || postponed.isDue(key, rush.statusDelayMilliseconds)) return false;
    return rush.isOn || queue.depth - queue.depthOf('status') > this.props.workers;
  }

  private conclude(key: string, made: MadePlan, outcome: Outcome, log: ReconcileLog): void {
    const { plan } = made;
    const { changes, statusChanges, givenUp } = outcome;
    this.kindMetrics.record(plan, changes);
    const undone = [...plan.apply, ...plan.delete].filter((_, index) => isUndone(changes[index]));
    this.blockers.wait(
      key,
      undone.flatMap(({ object }) => waitsFor(object)),
    );
    if (givenUp?.reason === INTERRUPTED_REASON) {
      this.changes.record(
        changes.filter(({ error }) => error !== givenUp),
        log,
      );
      this.queue.add(key, 'change');
      log.at('debug')?.debug('Reconcile interrupted');
      return;
    }
    this.changes.record(changes, log);
    const statusWritten = statusChanges.some(({ action }) => action === 'configured');
    log.at('debug')?.debug({ changes: changes.length, statusWritten }, 'Reconciled');
    this.followUp.ended(key, made, outcome, log);
    if (!outcome.statusLeft && !outcome.statusUntold) this.postponed.written(key);
    if (outcome.statusLeft)
      this.queue.addCoalesced(key, this.postponed.left(key, this.rush.statusDelayMilliseconds), 'status');
  }

  /** The key is planned before anything else that could throw. */
  private threw(key: string, error: unknown): void {
    try {
      const retryMilliseconds = Math.round(this.followUp.threw(key));
      const log = this.log.child(splitKey(key));
      log.error({ err: error, retryMilliseconds }, 'Reconcile threw, which is a bug');
    } catch {
      // The log or the metrics are broken, and there is nobody left to tell.
    }
  }
}

function isUndone(change: Change | undefined): boolean {
  return change?.action === 'failed' || (change?.action === 'skipped' && !change.skippedFor);
}

/** Long enough that the pauses cost nothing, short enough that no answer, probe or timer waits for it noticeably. */
const TURN_MILLISECONDS = 10;
/** For a clock that stands still. */
const TURN_ITEMS = 100;

interface BreatherProps {
  readonly clock: Clock;
  /** Ends when the event loop has looked after everything else. */
  readonly nextTurn: () => Promise<void>;
}

/**
 * Lets the event loop breathe. Work that never waits for anything, such as reconciles of what is as it should be,
 * goes on in one turn of the loop as long as there is some; timers, answers and probes would wait for all of it.
 */
export class Breather {
  private turn: { readonly until: number; left: number; readonly over: Promise<void> } | undefined;

  constructor(private readonly props: BreatherProps) {}

  /** To be called before each item: what to wait for if this turn of the event loop has had enough of them. */
  pause(): Promise<void> | undefined {
    const now = this.props.clock.monotonic();
    if (!this.turn) {
      const over = this.props.nextTurn().then(() => {
        this.turn = undefined;
      });
      this.turn = { until: now + TURN_MILLISECONDS, left: TURN_ITEMS, over };
    }
    this.turn.left--;
    return this.turn.left < 0 || now >= this.turn.until ? this.turn.over : undefined;
  }
}

/**
 * Since when statuses have been left for later.
 *
 * **Guarantees.** However often a key is taken meanwhile for other reasons, what it may still wait is counted from the
 * first time that its status was left.
 */
class Postponed {
  private readonly since = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** The status of the key is left. Returns for how much longer it may be, in milliseconds. */
  left(key: string, longestMilliseconds: number): number {
    const now = this.clock.monotonic();
    const since = this.since.get(key) ?? now;
    this.since.set(key, since);
    return Math.max(0, since + longestMilliseconds - now);
  }

  /** It was written, or nothing is to be written any more. */
  written(key: string): void {
    this.since.delete(key);
  }

  /** Whether it has been left for so long that it may not be left once more. */
  isDue(key: string, longestMilliseconds: number): boolean {
    const since = this.since.get(key);
    return since !== undefined && this.clock.monotonic() - since >= longestMilliseconds;
  }
}

/** What the plans of one controller measure, by the metrics that it declares. */
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
  record({ samples }: Plan, changes: ChangeSet): void {
    if (!samples) return;
    try {
      for (const { metric, labels = {}, value } of samples(changes)) {
        const record = this.byName.get(metric);
        if (!record) throw new Error(`${metric} isn't among the controller's metrics`);
        record(labels, value);
      }
    } catch (error) {
      this.log.error({ err: error }, 'Samples can not be recorded, which is a bug of the kind');
    }
  }
}

/** Whoever writes under ever new names mustn't make ever new series. */
const MANAGER_LIMIT = 20;

const LEVELS = {
  created: 'info',
  configured: 'info',
  recreated: 'info',
  deleted: 'info',
  corrected: 'warn',
  unchanged: 'debug',
  skipped: 'debug',
  // Why is told where the retry is planned.
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
    for (const { ref, action, drift, conflicts } of changes) {
      metrics.changes.inc({ controller, action });
      const level = LEVELS[action];
      const more = { ...drift, ...(conflicts && { conflicts }) };
      log.at(level)?.[level]({ child: ref.kind, action, ...more }, `${describeRef(ref)} ${action}`);
      if (action === 'corrected') this.countDrift(drift?.managers ?? []);
    }
  }

  private countDrift(managers: readonly string[]): void {
    const names = managers.length > 0 ? managers.map((manager) => this.named(manager)) : ['unknown'];
    for (const manager of new Set(names)) this.metrics.drift.inc({ controller: this.controller, manager });
  }

  private named(manager: string): string {
    if (this.managers.has(manager)) return manager;
    if (this.managers.size >= MANAGER_LIMIT) return 'other';
    this.managers.add(manager);
    return manager;
  }
}
