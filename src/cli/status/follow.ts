import type { AnyObject } from '../../contract/object.js';
import type { Api, Scope } from '../../engine/api.js';
import { ApiError } from '../../engine/api-error.js';
import { sleep, unlessAborted } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { Reflector, WatchMetrics } from '../../engine/reflector.js';
import { Store } from '../../engine/cache.js';
import { silentLogger } from '../../telemetry/logger.js';
import { Metrics } from '../../telemetry/metrics.js';
import type { StatusDocument } from './document.js';
import { idOf, isSecret, listAll } from './source.js';
import type { Source } from './source.js';

/** Changes come in bursts. */
const QUIET_MILLISECONDS = 100;
/** Ages and leases grow old although nothing happens. */
const TICK_MILLISECONDS = 5_000;

export interface FollowProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly collect: (source: Source) => Promise<StatusDocument>;
  /** Told of each new state. @returns true once it is enough */
  readonly onDocument: (document: StatusDocument) => boolean | Promise<boolean>;
  /** Told why a later look than the first fails, before it is tried again. @default - nobody is */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Collects anew whenever something has changed, by watches, until the signal aborts or it is enough.
 * @throws what `collect` throws at first; later, what can't be found out for the moment is tried again
 */
export async function follow(props: FollowProps): Promise<void> {
  const { api, clock, signal, collect, onDocument, onFailed } = props;
  const watching = new AbortController();
  const stop = (): void => {
    watching.abort();
  };
  signal.addEventListener('abort', stop);
  const isOver = (): boolean => signal.aborted;
  const bell = new Bell();
  const onChange = (): void => {
    bell.ring();
  };
  const source = new WatchedSource({ api, clock, signal: watching.signal, onChange });
  try {
    for (let isFirst = true; !isOver(); isFirst = false) {
      // What changes from here on may be missed by this look.
      bell.windUp();
      const document = await unlessAborted(collect(source), signal).catch((error: unknown) => {
        if (isOver()) return undefined;
        if (isFirst) throw error;
        onFailed?.(error);
        return undefined;
      });
      if (isOver()) return;
      if (document && (await onDocument(document))) return;
      await Promise.race([bell.rung(), sleep(clock, TICK_MILLISECONDS, signal)]);
      await sleep(clock, QUIET_MILLISECONDS, signal);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    watching.abort();
  }
}

/** Remembers that it was rung until it is wound up anew. */
class Bell {
  private isRung = false;
  private wake: (() => void) | undefined;

  windUp(): void {
    this.isRung = false;
    this.wake = undefined;
  }

  ring(): void {
    this.isRung = true;
    this.wake?.();
  }

  async rung(): Promise<void> {
    if (this.isRung) return;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
    });
  }
}

/**
 * After this, what couldn't be read is asked for again, since it may be installed or permitted by then; and so are
 * Secrets, which a watch would deliver whole.
 */
const REMEMBERED_MILLISECONDS = 30_000;
/** What is no matter of rights may pass at any time. */
const TROUBLE_MILLISECONDS = 2_000;

/** Not logged in, forbidden, and a type that can't be watched. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 405]);

interface WatchedSourceProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Something that was listed has changed. */
  readonly onChange: () => void;
}

type Objects = () => readonly AnyObject[];

interface Asked {
  readonly objects: Promise<Objects>;
  /** By the monotonic clock. @default - it holds for good */
  until?: number;
}

/**
 * Follows what is listed by watches, from the first time on.
 *
 * **Guarantees.** What has been listed once costs no further request but its watch, for as long as that lasts. What may
 * be listed and not watched is refused: it would never be told anew. Once the signal aborts, nothing is waited for.
 */
export class WatchedSource implements Source {
  private readonly asked = new Map<string, Asked>();
  private readonly metrics: WatchMetrics;

  constructor(private readonly props: WatchedSourceProps) {
    this.metrics = new WatchMetrics(new Metrics(), props.clock);
  }

  async list(scope: Scope): Promise<readonly AnyObject[]> {
    const id = idOf(scope);
    const asked = this.known(id) ?? this.ask(scope, id);
    return (await asked.objects)();
  }

  private known(id: string): Asked | undefined {
    const asked = this.asked.get(id);
    const isOver = asked?.until !== undefined && asked.until <= this.props.clock.monotonic();
    return isOver ? undefined : asked;
  }

  private ask(scope: Scope, id: string): Asked {
    const asked: Asked = { objects: this.objectsIn(scope, id) };
    const expires = (milliseconds: number): void => {
      asked.until = this.props.clock.monotonic() + milliseconds;
    };
    asked.objects.then(
      () => {
        if (isSecret(scope)) expires(REMEMBERED_MILLISECONDS);
      },
      (error: unknown) => {
        const lasts = error instanceof ApiError && (REFUSALS.has(error.code) || error.code === 404);
        expires(lasts ? REMEMBERED_MILLISECONDS : TROUBLE_MILLISECONDS);
      },
    );
    this.asked.set(id, asked);
    return asked;
  }

  /** Whether it may be read is found out by a list of its own: a reflector would try for ever. */
  private async objectsIn(scope: Scope, id: string): Promise<Objects> {
    const { api, clock, signal, onChange } = this.props;
    const listed = await listAll(api, scope, signal);
    if (isSecret(scope)) return () => listed;
    const { name } = scope;
    const store = new Store({
      ...{ keep: (object) => object, readOnly: true, selective: scope.selector !== undefined },
      ...(name !== undefined && { name }),
    });
    const watching = new AbortController();
    const stop = AbortSignal.any([signal, watching.signal]);
    const reflector: Reflector = new Reflector({
      ...{ api, scope, store, clock, random: Math.random, log: silentLogger },
      metrics: this.metrics.named(id),
      onFailed: (error) => {
        if (!(error instanceof ApiError) || !REFUSALS.has(error.code)) return;
        watching.abort(error);
        if (!reflector.synced) return;
        // It is asked for anew, which tells whether it may still be seen.
        this.asked.delete(id);
        onChange();
      },
    });
    void reflector.run(stop);
    await unlessAborted(reflector.firstSync, stop);
    store.onChange(onChange);
    return () => store.objects();
  }
}
