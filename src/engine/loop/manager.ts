import { PENDING_REASONS, UPDATE_PENDING } from '../../contract/change.js';
import type { Condition } from '../../contract/conditions.js';
import type { Controller } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import type { DriftMode } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import type { Logger } from '../../telemetry/logger.js';
import { ALERTED_REASONS, type Metrics } from '../../telemetry/metrics.js';
import { Api } from '../../client/api.js';
import { Memory } from '../steps/memory.js';
import { scopesOf, Stores } from '../watch/reader.js';
import type { WatchedStore } from '../watch/reader.js';
import { aborted, ServerTime, systemClock } from '../../client/clock.js';
import type { Clock, Timer } from '../../client/clock.js';
import { EventRecorder } from './events.js';
import { Gate } from '../../client/gate.js';
import { SharedApi } from '../watch/installed.js';
import { Elector } from './leader.js';
import type { ElectorProps } from './leader.js';
import { measureReflectors, Reflector, watchLabel, watchName } from '../watch/reflector.js';
import type { ReflectorProps } from '../watch/reflector.js';
import type { Observer } from '../preview/observe.js';
import { DRAIN, WATCH } from '../../client/retry.js';
import { Runner } from './runner.js';
import type { Transport } from '../../client/transport.js';

export interface ManagerProps {
  readonly controllers: readonly Controller[];
  readonly transport: Transport;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Names this process in events; a Pod's name is a good choice. */
  readonly instance: string;
  /** Watches only these, so that Roles in them suffice. @default - all namespaces */
  readonly namespaces?: readonly string[];
  /** Keys in work at once, per controller. @default 16 */
  readonly workers?: number;
  /** Mode for objects whose steps don't give one. @default correct */
  readonly drift?: DriftMode;
  /** With it, nothing is written, and what would be done is reported; not beside an election. @default - plans are carried out */
  readonly observer?: typeof Observer;
  /** Works only while it holds the lease. @default - works at once, and with any number of others */
  readonly election?: ElectionProps;
  /** @default systemClock */
  readonly clock?: Clock;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
  /** Whether what is in memory is frozen: for tests. @default false */
  readonly freeze?: boolean;
}

export type ElectionProps = Pick<ElectorProps, 'namespace' | 'identity' | 'onAnnotated'>;

/** Part of the engine that isn't ready. */
export interface NotReady {
  /** The resource, as in `deployments.apps in shop`. */
  readonly what: string;
  readonly why: string;
}

/** Props of nearly every part. */
type Common = Pick<ManagerProps, 'log' | 'metrics'> & {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
};

/** Watch of the engine. */
interface WatchPart {
  readonly name: string;
  readonly watched: WatchedStore;
  readonly reflector: Reflector;
  /** Reflectors of which one has to be answered before it opens; none for what opens at once. */
  readonly after: Reflector[];
}

/** Controller at work, and the reflectors that it waits for. */
interface RunningController {
  readonly runner: Runner;
  readonly reflectors: readonly Reflector[];
}

/**
 * The engine: watches what the controllers name, and reconciles what their watches map to, until it is stopped. When it
 * is stopped, what is in flight is finished first, and then the lease is released.
 */
export class Manager {
  private readonly clock: Clock;
  private readonly gate: Gate;
  private readonly recorder: EventRecorder;
  private readonly running: readonly RunningController[];
  private readonly watches: readonly WatchPart[];
  private readonly elector: Elector | undefined;
  /** Number of terms in which this process has led. */
  term = 0;

  constructor(private readonly props: ManagerProps) {
    const { controllers, log, metrics, instance, namespaces = [], election, observer: Observes } = props;
    const clock = (this.clock = props.clock ?? systemClock);
    const random = props.random ?? Math.random;
    const time = new ServerTime(clock);
    this.gate = new Gate({
      ...{ wire: props.transport, clock, random, log, metrics },
      // Asked once there is something to send. Without an election, nothing is ever held back.
      ...((Observes || election) && { fence: { admits: () => !Observes && !!this.elector?.admits() } }),
    });
    const common: Common = { api: new Api(this.gate, time), clock, random, log, metrics };
    const stores = new Stores({ perNamespace: namespaces.length > 0, freeze: props.freeze ?? false, log });
    const reporter = { reportingController: 'kosmos.io/reconstruct', reportingInstance: instance };
    const recorder = (this.recorder = new EventRecorder({ ...common, ...reporter }));
    const memory = new Memory(clock);
    const { drift = 'correct' } = props;
    const following: Common = { ...common, api: new SharedApi(this.gate, time, clock) };
    const onWentBack = (listedBefore: number): void => {
      leadership.wentBack(listedBefore, clock.monotonic());
    };
    const runners = controllers.map((controller) => {
      const { name, kind } = controller;
      const ofController = log.child({ controller: name, kind });
      const shared = { clock, metrics, memory, drift, log: ofController };
      return new Runner({
        ...{ controller, stores, random, time, workers: props.workers ?? 16 },
        hand: { ...shared, api: common.api, events: recorder, isDry: false },
        ...(Observes && { observer: new Observes({ ...shared, transport: this.gate, controller: name }) }),
        lookups: {
          reflector: (scope, store) =>
            new Reflector({
              ...{ ...following, onWentBack, scope, store, optional: true },
              label: `${watchName({ type: scope.type })} looked up`,
            }),
          count: async (scope) => {
            const page = await following.api.list({ ...scope, pageObjects: 1, metadataOnly: true });
            const { remaining = page.continueToken === undefined ? 0 : Infinity } = page;
            return page.items.length + remaining;
          },
        },
      });
    });
    this.gate.onChange((isUnreachable) => {
      for (const runner of runners) runner.wakes.serverUnreachable(isUnreachable);
    });
    this.watches = watchesOf(following, stores, namespaces, runners, onWentBack);
    const storesOf = controllers.map(({ watches }) => watches.map((watch) => stores.open(watch)));
    const firsts = new Set(storesOf.map(([first]) => first));
    this.running = runners.map((runner, index) => {
      const read = storesOf[index] ?? [];
      const parts = this.watches.filter(({ watched }) => read.includes(watched.store));
      const first = parts.filter(({ watched }) => watched.store === read[0]);
      for (const { watched, after } of parts)
        if (!firsts.has(watched.store)) after.push(...first.map(({ reflector }) => reflector));
      const reflectors = parts.map(({ reflector }) => reflector);
      return { runner, reflectors };
    });
    const leadership = new Leadership(this.running);
    if (election)
      this.elector = new Elector({
        ...{ ...election, transport: this.gate, clock, random, log, metrics },
        onLeading: (aloneSince) => {
          this.term++;
          leadership.gained(aloneSince);
        },
        onLost: () => {
          // What was begun in this turn of the event loop is still here.
          props.transport.withdraw?.();
          leadership.lost();
        },
      });
    else leadership.gained(-Infinity);
    measureStores({ stores, controllers, metrics });
    measureReflectors(
      metrics,
      clock,
      this.watches.map(({ reflector }) => reflector),
    );
  }

  /**
   * Returns the watches that have yet to deliver their first list, and the kinds that may be installed and aren't served. Of a
   * controller whose custom resources can't be read, these alone are named: its other watches wait for them.
   */
  notReady(): NotReady[] {
    const listing = this.gate.isUnreachable
      ? 'the API server is unreachable'
      : 'the first list is not complete';
    return this.opened().flatMap(({ name, reflector: { failure, doubtful, synced } }) => {
      if (doubtful !== undefined) return [{ what: name, why: doubtful }];
      if (synced) return [];
      return [{ what: name, why: failure?.message ?? listing }];
    });
  }

  /** Returns an annotation of the lease. */
  annotation(name: string): string | undefined {
    return this.elector?.annotation(name);
  }

  /** Writes an annotation of the lease soon; without an election, nothing. */
  annotate(name: string, value: string): void {
    this.elector?.annotate(name, value);
  }

  /** Reason why this process may believe wrongly that it leads; empty while it can't. */
  staleLeadership(): string[] {
    return this.elector?.unhealthy() ?? [];
  }

  /** Watches that have been silent for far too long although the API server answers: a bug, which a restart ends. */
  silentWatches(): string[] {
    if (this.gate.isUnreachable) return [];
    const now = this.clock.monotonic();
    return this.opened().flatMap(({ name, reflector }) => {
      const silence = reflector.silentForMilliseconds(now);
      return silence > WATCH.unhealthySilence
        ? [`${name}: nothing heard for ${Math.round(silence / 1000)} s`]
        : [];
    });
  }

  /**
   * Requeues all keys of a controller, in the lane `initial`: something that its plans depend on has changed, and no
   * watch announces it. Several controllers may have the name; none need have it.
   */
  requeueAll(name: string): void {
    for (const { runner } of this.running) if (runner.name === name) runner.wakes.all();
  }

  /** Works until the signal aborts and everything in flight is finished. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.props;
    const watching = new AbortController();
    const electing = this.elector?.run();
    const watches = this.watch(watching.signal);
    let drain: Timer | undefined;
    const { promise: tooLong, resolve: giveUp } = Promise.withResolvers<false>();
    const stop = (): void => {
      log.info('stopping: finishing what is in flight');
      for (const { runner } of this.running) runner.stop();
      drain = this.clock.setTimer(DRAIN, () => {
        const message = 'still not finished: stopping all the same, the lease is not released';
        log.warn({ seconds: DRAIN / 1000 }, message);
        for (const { runner } of this.running) void runner.interrupt();
        giveUp(false);
      });
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const work = Promise.all(this.running.map((one) => this.work(one, signal)));
    const finished = await Promise.race([work.then(() => true), tooLong]);
    drain?.cancel();
    await this.recorder.close();
    // Watches go last: the answers to the last writes were still of use.
    watching.abort();
    await watches;
    // It was renewed until now. What is still under way may yet be carried out, so no other process may begin then.
    if (finished) await this.elector?.release();
    else this.elector?.stop();
    await electing;
    await this.gate.close();
    log.info('stopped');
  }

  private async work({ runner, reflectors }: RunningController, signal: AbortSignal): Promise<void> {
    const synced = Promise.all(reflectors.map(({ firstSync }) => firstSync)).then(() => true);
    if (!(await Promise.race([synced, aborted(signal)])) || signal.aborted) return;
    this.props.log.info({ controller: runner.name, queued: runner.queue.depth }, 'controller started');
    await runner.run();
  }

  /** With an election, from its first try on: what is listed after it needn't be listed again to lead at once. */
  private async watch(signal: AbortSignal): Promise<void> {
    if (this.elector) await Promise.race([aborted(this.elector.firstTry), aborted(signal)]);
    const all = this.watches.map(async ({ after, reflector }) => {
      const answered = after.map(({ answered }) => answered.reached);
      if (answered.length > 0) await Promise.race([...answered, aborted(signal)]);
      await reflector.run(signal);
    });
    await Promise.all(all);
  }

  /** Watches that need not wait for others, or no longer. */
  private opened(): WatchPart[] {
    return this.watches.filter(
      ({ after }) => after.length === 0 || after.some(({ answered }) => answered.isReached),
    );
  }
}

function watchesOf(
  common: Common,
  stores: Stores,
  namespaces: readonly string[],
  runners: readonly Runner[],
  onWentBack: NonNullable<ReflectorProps['onWentBack']>,
): WatchPart[] {
  return stores.all().flatMap((watched, index) =>
    scopesOf(watched.watch, namespaces).map((scope) => ({
      ...{ name: watchName(scope), watched, after: [] },
      reflector: new Reflector({
        ...{ ...common, onWentBack, scope, store: watched.store, optional: watched.optional },
        mayBeDoubtful: watched.mayBeDoubtful,
        label: watchLabel(scope, namespaces),
        onDoubt: (isDoubtful) => {
          const reason = `doubt ${String(index)} ${scope.namespace ?? ''}`;
          for (const runner of runners) runner.wakes.setUncertain(scope.type, reason, isDoubtful);
        },
        onListed: () => {
          for (const runner of runners) runner.wakes.kindServed(scope.type);
        },
      }),
    })),
  );
}

const STANDBY = 'standby';

/**
 * Lets runners work while this process leads, on lists that were asked for since. Otherwise they are on warm standby:
 * stores are kept up to date, queues fill and are held.
 */
class Leadership {
  private term: AbortController | undefined;
  private interrupted: Promise<unknown> = Promise.resolve();
  /** Time at which the server was last seen to have gone back: lists from before don't count. */
  private backSince = -Infinity;

  constructor(private readonly running: readonly RunningController[]) {
    for (const { runner } of running) runner.queue.hold(STANDBY);
  }

  /** @param aloneSince since when, by the monotonic clock, no other process can have written */
  gained(aloneSince: number): void {
    this.term?.abort();
    const { signal } = (this.term = new AbortController());
    const since = Math.max(aloneSince, this.backSince);
    for (const one of this.running) {
      // One that can't be listed holds back its own keys, and not the controller.
      one.runner.lookups.restart();
      void this.admit(one, since, signal);
    }
  }

  /**
   * A list shows that the server went back to an older state: work goes on as in a new term, once all is listed. A type
   * whose last list is from before shows the same restore once more, which is ignored.
   */
  wentBack(listedBefore: number, now: number): void {
    if (listedBefore < this.backSince) return;
    this.backSince = now;
    if (!this.term) return;
    this.lost();
    this.gained(now);
  }

  lost(): void {
    this.term?.abort();
    this.term = undefined;
    for (const { runner } of this.running) runner.queue.hold(STANDBY);
    this.interrupted = Promise.all(this.running.map(({ runner }) => runner.interrupt()));
  }

  private async admit({ runner, reflectors }: RunningController, since: number, signal: AbortSignal) {
    const present = reflectors.map((reflector) => reflector.presentSince(since, signal));
    await Promise.all([this.interrupted, ...present]);
    if (!signal.aborted) runner.queue.release(STANDBY);
  }
}

/** Maximum number of reasons that have a series of their own: they are free text. Those of alerts aren't counted. */
const REASON_LIMIT = 50;

/** Measures, on each scrape, how many objects are in memory, and the custom resources among them by state and reason. */
export function measureStores({
  stores,
  controllers,
  metrics,
}: Pick<ManagerProps, 'controllers' | 'metrics'> & { readonly stores: Stores }): void {
  // The first watch of a controller is of its custom resources; several controllers may have a kind.
  const resources = new Map(
    controllers.flatMap(({ watches: [first] }) =>
      first
        ? [[groupKind(first.type), { store: stores.open(first), reasons: new Set(ALERTED_REASONS) }]]
        : [],
    ),
  );
  metrics.onScrape(() => {
    const sizes = new Map<string, number>();
    for (const { watch, store } of stores.all()) {
      const type = groupKind(watch.type);
      sizes.set(type, (sizes.get(type) ?? 0) + store.size);
    }
    for (const [type, size] of sizes) metrics.storeObjects.set({ type }, size);
    // What nothing is in any more isn't shown.
    metrics.customResources.reset();
    metrics.pendingUpdates.reset();
    for (const [type, { store, reasons }] of resources)
      for (const object of store.objects()) {
        const { state, reason } = stateOf(object);
        if (reasons.size < REASON_LIMIT + ALERTED_REASONS.length) reasons.add(reason);
        metrics.customResources.inc({ type, state, reason: reasons.has(reason) ? reason : 'other' });
        const pending = conditionOf(object, UPDATE_PENDING);
        const change = PENDING_REASONS.find((each) => each === pending?.reason) ?? 'other';
        if (pending?.status === 'True') metrics.pendingUpdates.inc({ type, reason: change });
      }
  });
}

/** Reads the state from the conditions, as they were written last. */
function stateOf(object: AnyObject): { readonly state: string; readonly reason: string } {
  if (object.metadata.deletionTimestamp !== undefined) return { state: 'deleting', reason: '' };
  const ready = conditionOf(object, 'Ready');
  if (!ready) return { state: 'unseen', reason: '' };
  const { reason = '' } = ready;
  if (ready.status === 'True') return { state: 'ready', reason };
  if (conditionOf(object, 'Stalled')?.status === 'True') return { state: 'stalled', reason };
  return { state: ready.status === 'False' ? 'failing' : 'progressing', reason };
}

function conditionOf({ status }: AnyObject, type: string): Partial<Condition> | undefined {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Partial<Condition>[] };
  return conditions.find((one) => one.type === type);
}
