import type { Controller } from '../contract/controller.js';
import { groupKind } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { aborted } from './aborted.js';
import { Api } from './api.js';
import { Applier } from './apply.js';
import { systemClock } from './clock.js';
import type { Clock, Timer } from './clock.js';
import { connect } from './connect.js';
import { Elector } from './elector.js';
import type { ElectorProps } from './elector.js';
import { EventRecorder } from './events.js';
import { Fights } from './fights.js';
import { holdWhilePaused } from './hold-while-paused.js';
import { Leadership } from './leadership.js';
import { Reflector } from './reflector.js';
import { watchLabel, WatchMetrics, watchName } from './reflector-metrics.js';
import { Refusals } from './refusals.js';
import { Runner } from './runner.js';
import { scopesOf } from './scopes.js';
import type { ServerGate } from './server-gate.js';
import { Settlements } from './settlements.js';
import { StatusWriter } from './status.js';
import { Stores } from './stores.js';
import type { WatchedStore } from './stores.js';
import type { Transport } from './transport.js';
import { Vanished } from './vanished.js';

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
  /** Writes under way at once, at most; fewer while the API server is overloaded. @default 32 */
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
  private readonly reflectors: {
    readonly name: string;
    readonly watched: WatchedStore;
    readonly reflector: Reflector;
  }[];
  private readonly clock: Clock;
  private readonly gate: ServerGate;
  private readonly transport: Transport;
  private readonly runners: { readonly runner: Runner; readonly controller: Controller }[];
  private readonly recorder: EventRecorder;
  private readonly elector: Elector | undefined;

  constructor(private readonly props: ManagerProps) {
    const { controllers, log, metrics, instance } = props;
    const namespaces = props.namespaces ?? [];
    const clock = (this.clock = props.clock ?? systemClock);
    const random = props.random ?? Math.random;
    const { gate, transport } = connect({
      ...{ wire: props.transport, clock, random, log, metrics },
      // Without an election, nothing is ever held back.
      fence: { admits: () => this.elector?.admits() ?? true },
      ...(props.maxWrites !== undefined && { maxWrites: props.maxWrites }),
    });
    this.gate = gate;
    this.transport = transport;
    const api = new Api(transport);
    const stores = new Stores({ perNamespace: namespaces.length > 0, freeze: props.freeze ?? false, log });
    const settlements = new Settlements();
    this.recorder = new EventRecorder({
      ...{ api, clock, random, log, metrics },
      reportingController: 'kosmos.io/reconstruct',
      reportingInstance: instance,
    });
    const tools = {
      api,
      applier: new Applier({
        ...{ api, settlements, refusals: new Refusals(clock), fights: new Fights(clock), metrics },
        vanished: new Vanished(clock),
      }),
      statusWriter: new StatusWriter(api, settlements),
      recorder: this.recorder,
    };
    const workers = props.workers ?? 16;
    this.runners = controllers.map((controller) => ({
      controller,
      runner: new Runner({ controller, stores, tools, clock, random, log, metrics, workers }),
    }));
    holdWhilePaused(
      this.gate,
      this.runners.map(({ runner }) => runner.queue),
    );
    for (const { store } of stores.all()) {
      store.onChange((before, after) => {
        if (before && !after) tools.applier.gone(before);
      });
    }
    const watchMetrics = new WatchMetrics(metrics, clock);
    this.reflectors = stores.all().flatMap((watched) =>
      scopesOf(watched, namespaces).map((scope) => ({
        name: watchName(scope),
        watched,
        reflector: new Reflector({
          ...{ api, scope, store: watched.store, clock, random, log, optional: watched.optional },
          metrics: watchMetrics.named(watchLabel(scope, namespaces)),
        }),
      })),
    );
    this.elector = props.election && this.electorFor(props.election, transport, clock, random);
    metrics.onScrape(() => {
      for (const { type, store } of stores.all())
        metrics.storeObjects.set({ type: groupKind(type) }, store.size);
    });
  }

  /** What has yet to deliver its first list; empty when the engine is ready, and from then on. */
  notReady(): NotReady[] {
    return this.reflectors.flatMap(({ name, reflector }) => {
      if (reflector.synced) return [];
      const { state } = reflector;
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
    return this.elector?.unhealthy() ?? [];
  }

  /** Watches that have been silent for far too long although the API server answers: a bug, which a restart mends. */
  silentWatches(): string[] {
    if (this.gate.pause) return [];
    const now = this.clock.now();
    return this.reflectors.flatMap(({ name, reflector }) => {
      const silence = reflector.silentForMilliseconds(now);
      return silence > LONGEST_SILENCE_MILLISECONDS
        ? [`${name}: nothing heard for ${Math.round(silence / 1000)} s`]
        : [];
    });
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
      log.info('Stopping: finishing what is in flight');
      for (const { runner } of this.runners) runner.stop();
      drain = this.clock.setTimer(DRAIN_MILLISECONDS, () => {
        for (const { runner } of this.runners) void runner.interrupt();
        giveUp(false);
      });
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const work = Promise.all(this.runners.map((entry) => this.runWhenSynced(entry, signal)));
    const finished = await Promise.race([work.then(() => true), tooLong]);
    drain?.cancel();
    await this.recorder.close();
    // Watches go last: the answers to the last writes were still of use.
    watching.abort();
    await watches;
    // It was renewed until now. What is still under way may yet be carried out, so nobody else may begin then.
    if (finished) await this.elector?.release();
    else this.elector?.stop();
    await electing;
    await this.transport.close();
    log.info('Stopped');
  }

  /** With an election, from its first try on: what is listed after it needn't be listed again to lead at once. */
  private async watch(signal: AbortSignal): Promise<void> {
    if (this.elector) await Promise.race([aborted(this.elector.firstTry), aborted(signal)]);
    await Promise.all(this.reflectors.map(({ reflector }) => reflector.run(signal)));
  }

  private whyListing(): string {
    const { pause } = this.gate;
    return pause ? `the API server is ${pause}` : 'the first list is not complete';
  }

  private electorFor(
    election: ElectionProps,
    transport: Transport,
    clock: Clock,
    random: () => number,
  ): Elector {
    const { log, metrics } = this.props;
    const leadership = new Leadership(
      this.runners.map(({ runner, controller }) => ({ runner, watches: this.reflectorsOf(controller) })),
    );
    return new Elector({
      ...{ ...election, transport, clock, random, log, metrics },
      onLeading: (aloneSince) => {
        leadership.gained(aloneSince);
      },
      onLost: () => {
        leadership.lost();
      },
    });
  }

  private reflectorsOf({ watches }: Controller): Reflector[] {
    const types = new Set(watches.map(({ type }) => groupKind(type)));
    return this.reflectors
      .filter(({ watched }) => types.has(groupKind(watched.type)))
      .map(({ reflector }) => reflector);
  }

  private async runWhenSynced(
    { runner, controller }: Manager['runners'][number],
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const synced = this.reflectorsOf(controller).map(({ firstSync }) => firstSync);
    await Promise.race([Promise.all(synced), aborted(signal)]);
    if (isAborted(signal)) return;
    this.props.log.info({ controller: controller.name, queued: runner.queue.depth }, 'Controller started');
    await runner.run();
  }
}

function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
