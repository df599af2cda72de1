import { Script } from 'node:vm';
import { OperatorError } from '../contract/error.js';
import type { KindConstruct } from '../contract/kind.js';

/** Maximum time of one rendering. */
export const MAX_MILLISECONDS = 5_000;

/** Maximum time of a second try, beside which a leader can still renew its lease. */
const MAX_SECOND_MILLISECONDS = 1_000;

/** Failure of a construct that took too long. */
export class StoppedRender extends OperatorError {
  constructor(owner: string, { name }: KindConstruct<never>, milliseconds: number) {
    const why = `the construct ${name} was stopped, since it took longer than ${milliseconds / 1_000} s`;
    const message = `${owner} can't be rendered: ${why}; look for an endless loop, or a child process that hangs`;
    super({ reason: 'RenderFailed', message, isBug: true });
  }
}

const BODY = Symbol.for('reconstruct.body');
const CALL_BODY = new Script("globalThis[Symbol.for('reconstruct.body')]()", { filename: 'reconstruct' });

/**
 * Returns what the body returns, or stops it: also one in an endless loop, since a thread of its own watches the time. Blocks
 * of `finally` in it aren't run then. One that has hardly computed meanwhile is tried once more: the process was suspended.
 * @throws what `late` returns
 */
export function inTime<T>(milliseconds: number, body: () => T, late: () => Error, isFirst = true): T {
  const holder = globalThis as { [BODY]?: (() => T) | undefined };
  holder[BODY] = body;
  const before = process.cpuUsage();
  try {
    return CALL_BODY.runInThisContext({ timeout: milliseconds, displayErrors: false }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    const { user, system } = process.cpuUsage(before);
    const wasSuspended = (user + system) / 1_000 < milliseconds / 2;
    if (wasSuspended && isFirst)
      return inTime(Math.min(milliseconds, MAX_SECOND_MILLISECONDS), body, late, false);
    throw late();
  } finally {
    holder[BODY] = undefined;
  }
}

/** Number of stops, in one namespace or in several in a row, after which a construct rests. */
const STOPS_BEFORE_REST = 3;
const REST_MILLISECONDS = 60_000;
const MAX_REST_MILLISECONDS = 600_000;

/** Number of stops of a construct, and the time of the last one. */
interface Count {
  readonly count: number;
  readonly at: number;
}

/** Stops of one construct, each of which holds up all other custom resources. */
export class Stops {
  /** Stops by namespace, or by UID of what has none: no user of one has the construct rest for the others. */
  private readonly counts = new Map<string, Count>();
  /** Namespaces stopped since the construct ended in time. */
  private readonly inARow = new Set<string>();
  private lastAt = 0;

  add(place: string, at: number): void {
    for (const [other, known] of this.counts)
      if (at - known.at >= 2 * MAX_REST_MILLISECONDS) this.counts.delete(other);
    // After a rest it is tried again as at first.
    if (this.inARow.size >= STOPS_BEFORE_REST) this.inARow.clear();
    this.counts.set(place, { count: (this.counts.get(place)?.count ?? 0) + 1, at });
    this.inARow.add(place);
    this.lastAt = at;
  }

  /** Notes that the construct has ended in time. */
  ended(): void {
    this.inARow.clear();
  }

  /** Returns why it rests for a namespace, if it does, and for how much longer. */
  restOf(place: string, now: number): { readonly why: string; readonly milliseconds: number } | undefined {
    const { count, at } = this.counts.get(place) ?? { count: 0, at: 0 };
    const pause = Math.min(REST_MILLISECONDS * 2 ** (count - STOPS_BEFORE_REST), MAX_REST_MILLISECONDS);
    const isOwn = count >= STOPS_BEFORE_REST && at + pause > now;
    if (!isOwn && this.inARow.size < STOPS_BEFORE_REST) return undefined;
    const [after, length, since] = isOwn
      ? [`${count} times in this namespace`, pause, at]
      : [`in ${this.inARow.size} namespaces in a row`, REST_MILLISECONDS, this.lastAt];
    const milliseconds = since + length - now;
    const why = `was stopped ${after}, and rests for ${length / 1_000} s`;
    return milliseconds > 0 ? { why, milliseconds } : undefined;
  }
}
