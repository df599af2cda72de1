import type { AnyObject } from '../../contract/object.js';
import type { Api, Scope } from '../../engine/api.js';
import { ApiError } from '../../engine/api-error.js';
import { Store } from '../../engine/cache.js';
import { sleep, unlessAborted } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { Reflector, WatchMetrics } from '../../engine/reflector.js';
import { silentLogger } from '../../telemetry/logger.js';
import { Metrics } from '../../telemetry/metrics.js';
import { isSecret, listAll, scopeId } from './collect.js';
import type { Source } from './collect.js';
import type { StatusDocument } from './model.js';

/** Changes come in bursts. */
const QUIET_MILLISECONDS = 100;
/** Ages and leases grow old although nothing happens. */
const TICK_MILLISECONDS = 5_000;

export interface FollowProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly collect: (source: Source) => Promise<StatusDocument>;
  /** Called with each new state. @returns true to end */
  readonly onDocument: (document: StatusDocument) => boolean | Promise<boolean>;
  /** Called when a later look than the first fails, before the next one. @default - not called */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Collects again whenever something has changed, by watches, until the signal aborts or `onDocument` ends it.
 * @throws what `collect` throws the first time; later failures are retried
 */
export async function follow(props: FollowProps): Promise<void> {
  const { api, clock, signal, collect, onDocument, onFailed } = props;
  const isOver = (): boolean => signal.aborted;
  const ending = new AbortController();
  let changed = Promise.withResolvers<undefined>();
  const source = new WatchedSource({
    ...{ api, clock, signal: AbortSignal.any([signal, ending.signal]) },
    onChange: () => {
      changed.resolve(undefined);
    },
  });
  try {
    for (let isFirst = true; !isOver(); isFirst = false) {
      // This look may miss what changes from here on.
      changed = Promise.withResolvers();
      const document = await unlessAborted(collect(source), signal).catch((error: unknown) => {
        if (isOver()) return undefined;
        if (isFirst) throw error;
        onFailed?.(error);
        return undefined;
      });
      if (isOver() || (document && (await onDocument(document)))) return;
      await Promise.race([changed.promise, sleep(clock, TICK_MILLISECONDS, signal)]);
      await sleep(clock, QUIET_MILLISECONDS, signal);
    }
  } finally {
    ending.abort();
  }
}

/** How long a refusal counts, since the kind may be installed or the right granted; and Secrets, which aren't watched. */
const REMEMBERED_MILLISECONDS = 30_000;
/** How long any other failure counts. */
const TROUBLE_MILLISECONDS = 2_000;

/** Not logged in, forbidden, and a type that can't be watched. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 405]);

type Objects = () => readonly AnyObject[];

interface Asked {
  readonly objects: Promise<Objects>;
  /** By the monotonic clock. @default - as long as the watch lasts */
  until?: number;
}

interface WatchedSourceProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called when something that was listed has changed. */
  readonly onChange: () => void;
}

/**
 * Lists each scope once, and watches it from then on.
 *
 * **Guarantees.** A scope that may be listed and not watched is refused, since it would never be up to date. Once the
 * signal aborts, nothing is waited for. Secrets are listed again every half minute: a watch would deliver their values.
 */
export class WatchedSource implements Source {
  private readonly asked = new Map<string, Asked>();
  private readonly metrics: WatchMetrics;

  constructor(private readonly props: WatchedSourceProps) {
    this.metrics = new WatchMetrics(new Metrics(), props.clock);
  }

  async list(scope: Scope): Promise<readonly AnyObject[]> {
    const known = this.asked.get(scopeId(scope));
    const isValid = known && (known.until ?? Infinity) > this.props.clock.monotonic();
    const { objects } = isValid ? known : this.ask(scope);
    return (await objects)();
  }

  private ask(scope: Scope): Asked {
    const asked: Asked = { objects: this.watched(scope) };
    const expire = (milliseconds: number): void => {
      asked.until = this.props.clock.monotonic() + milliseconds;
    };
    asked.objects.then(
      () => {
        if (isSecret(scope)) expire(REMEMBERED_MILLISECONDS);
      },
      (error: unknown) => {
        const lasts = error instanceof ApiError && (REFUSALS.has(error.code) || error.code === 404);
        expire(lasts ? REMEMBERED_MILLISECONDS : TROUBLE_MILLISECONDS);
      },
    );
    this.asked.set(scopeId(scope), asked);
    return asked;
  }

  /** Lists first, since a reflector retries for ever what may not be read. */
  private async watched(scope: Scope): Promise<Objects> {
    const { api, clock, signal, onChange } = this.props;
    const listed = await listAll(api, scope, signal);
    if (isSecret(scope)) return () => listed;
    const { name } = scope;
    const store = new Store({
      ...{ keep: (object) => object, readOnly: true, selective: scope.selector !== undefined },
      ...(name !== undefined && { name }),
    });
    const refused = new AbortController();
    const stop = AbortSignal.any([signal, refused.signal]);
    const reflector: Reflector = new Reflector({
      ...{ api, scope, store, clock, random: Math.random, log: silentLogger },
      metrics: this.metrics.named(scopeId(scope)),
      onFailed: (error) => {
        if (!(error instanceof ApiError) || !REFUSALS.has(error.code)) return;
        refused.abort(error);
        if (!reflector.synced) return;
        // The next look finds out whether it may still be read.
        this.asked.delete(scopeId(scope));
        onChange();
      },
    });
    void reflector.run(stop);
    await unlessAborted(reflector.firstSync, stop);
    store.onChange(onChange);
    return () => store.objects();
  }
}
