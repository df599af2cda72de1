import type { Controller } from '../contract/controller.js';
import type { Metrics } from '../telemetry/metrics.js';
import { aborted } from './clock.js';
import { Reflector } from './reflector.js';
import type { ReflectorProps } from './reflector.js';
import { watchLabel, WatchMetrics, watchName } from './reflector-metrics.js';
import type { Runner } from './runner.js';
import { scopesOf } from './scopes.js';
import type { Store } from './store.js';
import type { Stores, WatchedStore } from './stores.js';

export interface WatchingProps extends Pick<ReflectorProps, 'api' | 'clock' | 'random' | 'log'> {
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
export class Watching {
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
