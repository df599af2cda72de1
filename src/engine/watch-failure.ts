import { messageOf, OperatorError } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Scope } from './api.js';
import { ApiError, askedDelay, GRANT } from './api-error.js';
import { backoffDelay } from './backoff.js';
import { SILENCE_LIMIT_MILLISECONDS } from './silence-limit.js';

/** An API server in trouble is asked for the same watch again for this long; then its version is given up. */
const TROUBLE_MILLISECONDS = 30_000;
/** Trouble after this much time without any is new trouble. */
const TROUBLE_OVER_MILLISECONDS = 60_000;

/** Nothing came for longer than the server is ever silent. */
export class SilentWatch extends Error {
  constructor(
    readonly events: number,
    cause: unknown,
  ) {
    super(`Nothing heard for ${String(SILENCE_LIMIT_MILLISECONDS / 1000)} s`, { cause });
  }
}

/** The server refuses a watch, and never comes to the end of saying why. */
export class UnfinishedRefusal extends Error {
  constructor(cause: unknown) {
    super('The watch was refused, and the reason never ended', { cause });
  }
}

/** What has come is not what a watch delivers, or can't be taken in: what it told has to be learned by a list. */
export class UnusableEvent extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

/** The stream of a list ended, or fell silent, without the bookmark that closes it. */
export class UnfinishedList extends Error {
  constructor(cause?: unknown) {
    super('The watch ended within the list', { cause });
  }
}

/** The server that has answered lags behind the one before, or was restored from a backup. */
export class OutdatedList extends Error {
  constructor(resourceVersion: string) {
    super(`The list (${resourceVersion}) is older than the watch; it counts if that lasts for two minutes`);
  }
}

/** The connection is fine, and of no use: some proxy closes at once. */
export class ShortWatch extends Error {
  constructor() {
    super('The watch ended at once');
  }
}

/** What somebody can do about it, for the log. */
export function hintFor(error: Error): string | undefined {
  if (!(error instanceof ApiError)) {
    // Errors of the network have a code; those of a kind's own functions don't.
    const isUnanswered = error instanceof OperatorError && error.reason === 'Unreachable';
    return isUnanswered || error instanceof SilentWatch || 'code' in error
      ? 'Check that the API server is reachable'
      : undefined;
  }
  if (error.kindNotServed) return 'Install the CRD of this kind';
  if (error.code === 401) return 'The credentials are not accepted: check the kubeconfig';
  return error.code === 403 ? `It may not be listed and watched; ${GRANT}` : undefined;
}

/** The server doesn't know the request, or has the feature turned off. */
export function refusesRequest(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 400 || error.code === 422);
}

/** The API server has no such kind. Unlike a missing object, that is answered without a reason. */
export function kindIsMissing(error: unknown): boolean {
  return error instanceof ApiError && error.kindNotServed;
}

/** What is known of versions may come from before a backup was restored, so equal ones may be different objects. */
export function doubtsVersions(error: Error): boolean {
  return (error instanceof SilentWatch && error.events === 0) || isVersionTooLarge(error);
}

/**
 * Decides whether a version that was reached is still one to go on from. The table is client-go's:
 *
 * | failure | consequence |
 * | --- | --- |
 * | the connection broke, 429, 503 | the same version again, since listing would make an overload worse |
 * | 500, 502, 504 | the same version again for half a minute, then a list |
 * | silence | the same version again, where anything had come; else a list |
 * | a list that is older than what was delivered | what was to be done before it |
 * | 410, version too large, anything else | a list |
 * @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go
 */
export class WatchFailures {
  private troubleSince: number | undefined;
  private troubleAt = -Infinity;

  mustRelist(error: Error, now: number): boolean {
    if (error instanceof UnusableEvent) return true;
    // A line that is no event.
    if (error instanceof SyntaxError || error instanceof TypeError) return true;
    // A version of the future, from before a backup was restored, is accepted and then nothing ever comes.
    if (error instanceof SilentWatch) return error.events === 0;
    if (!(error instanceof ApiError)) return false;
    if (error.code === 429 || error.code === 503) return false;
    return isVersionTooLarge(error) || !isServersTrouble(error) || this.lastsTooLong(now);
  }

  private lastsTooLong(now: number): boolean {
    if (now - this.troubleAt >= TROUBLE_OVER_MILLISECONDS) this.troubleSince = undefined;
    this.troubleAt = now;
    this.troubleSince ??= now;
    return now - this.troubleSince >= TROUBLE_MILLISECONDS;
  }
}

function isServersTrouble({ code, expired }: ApiError): boolean {
  return !expired && (code === 500 || code === 502 || code === 504);
}

/** An API server that is behind the one that was asked before, or whose storage was put back. */
function isVersionTooLarge(error: Error): boolean {
  const causes = error instanceof ApiError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'ResourceVersionTooLarge');
}

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
      relist ? 'watch failed, listing again' : 'watch failed, resuming from last resourceVersion',
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
