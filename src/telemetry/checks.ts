import { messageOf } from '../contract/error.js';
import type { Answer, Routes } from './http.js';
import type { Logger } from './logger.js';

/** A condition of a healthy or ready process. */
export interface Check {
  /** In lower case with dashes: it becomes part of a path. */
  readonly name: string;
  /** Returns what is wrong, or undefined. Called at every probe, so it must be cheap. */
  readonly check: () => string | undefined;
}

/** Passes always. Without it, an endpoint whose other checks are all excluded would check nothing. */
const ping: Check = { name: 'ping', check: () => undefined };

/**
 * Returns routes for checks, in the form of API server and controller-runtime: 200 and `ok` while all of them
 * pass, else 503 and a line for each.
 *
 * - `/healthz/ping` asks a single one.
 * - `/healthz?verbose` lists them all, with the reasons.
 * - `/healthz?exclude=ping` leaves one out; may be repeated.
 *
 * **Guarantees.** Reasons name objects and repeat what the API server has said, so only the verbose answer has them. The
 * log has each of them once, when it begins.
 * @param path begins with a slash, as in `/healthz`
 */
export function checkedPath(path: string, checks: readonly Check[], log: Logger): Routes {
  const logged = [ping, ...checks].map((check) => loggedAtChange(check, path, log));
  const routes: Record<string, Routes[string]> = { [path]: (query) => report(path, logged, query) };
  for (const check of logged)
    routes[`${path}/${check.name}`] = (query) => report(`${path}/${check.name}`, [check], query);
  return routes;
}

function report(path: string, checks: readonly Check[], query: URLSearchParams): Answer {
  const excluded = new Set(query.getAll('exclude'));
  const verbose = query.has('verbose');
  const lines: string[] = [];
  let failed = false;
  for (const { name, check } of checks) {
    const reason = check();
    const isExcluded = excluded.delete(name);
    if (isExcluded || reason === undefined) {
      lines.push(`[+]${name} ${isExcluded ? 'excluded: ' : ''}ok`);
      continue;
    }
    failed = true;
    lines.push(`[-]${name} failed: ${verbose ? reason : 'reason withheld, see ?verbose'}`);
  }
  if (!failed && !verbose) return { status: 200, body: 'ok\n' };
  if (excluded.size > 0) lines.push(`warn: nothing to exclude by the name of ${[...excluded].join(', ')}`);
  lines.push(`${path.slice(1)} check ${failed ? 'failed' : 'passed'}`);
  return { status: failed ? 503 : 200, body: `${lines.join('\n')}\n` };
}

/** Probes come every few seconds, so only a change is logged. A check that throws fails. */
function loggedAtChange({ name, check }: Check, path: string, log: Logger): Check {
  let failing = false;
  return {
    name,
    check: () => {
      const reason = reasonOf(check);
      if (reason !== undefined && !failing) log.info({ path, check: name, reason }, 'check failed');
      if (reason === undefined && failing) log.info({ path, check: name }, 'check passed again');
      failing = reason !== undefined;
      return reason;
    },
  };
}

function reasonOf(check: Check['check']): string | undefined {
  try {
    return check();
  } catch (error) {
    return messageOf(error);
  }
}
