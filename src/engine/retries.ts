import type { Logger } from '../telemetry/logger.js';
import { ApiError, askedDelay } from './api-error.js';
import type { Scope } from './api.js';
import { backoffDelay } from './backoff.js';
import { hintFor, OutdatedList } from './watch-failure.js';

/** The numbers of client-go's reflector. @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go */
const BACKOFF = { initialMilliseconds: 800, maxMilliseconds: 30_000, jitter: 1 };
const HEALTHY_AFTER_MILLISECONDS = 120_000;

/**
 * A server that says when to come back is at work. One that starts says so several times in a row, and whoever counted
 * these like failures would see nothing for a minute after it is up.
 */
const ASKED_TO_WAIT = { ...BACKOFF, maxMilliseconds: 2_500 };

/** A version that was good for this long and then expires is no failure of the watch that follows. */
const WORKED_MILLISECONDS = 10_000;

/** How long to wait after a failed watch: longer each time, until one has lasted. */
export class Retries {
  private tries = 0;
  /** Since a version expired last, a watch was at work for a while. */
  private hasWorked = true;
  private last: Error | undefined;

  constructor(
    private readonly props: { readonly scope: Scope; readonly random: () => number; readonly log: Logger },
  ) {}

  /** A watch was at work for so long, however it ended. */
  lasted(milliseconds: number): void {
    if (milliseconds >= HEALTHY_AFTER_MILLISECONDS) this.tries = 0;
    if (milliseconds >= WORKED_MILLISECONDS) this.hasWorked = true;
  }

  /** Returns the delay in milliseconds. */
  failed(error: Error, relist: boolean): number {
    const { log, scope } = this.props;
    const delay = this.delay(error);
    const isNews = !(error instanceof OutdatedList && this.last instanceof OutdatedList);
    this.last = error;
    log[isNews ? 'warn' : 'debug'](
      {
        resource: scope.type.plural,
        watchNamespace: scope.namespace,
        error: error.message,
        hint: hintFor(error),
        retryMilliseconds: Math.round(delay),
      },
      relist ? 'Watch failed, will list again' : 'Watch failed, will go on',
    );
    return delay;
  }
  private delay(error: Error): number {
    const { random } = this.props;
    if (error instanceof ApiError && error.expired && this.hasWorked) {
      this.hasWorked = false;
      return backoffDelay(BACKOFF, 0, random);
    }
    const asked = askedDelay(error);
    return Math.max(backoffDelay(asked > 0 ? ASKED_TO_WAIT : BACKOFF, this.tries++, random), asked);
  }
}
