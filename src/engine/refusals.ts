import type { OperatorError } from '../contract/error.js';
import { mostPause } from './api-error.js';
import type { Clock } from './clock.js';

/** How long an answer that only a change can better is taken for granted, at most. */
export const REFUSAL_MILLISECONDS = 600_000;

/** The same, for answers of these reasons. */
export function refusalMilliseconds(reasons: readonly string[]): number {
  return Math.min(REFUSAL_MILLISECONDS, mostPause(reasons));
}

/** What was refused: the intent by its hash, for whom, and the version of the object in the way, if there is one. */
export interface Refused {
  readonly hash: string;
  /** UID of the owner: a namesake of one that was refused has its own try. */
  readonly owner: string | undefined;
  /** Generation of the object in the way, or its resource version where it has none. */
  readonly version: string | undefined;
  /** Of the object in the way: whoever gives up a field in its metadata changes no generation. */
  readonly resourceVersion: string | undefined;
  /** How often a node port that was asked for has become free. */
  readonly portsFreed: number;
}

/** Bodies that the API server has refused for good, so that they aren't sent again and again. */
export class Refusals {
  /** By what was refused, the one that was remembered last at the end. */
  private readonly refusals = new Map<
    string,
    Refused & { readonly until: number; readonly error: OperatorError }
  >();

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.refusals.size;
  }

  /** The error that sending this again would bring. */
  find(id: string, asked: Refused): OperatorError | undefined {
    const refusal = this.refusals.get(id);
    if (!refusal) return undefined;
    const inTheWay = refusal.error.reason === 'FieldConflict' ? 'resourceVersion' : 'version';
    const same =
      refusal.hash === asked.hash &&
      refusal.owner === asked.owner &&
      refusal.portsFreed === asked.portsFreed &&
      refusal[inTheWay] === asked[inTheWay];
    if (same && this.clock.monotonic() < refusal.until) return refusal.error;
    this.refusals.delete(id);
    return undefined;
  }

  remember(id: string, refused: Refused, error: OperatorError): void {
    const now = this.clock.monotonic();
    for (const [other, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(other);
    }
    this.refusals.delete(id);
    const until = now + refusalMilliseconds([error.reason]);
    this.refusals.set(id, { ...refused, error, until });
  }

  forget(id: string): void {
    this.refusals.delete(id);
  }
}
