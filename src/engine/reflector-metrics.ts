import { groupOf } from '../contract/object.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Scope } from './api.js';
import type { Clock } from './clock.js';
import type { Reflector } from './reflector.js';

/** A label for each of more namespaces would cost more than it tells. */
const NAMED_NAMESPACES = 25;

/** What a watch covers, for people: `deployments.apps in shop`. */
export function watchName({ type, namespace, name }: Scope): string {
  const group = groupOf(type.apiVersion);
  return `${type.plural}${group && `.${group}`}${name ? `/${name}` : ''}${namespace ? ` in ${namespace}` : ''}`;
}

/** The same as a label: of many namespaces, those after the first share one. */
export function watchLabel(scope: Scope, namespaces: readonly string[]): string {
  const { namespace } = scope;
  const named = namespace === undefined || namespaces.indexOf(namespace) < NAMED_NAMESPACES;
  return watchName(named ? scope : { ...scope, namespace: 'other namespaces' });
}

/** Counts what reflectors do, and tells how they stand when somebody asks; reflectors may share a name. */
export class WatchMetrics {
  private readonly followed: { readonly name: string; readonly reflector: Reflector }[] = [];

  constructor(
    private readonly metrics: Metrics,
    private readonly clock: Clock,
  ) {
    metrics.onScrape(() => {
      this.update();
    });
  }

  named(name: string): ReflectorMetrics {
    const { metrics, followed } = this;
    return {
      follow: (reflector) => followed.push({ name, reflector }),
      listed: (milliseconds) => {
        metrics.reflectorLists.inc({ name });
        metrics.reflectorListSeconds.observe({ name }, milliseconds / 1000);
      },
      watchOpened: () => {
        metrics.reflectorWatches.inc({ name });
      },
      watchWasShort: () => {
        metrics.reflectorShortWatches.inc({ name });
      },
    };
  }

  /** Of those that share a name, the one that is worst off is shown. */
  private update(): void {
    const silence = new Map<string, number>();
    const version = new Map<string, number>();
    for (const { name, reflector } of this.followed) {
      const seconds = reflector.watches
        ? reflector.silentForMilliseconds(this.clock.monotonic()) / 1000
        : Infinity;
      silence.set(name, Math.max(silence.get(name) ?? 0, seconds));
      const reached = Number(reflector.lastResourceVersion ?? 0);
      version.set(name, Math.min(version.get(name) ?? Infinity, reached));
    }
    for (const [name, seconds] of silence)
      this.metrics.watchSilenceSeconds.set({ name }, seconds === Infinity ? -1 : seconds);
    for (const [name, reached] of version) this.metrics.reflectorLastResourceVersion.set({ name }, reached);
  }
}

/** Where one reflector reports. */
export interface ReflectorMetrics {
  /** How it stands is shown from now on. */
  follow(reflector: Reflector): void;
  listed(milliseconds: number): void;
  watchOpened(): void;
  watchWasShort(): void;
}
