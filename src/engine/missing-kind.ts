import type { Logger } from '../telemetry/logger.js';
import type { Scope } from './api.js';
import { backoffDelay } from './backoff.js';
import type { Clock } from './clock.js';
import type { Store } from './store.js';
import { hintFor } from './watch-failure.js';

/** Half a minute at most, jitter included, so that a kind is in use soon after it was installed. */
const BACKOFF = { initialMilliseconds: 800, maxMilliseconds: 15_000, jitter: 1 };

/**
 * An API server that starts answers 503 and 429 for kinds that it doesn't serve yet, never 404. But whatever stands
 * in front of it may answer 404 for a moment, or one of several servers may be older than the others.
 */
const CERTAIN_AFTER_MILLISECONDS = 10_000;

const OPTIONAL_IS_MISSING = 'The kind is not installed; it is not needed, and will be used once it is there';

export interface MissingKindProps {
  readonly scope: Scope;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly optional?: boolean;
}

/**
 * What becomes of a watch whose kind the API server doesn't serve: it isn't installed yet, or was removed.
 *
 * **Guarantees.** It is looked for again, for ever. Once it was said for ten seconds, and nothing else in between, that
 * there is no such kind, its objects are gone: the store is emptied, and listeners are told.
 */
export class MissingKind {
  private tries = 0;
  private since: number | undefined;
  /** A list has filled the store since it was emptied. */
  private filled = false;

  constructor(private readonly props: MissingKindProps) {}

  /** No list has filled the store, or it was emptied. */
  get knowsNothing(): boolean {
    return !this.filled;
  }

  /** Returns after how many milliseconds to look again. */
  notServed(error: Error): number {
    const { clock, random } = this.props;
    this.since ??= clock.monotonic();
    const delay = backoffDelay(BACKOFF, this.tries, random);
    this.tell(error, delay);
    this.tries++;
    // That a kind has gone is believed less easily than that it has never been there.
    if (!this.filled) this.setServed(false);
    else if (clock.monotonic() - this.since >= CERTAIN_AFTER_MILLISECONDS) this.empty();
    return delay;
  }

  /** It couldn't be asked. */
  unknown(): void {
    this.since = undefined;
  }

  /** A complete list has come. */
  served(): void {
    if (this.tries > 0) this.props.log.info(this.fields(), 'The kind is served now');
    this.tries = 0;
    this.since = undefined;
    this.filled = true;
    this.setServed(true);
  }

  private empty(): void {
    const { store, scope, log } = this.props;
    this.filled = false;
    this.setServed(false);
    log.warn({ ...this.fields(), objects: store.size }, 'The kind has been removed, and its objects with it');
    // Nothing that was known counts any more, as after a list that is older than everything: versions included.
    store.replace([], '0', scope.namespace);
  }

  private setServed(served: boolean): void {
    const { store, scope } = this.props;
    store.setServed(scope.namespace, served);
  }

  /** The first time is news. */
  private tell(error: Error, delay: number): void {
    const { log, optional } = this.props;
    const news = optional && !this.filled ? 'info' : 'warn';
    log[this.tries === 0 ? news : 'debug'](
      {
        ...this.fields(),
        error: error.message,
        ...(news === 'warn' && { hint: hintFor(error) }),
        retryMilliseconds: Math.round(delay),
      },
      news === 'info' ? OPTIONAL_IS_MISSING : 'The kind is not served, will look for it again',
    );
  }

  private fields(): object {
    const { scope } = this.props;
    return { resource: scope.type.plural, watchNamespace: scope.namespace };
  }
}
