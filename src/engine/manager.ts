import type { Condition } from '../contract/conditions.js';
import type { Controller } from '../contract/controller.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { Api } from './api.js';
import { Applier, Vanished } from './apply.js';
import { Stores } from './cache.js';
import type { Store, WatchedStore } from './cache.js';
import type { Tools } from './carry-out.js';
import { ServerTime, aborted, systemClock } from './clock.js';
import type { Clock, Timer } from './clock.js';
import { Deleter } from './deleter.js';
import { EventRecorder } from './events.js';
import { Fights } from './fights.js';
import { Gate } from './gate.js';
import { Elector } from './leader.js';
import type { ElectorProps } from './leader.js';
import { NodePorts } from './node-ports.js';
import { Reflector, WatchMetrics, watchLabel, watchName } from './reflector.js';
import type { ReflectorProps } from './reflector.js';
import { Refusals } from './refusals.js';
import { Runner } from './runner.js';
import { scopesOf } from './scopes.js';
import { Settlements } from './settlements.js';
import { StatusWriter } from './status.js';
import type { Transport } from './transport.js';

/** What the manager starts, asks and stops. */
export interface Parts {
  readonly gate: Gate;
  readonly recorder: EventRecorder;
  readonly runners: readonly { readonly runner: Runner; readonly controller: Controller }[];
  readonly watching: Watching;
  readonly elector: Elector | undefined;
}

/** What nearly every part needs. */
type Common = Pick<ManagerProps, 'log' | 'metrics'> & {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
};

/** Makes the parts of an engine and joins them; nothing runs yet. */
export function assemble(props: ManagerProps, clock: Clock, random: () => number): Parts {
  const { controllers, log, metrics, instance, namespaces = [], maxWrites, workers = 16 } = props;
  const time = new ServerTime(clock);
  const gate = new Gate({
    ...{ wire: props.transport, clock, random, log, metrics },
    // Asked once there is something to send. Without an election, nothing is ever held back.
    fence: { admits: (): boolean => elector?.admits() ?? true },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  const common: Common = { api: new Api(gate, time), clock, random, log, metrics };
  const stores = new Stores({ perNamespace: namespaces.length > 0, freeze: props.freeze ?? false, log });
  const recorder = new EventRecorder({
    ...common,
    reportingController: 'kosmos.io/reconstruct',
    reportingInstance: instance,
  });
  const tools = toolsOf(common);
  const toolsFor = ({ name, kind }: Controller): Tools => {
    const forOne = { ...common, recorder, log: log.child({ controller: name, kind }) };
    return { ...tools, recorder, deleter: new Deleter(forOne) };
  };
  const runners = controllers.map((controller) => ({
    controller,
    runner: new Runner({
      controller,
      stores,
      tools: toolsFor(controller),
      clock,
      random,
      log,
      metrics,
      workers,
      time,
    }),
  }));
  const everyRunner = runners.map(({ runner }) => runner);
  gate.onChange((isUnreachable) => {
    for (const runner of everyRunner) runner.serverUnreachable(isUnreachable);
  });
  const watching = new Watching({
    ...{ ...common, stores, namespaces, controllers, runners: everyRunner },
    onWentBack: (listedBefore) => {
      leadership.wentBack(listedBefore, clock.monotonic());
    },
  });
  const candidates = runners.map(({ runner, controller }) => ({
    runner,
    watches: watching.of(controller),
  }));
  const leadership = new Leadership(candidates);
  const elector = electorOf(props, gate, common, leadership);
  if (!elector) leadership.gained(-Infinity);
  for (const { store, readOnly } of stores.all()) {
    if (readOnly) continue;
    store.onChange((before, after) => {
      tools.applier.changed(before, after);
    });
  }
  measureStores({ stores, controllers, metrics });
  return { gate, recorder, runners, watching, elector };
}

/** What all controllers share. */
function toolsOf({ api, clock, metrics }: Common): Pick<Tools, 'applier' | 'statusWriter'> {
  const settlements = new Settlements();
  const applier = new Applier({
    ...{ api, settlements, refusals: new Refusals(clock), fights: new Fights(clock), metrics },
    ...{ vanished: new Vanished(clock), nodePorts: new NodePorts(clock) },
  });
  return { applier, statusWriter: new StatusWriter(api, settlements) };
}

function electorOf(
  { election, transport: wire }: ManagerProps,
  transport: Transport,
  { clock, random, log, metrics }: Common,
  leadership: Leadership,
): Elector | undefined {
  if (!election) return undefined;
  return new Elector({
    ...{ ...election, transport, clock, random, log, metrics },
    onLeading: (aloneSince) => {
      leadership.gained(aloneSince);
    },
    onLost: () => {
      // What was begun in this turn of the event loop is still here.
      wire.withdraw?.();
      leadership.lost();
    },
  });
}

const STANDBY = 'standby';

/** A runner, and the watches that its work is founded on. */
interface Candidate {
  readonly runner: Pick<Runner, 'queue' | 'interrupt'>;
  readonly watches: readonly {
    /** Resolves once what is known is as new as the API server was at that moment, or when the signal aborts. */
    presentSince: (moment: number, signal: AbortSignal) => Promise<void>;
  }[];
}

/**
 * Lets runners work while this process leads. Otherwise they are on warm standby: stores are kept up to date, queues
 * fill and are held.
 *
 * **Guarantees.** A change of leadership loses no key: what was in work is put back, what happened meanwhile has come
 * by the watches. What was begun in one term is over before the next one's work begins. Nothing is done on a view that
 * is older than what another leader may have acted on, nor on one from before the server went back to an older state.
 *
 * **Caveats.** A runner waits for as long as one of its types can't be listed.
 */
class Leadership {
  private term: AbortController | undefined;
  private interrupted: Promise<unknown> = Promise.resolve();
  /** When the server was last seen to have gone back: lists from before don't count. */
  private backSince = -Infinity;

  constructor(private readonly candidates: readonly Candidate[]) {
    for (const { runner } of candidates) runner.queue.hold(STANDBY);
  }

  /** @param aloneSince since when, by the monotonic clock, no other process can have written */
  gained(aloneSince: number): void {
    this.term?.abort();
    const { signal } = (this.term = new AbortController());
    const since = Math.max(aloneSince, this.backSince);
    for (const candidate of this.candidates) void this.admit(candidate, since, signal);
  }

  /**
   * A list shows that the server went back to an older state: work goes on as in a new term, once all is listed. A type
   * that wasn't listed since it was seen before shows the same once more.
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
    for (const { runner } of this.candidates) runner.queue.hold(STANDBY);
    this.interrupted = Promise.all(this.candidates.map(({ runner }) => runner.interrupt()));
  }

  private async admit({ runner, watches }: Candidate, since: number, signal: AbortSignal): Promise<void> {
    const present = watches.map((watch) => watch.presentSince(since, signal));
    await Promise.all([this.interrupted, ...present]);
    if (!signal.aborted) runner.queue.release(STANDBY);
  }
}

/** Whoever may write a status mustn't make ever new series. */
const REASON_LIMIT = 50;

interface StoreMetricsProps {
  readonly stores: Stores;
  readonly controllers: readonly Controller[];
  readonly metrics: Metrics;
}

/** Tells, when somebody asks, how many objects are in memory, and how the custom resources among them fare. */
export function measureStores({ stores, controllers, metrics }: StoreMetricsProps): void {
  // The first watch of a controller is of its custom resources; several controllers may have a kind.
  const ofResources = new Map(
    controllers.flatMap(({ watches: [first] }) =>
      first ? [[groupKind(first.type), stores.open(first)] as const] : [],
    ),
  );
  const reasons = new Map([...ofResources.keys()].map((type) => [type, new Set<string>()] as const));
  metrics.onScrape(() => {
    countObjects(stores, metrics);
    // What nothing is in any more isn't shown.
    metrics.customResources.reset();
    for (const [type, store] of ofResources) countResources(type, store, reasons.get(type), metrics);
  });
}

function countObjects(stores: Stores, metrics: Metrics): void {
  const sizes = new Map<string, number>();
  for (const { type, store } of stores.all())
    sizes.set(groupKind(type), (sizes.get(groupKind(type)) ?? 0) + store.size);
  for (const [type, size] of sizes) metrics.storeObjects.set({ type }, size);
}

function countResources(
  type: string,
  store: Store,
  known: Set<string> = new Set(),
  { customResources }: Metrics,
): void {
  for (const key of store.keys()) {
    const object = store.get(key)?.object;
    if (!object) continue;
    const { state, reason } = stateOf(object);
    if (known.size < REASON_LIMIT) known.add(reason);
    customResources.inc({ type, state, reason: known.has(reason) ? reason : 'other' });
  }
}

/** By its own conditions, as they were written last. */
function stateOf({ metadata, status }: AnyObject): { readonly state: string; readonly reason: string } {
  if (metadata.deletionTimestamp !== undefined) return { state: 'deleting', reason: '' };
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Partial<Condition>[] };
  const of = (type: string): Partial<Condition> | undefined => conditions.find((one) => one.type === type);
  const ready = of('Ready');
  if (!ready) return { state: 'unseen', reason: '' };
  const { reason = '' } = ready;
  if (ready.status === 'True') return { state: 'ready', reason };
  if (of('Stalled')?.status === 'True') return { state: 'stalled', reason };
  return { state: ready.status === 'False' ? 'failing' : 'progressing', reason };
}

interface WatchingProps extends Pick<ReflectorProps, 'api' | 'clock' | 'random' | 'log'> {
  readonly metrics: Metrics;
  readonly stores: Stores;
  /** Those that the operator watches; none are all. */
  readonly namespaces: readonly string[];
  readonly runners: readonly Runner[];
  readonly controllers: readonly Controller[];
  readonly onWentBack: NonNullable<ReflectorProps['onWentBack']>;
}

interface Part {
  readonly name: string;
  readonly watched: WatchedStore;
  readonly reflector: Reflector;
}

/**
 * All watches of the engine.
 *
 * **Guarantees.** The first watch of each controller, which delivers its custom resources, opens at once. Any other
 * opens as soon as the first watch of a controller that reads it was answered: a kind that isn't installed, or may not
 * be read, costs no further watch, list or memory. What has been opened stays open.
 */
class Watching {
  private readonly parts: readonly Part[];
  /** Of each store, the reflectors of which one has to be answered first; none for what opens at once. */
  private readonly firsts: ReadonlyMap<Store, readonly Reflector[]>;

  constructor(private readonly props: WatchingProps) {
    this.parts = partsOf(props);
    const { controllers, stores } = props;
    const storesOf = controllers.map(({ watches }) => watches.map((watch) => stores.open(watch)));
    const atOnce = new Set(storesOf.map(([first]) => first));
    this.firsts = new Map(
      stores.all().map(({ store }) => {
        if (atOnce.has(store)) return [store, []];
        const firsts = new Set(storesOf.filter((those) => those.includes(store)).map(([first]) => first));
        return [store, this.reflectorsOf(firsts)];
      }),
    );
  }

  /** What a controller's work is founded on. */
  of({ watches }: Controller): Reflector[] {
    return this.reflectorsOf(new Set(watches.map((watch) => this.props.stores.open(watch))));
  }

  /** Those that need not wait for others, or no longer. */
  opened(): Part[] {
    return this.parts.filter(({ watched }) => {
      const firsts = this.firstsOf(watched);
      return firsts.length === 0 || firsts.some(({ answered }) => answered.isReached);
    });
  }

  /** Watches until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const all = this.parts.map(async ({ watched, reflector }) => {
      const firsts = this.firstsOf(watched).map(({ answered }) => answered.reached);
      if (firsts.length > 0) await Promise.race([...firsts, aborted(signal)]);
      await reflector.run(signal);
    });
    await Promise.all(all);
  }

  private reflectorsOf(stores: ReadonlySet<Store | undefined>): Reflector[] {
    return this.parts.filter(({ watched }) => stores.has(watched.store)).map(({ reflector }) => reflector);
  }

  private firstsOf({ store }: WatchedStore): readonly Reflector[] {
    return this.firsts.get(store) ?? [];
  }
}

function partsOf({ metrics, stores, namespaces, runners, onWentBack, ...common }: WatchingProps): Part[] {
  const watchMetrics = new WatchMetrics(metrics, common.clock);
  const { api, clock, random, log } = common;
  return stores.all().flatMap((watched, index) =>
    scopesOf(watched, namespaces).map((scope) => ({
      name: watchName(scope),
      watched,
      reflector: new Reflector({
        ...{ api, clock, random, log, onWentBack, scope, store: watched.store, optional: watched.optional },
        mayBeDoubtful: watched.optional && !watched.readOnly,
        metrics: watchMetrics.named(watchLabel(scope, namespaces)),
        onDoubt: (isDoubtful) => {
          const reason = `doubt ${String(index)} ${scope.namespace ?? ''}`;
          for (const runner of runners) runner.doubted(scope.type, reason, isDoubtful);
        },
        onListed: () => {
          for (const runner of runners) runner.kindServed(scope.type);
        },
      }),
    })),
  );
}

/** Silence of 75 s replaces a watch, so this much means that replacing it doesn't work. */
const LONGEST_SILENCE_MILLISECONDS = 300_000;
/** Kubernetes kills a Pod 30 s after it has asked it to stop; until then there has to be time to release the lease. */
const DRAIN_MILLISECONDS = 20_000;

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
  /** Writes under way at once, at most. @default 32 */
  readonly maxWrites?: number;
  /** Works only while it holds the lease. @default - works at once, and with any number of others */
  readonly election?: ElectionProps;
  /** @default systemClock */
  readonly clock?: Clock;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
  /** Makes whoever changes an object in memory fail: for tests. @default false */
  readonly freeze?: boolean;
}

export type ElectionProps = Pick<
  ElectorProps,
  'namespace' | 'identity' | 'leaseDurationSeconds' | 'renewDeadlineMilliseconds' | 'retryPeriodMilliseconds'
>;

/** What a part of the engine is waiting for. */
export interface NotReady {
  /** The resource, as in `deployments.apps in shop`. */
  readonly what: string;
  readonly why: string;
}

/**
 * The engine: watches what the controllers name, and reconciles what their watches map to, until it is stopped.
 *
 * **Guarantees.** A controller works only once all of its watches have delivered a complete list, and with an election
 * only while this process leads; until then it is ready to take over. When the engine is stopped, what is in flight is
 * finished first, and then the lease is released.
 */
export class Manager {
  private readonly clock: Clock;
  private readonly parts: Parts;

  constructor(private readonly props: ManagerProps) {
    this.clock = props.clock ?? systemClock;
    this.parts = assemble(props, this.clock, props.random ?? Math.random);
  }

  /**
   * What has yet to deliver its first list, and what may be installed and isn't served. Of a controller whose custom
   * resources can't be read, these alone are named: its other watches wait for them.
   */
  notReady(): NotReady[] {
    return this.parts.watching.opened().flatMap(({ name, reflector }) => {
      const { state, doubtful } = reflector;
      if (doubtful !== undefined) return [{ what: name, why: doubtful }];
      if (reflector.synced) return [];
      return [
        {
          what: name,
          why: state.phase === 'waiting' ? state.error.message : this.whyListing(),
        },
      ];
    });
  }

  /** Why this process may believe wrongly that it leads; empty while it can't. */
  staleLeadership(): string[] {
    return this.parts.elector?.unhealthy() ?? [];
  }

  /** Watches that have been silent for far too long although the API server answers: a bug, which a restart mends. */
  silentWatches(): string[] {
    if (this.parts.gate.isUnreachable) return [];
    const now = this.clock.monotonic();
    return this.parts.watching.opened().flatMap(({ name, reflector }) => {
      const silence = reflector.silentForMilliseconds(now);
      return silence > LONGEST_SILENCE_MILLISECONDS
        ? [`${name}: nothing heard for ${Math.round(silence / 1000)} s`]
        : [];
    });
  }

  /**
   * Reconciles all keys of a controller again, behind those that somebody waits for: something that its plans depend on
   * has changed, and no watch tells of it. Several controllers may have the name; none need have it.
   */
  lookAgain(name: string): void {
    for (const { runner, controller } of this.parts.runners) if (controller.name === name) runner.lookAgain();
  }

  /** Works until the signal aborts and everything in flight is finished. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.props;
    const watching = new AbortController();
    const electing = this.parts.elector?.run();
    const watches = this.watch(watching.signal);
    let drain: Timer | undefined;
    const { promise: tooLong, resolve: giveUp } = Promise.withResolvers<false>();
    const stop = (): void => {
      log.info('Stopping: finishing what is in flight');
      for (const { runner } of this.parts.runners) runner.stop();
      drain = this.clock.setTimer(DRAIN_MILLISECONDS, () => {
        const seconds = DRAIN_MILLISECONDS / 1000;
        log.warn({ seconds }, 'Still not finished: stopping all the same, the lease is not released');
        for (const { runner } of this.parts.runners) void runner.interrupt();
        giveUp(false);
      });
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const work = Promise.all(this.parts.runners.map((entry) => this.runWhenSynced(entry, signal)));
    const finished = await Promise.race([work.then(() => true), tooLong]);
    drain?.cancel();
    await this.parts.recorder.close();
    // Watches go last: the answers to the last writes were still of use.
    watching.abort();
    await watches;
    // It was renewed until now. What is still under way may yet be carried out, so nobody else may begin then.
    if (finished) await this.parts.elector?.release();
    else this.parts.elector?.stop();
    await electing;
    await this.parts.gate.close();
    log.info('Stopped');
  }

  /** With an election, from its first try on: what is listed after it needn't be listed again to lead at once. */
  private async watch(signal: AbortSignal): Promise<void> {
    const { elector, watching } = this.parts;
    if (elector) await Promise.race([aborted(elector.firstTry), aborted(signal)]);
    await watching.run(signal);
  }

  private whyListing(): string {
    return this.parts.gate.isUnreachable ? 'the API server is unreachable' : 'the first list is not complete';
  }

  private async runWhenSynced(
    { runner, controller }: Parts['runners'][number],
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const synced = this.parts.watching.of(controller).map(({ firstSync }) => firstSync);
    await Promise.race([Promise.all(synced), aborted(signal)]);
    if (isAborted(signal)) return;
    this.props.log.info({ controller: controller.name, queued: runner.queue.depth }, 'Controller started');
    await runner.run();
  }
}

function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
