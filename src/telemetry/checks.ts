import type { Answer, Routes } from './http.js';
import type { Logger } from './logger.js';

/** One reason for a process to be well or not. */
export interface Check {
  /** In lower case with dashes: it becomes part of a path. */
  readonly name: string;
  /** What is wrong; nothing if all is well. It is called at every probe, so it must be cheap. */
  readonly check: () => string | undefined;
}

/** The process answers at all. Without it, an endpoint whose other checks are all left out would check nothing. */
export const ping: Check = { name: 'ping', check: () => undefined };

export interface CheckedPathProps {
  /** Begins with a slash, as in `/healthz`. */
  readonly path: string;
  readonly checks: readonly Check[];
  readonly log: Logger;
}

/**
 * Serves checks under a path, in the form that API server and controller-runtime use: 200 and `ok` while all of them
 * pass, else 503 and a line for each.
 *
 * - `/healthz/ping` asks a single one.
 * - `/healthz?verbose` lists them all, with the reasons.
 * - `/healthz?exclude=ping` leaves one out; may be repeated.
 *
 * **Guarantees.** Reasons name objects and repeat what the API server has said, so the terse answer withholds them. The
 * log has each of them once, when it begins.
 */
export function checkedPath({ path, checks, log }: CheckedPathProps): Routes {
  const watched = [ping, ...checks].map((check) => loggedAtChange(check, path, log));
  const routes: Record<string, Routes[string]> = { [path]: (query) => report(path, watched, query) };
  for (const check of watched)
    routes[`${path}/${check.name}`] = (query) => report(`${path}/${check.name}`, [check], query);
  return routes;
}

function report(path: string, checks: readonly Check[], query: URLSearchParams): Answer {
  const excluded = new Set(query.getAll('exclude'));
  const verbose = query.has('verbose');
  const results = checks.map(({ name, check }) => ({
    name,
    excluded: excluded.delete(name),
    reason: check(),
  }));
  const failed = results.some((result) => !result.excluded && result.reason !== undefined);
  if (!failed && !verbose) return { status: 200, body: 'ok\n' };
  const lines = results.map((result) => {
    if (result.excluded) return `[+]${result.name} excluded: ok`;
    if (result.reason === undefined) return `[+]${result.name} ok`;
    const reason = verbose ? result.reason : 'reason withheld, ?verbose tells it';
    return `[-]${result.name} failed: ${reason}`;
  });
  if (excluded.size > 0) lines.push(`warn: nothing to exclude by the name of ${[...excluded].join(', ')}`);
  lines.push(`${path.slice(1)} check ${failed ? 'failed' : 'passed'}`);
  return { status: failed ? 503 : 200, body: `${lines.join('\n')}\n` };
}

/** Probes come every few seconds: what stays as it is isn't told again. */
function loggedAtChange({ name, check }: Check, path: string, log: Logger): Check {
  let failing = false;
  return {
    name,
    check: () => {
      const reason = checkSafely(check);
      if (reason !== undefined && !failing) log.info({ path, check: name, reason }, 'Check failed');
      if (reason === undefined && failing) log.info({ path, check: name }, 'Check passed again');
      failing = reason !== undefined;
      return reason;
    },
  };
}

function checkSafely(check: Check['check']): string | undefined {
  try {
    return check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
