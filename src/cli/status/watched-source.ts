import type { AnyObject } from '../../contract/object.js';
import type { Api, Scope } from '../../engine/api.js';
import type { Clock } from '../../engine/clock.js';
import { WatchMetrics } from '../../engine/reflector-metrics.js';
import { Reflector } from '../../engine/reflector.js';
import { Store } from '../../engine/store.js';
import { silentLogger } from '../../telemetry/logger.js';
import { Metrics } from '../../telemetry/metrics.js';
import { idOf, isSecret, listAll } from './source.js';
import type { Source } from './source.js';

/**
 * After this, what couldn't be read is asked for again, since it may be installed or permitted by then; and so are
 * Secrets, which a watch would deliver whole.
 */
const REMEMBERED_MILLISECONDS = 30_000;

export interface WatchedSourceProps {
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
 * **Guarantees.** What has been listed once costs no further request but its watch, for as long as that lasts.
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
    const expires = (): void => {
      asked.until = this.props.clock.monotonic() + REMEMBERED_MILLISECONDS;
    };
    asked.objects.then(isSecret(scope) ? expires : () => undefined, expires);
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
    const reflector = new Reflector({
      ...{ api, scope, store, clock, random: Math.random, log: silentLogger },
      metrics: this.metrics.named(id),
    });
    void reflector.run(signal);
    await reflector.firstSync;
    store.onChange(onChange);
    return () => store.objects();
  }
}
