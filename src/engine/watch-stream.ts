import { ApiError } from './api-error.js';
import type { Api, Scope } from './api.js';
import type { Clock } from './clock.js';
import { SilenceLimit } from './silence-limit.js';
import { watchEvents } from './watch-events.js';
import type { ObjectEvent, WatchEvent } from './watch-events.js';
import { OutdatedList, ShortWatch, SilentWatch, UnfinishedRefusal, UnusableEvent } from './watch-failure.js';

/** A watch that ends sooner than this without an event has failed, whatever it says. */
const SHORT_WATCH_MILLISECONDS = 1_000;

/** Where to watch, and what to do with what comes. */
export interface WatchStreamProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly query: Readonly<Record<string, string>>;
  /** The server has accepted the request. */
  opened(): void;
  handle(event: ObjectEvent): void;
}

/** One watch, from the request to its end. */
export class WatchStream {
  private silence: SilenceLimit | undefined;

  constructor(private readonly props: WatchStreamProps) {}

  /** When a byte came last, if any has, by the monotonic clock. */
  get heardAt(): number | undefined {
    return this.silence?.heardAt;
  }

  /**
   * Resolves when the server ends the watch in good order.
   * @throws when it can't be opened, breaks, falls silent, reports an error, or delivers what can't be used
   */
  async read(signal: AbortSignal): Promise<void> {
    const { api, scope, clock, query } = this.props;
    const silence = new SilenceLimit(clock, signal);
    this.silence = silence;
    let events = 0;
    let openedAt: number | undefined;
    try {
      const { chunks } = await api.watch(scope, query, silence.signal, () => {
        silence.begin();
      });
      openedAt = clock.monotonic();
      this.props.opened();
      for await (const event of watchEvents(silence.heard(chunks))) {
        this.take(event);
        events++;
      }
    } catch (error) {
      if (!silence.expired) throw error;
      // Only the silence of a watch that the server has accepted says something about its version.
      if (openedAt === undefined) throw new UnfinishedRefusal(error);
      throw new SilentWatch(events, error);
    } finally {
      silence.end();
    }
    if (events === 0 && clock.monotonic() - openedAt < SHORT_WATCH_MILLISECONDS) throw new ShortWatch();
  }

  private take(event: WatchEvent): void {
    if (event.type === 'ERROR') {
      const { object } = event;
      throw new ApiError(`Watch ${this.props.scope.type.plural}`, {
        status: object.code ?? 500,
        body: object,
      });
    }
    try {
      this.props.handle(event);
    } catch (error) {
      throw error instanceof OutdatedList ? error : new UnusableEvent(error);
    }
  }
}
