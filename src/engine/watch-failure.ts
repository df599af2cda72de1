import { ApiError } from './api-error.js';
import { SILENCE_LIMIT_MILLISECONDS } from './silence-limit.js';

/** Nothing came for longer than the server is ever silent. */
export class SilentWatch extends Error {
  constructor(
    readonly events: number,
    cause: unknown,
  ) {
    super(`Nothing heard for ${String(SILENCE_LIMIT_MILLISECONDS / 1000)} s`, { cause });
  }
}

/** What somebody can do about it, for the log. */
export function hintFor(error: Error): string | undefined {
  if (!(error instanceof ApiError)) {
    // Errors of the network have a code; those of a kind's own functions don't.
    return error instanceof SilentWatch || 'code' in error
      ? 'Check that the API server is reachable'
      : undefined;
  }
  if (error.kindNotServed) return 'Install the CRD of this kind';
  if (error.code === 401) return 'The credentials are not accepted: check the kubeconfig';
  return error.code === 403 ? 'Grant the right to list and watch' : undefined;
}

/** The server doesn't know the request, or has the feature turned off. */
export function refusesRequest(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 400 || error.code === 422);
}

/** An overloaded or unreachable server doesn't invalidate the version that we stand at; anything else might. */
export function mustRelist(error: Error): boolean {
  if (error instanceof SyntaxError || error instanceof TypeError) return true;
  // A version of the future, from before a backup was restored, is accepted and then nothing ever comes.
  if (error instanceof SilentWatch) return error.events === 0;
  return error instanceof ApiError && error.code !== 429 && error.code !== 503;
}
