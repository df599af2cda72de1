import type { Logger } from '../telemetry/logger.js';
import { askedDelay } from './api-error.js';
import type { Scope } from './api.js';
import { backoffDelay } from './backoff.js';
import { hintFor } from './watch-failure.js';

/** The numbers of client-go's reflector. @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go */
const BACKOFF = { initialMilliseconds: 800, maxMilliseconds: 30_000, jitter: 1 };
const HEALTHY_AFTER_MILLISECONDS = 120_000;

/** How long to wait after a failed watch: longer each time, until one has lasted. */
export class Retries {
  private tries = 0;

  constructor(
    private readonly props: { readonly scope: Scope; readonly random: () => number; readonly log: Logger },
  ) {}

  /** A watch was at work for so long, however it ended. */
  lasted(milliseconds: number): void {
    if (milliseconds >= HEALTHY_AFTER_MILLISECONDS) this.tries = 0;
  }

  /** Returns the delay in milliseconds. */
  failed(error: Error, relist: boolean): number {
    const { log, scope, random } = this.props;
    const delay = Math.max(backoffDelay(BACKOFF, this.tries++, random), askedDelay(error));
    log.warn(
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
}
