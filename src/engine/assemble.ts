import type { Condition } from '../contract/conditions.js';
import type { Controller } from '../contract/controller.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Metrics } from '../telemetry/metrics.js';
import { Api } from './api.js';
import { Applier, Vanished } from './apply.js';
import type { Tools } from './carry-out.js';
import { aborted } from './clock.js';
import type { Clock } from './clock.js';
import { connect } from './connect.js';
import { Deleter } from './deleter.js';
import { Elector } from './elector.js';
import { EventRecorder } from './events.js';
import { Fights } from './fights.js';
import type { ManagerProps } from './manager.js';
import { NodePorts } from './node-ports.js';
import { Reflector } from './reflector.js';
import type { ReflectorProps } from './reflector.js';
import { watchLabel, WatchMetrics, watchName } from './reflector-metrics.js';
import { Refusals } from './refusals.js';
import { Runner } from './runner.js';
import { scopesOf } from './scopes.js';
import type { ServerGate } from './server-gate.js';
import { ServerTime } from './server-time.js';
import { Settlements } from './settlements.js';
import { StatusWriter } from './status.js';
import type { Store } from './store.js';
import { Stores } from './stores.js';
import type { WatchedStore } from './stores.js';
import type { Transport } from './transport.js';

/** What the manager starts, asks and stops. */
export interface Parts {
  readonly gate: ServerGate;
  readonly transport: Transport;
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
  const { gate, transport } = connect({
    ...{ wire: props.transport, clock, random, log, metrics, time },
    // Asked once there is something to send. Without an election, nothing is ever held back.
    fence: { admits: (): boolean => elector?.admits() ?? true },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  const common: Common = { api: new Api(transport), clock, random, log, metrics };
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
  const elector = electorOf(props, transport, common, leadership);
  if (!elector) leadership.gained(-Infinity);
  for (const { store, readOnly } of stores.all()) {
    if (readOnly) continue;
    store.onChange((before, after) => {
      tools.applier.changed(before, after);
    });
  }
  measureStores({ stores, controllers, metrics });
  return { gate, transport, recorder, runners, watching, elector };
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
