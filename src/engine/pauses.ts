/** Between which bounds the pause after a failure is, as it grows. */
interface Pause {
  readonly leastMilliseconds: number;
  readonly mostMilliseconds: number;
}

/** For failures, by their reason, that somebody else has to mend, and that a quick second try is of no use for. */
const PAUSES: ReadonlyMap<string, Pause> = new Map([
  // Nothing can be made in a namespace that is being deleted, and what is in it will be gone soon.
  ['NamespaceTerminating', { leastMilliseconds: 60_000, mostMilliseconds: 300_000 }],
  // Nothing tells that a right was granted.
  ['Forbidden', { leastMilliseconds: 60_000, mostMilliseconds: 120_000 }],
  // The Service that has the port may be in a namespace that isn't watched.
  ['NodePortConflict', { leastMilliseconds: 0, mostMilliseconds: 300_000 }],
]);

/** It is of no use to try again sooner than this after a failure of that reason. */
export function leastPause(reason: string): number {
  return PAUSES.get(reason)?.leastMilliseconds ?? 0;
}

/** The pause after failures of these reasons grows up to this, jitter included. */
export function mostPause(reasons: readonly string[]): number {
  return Math.min(...reasons.map((reason) => PAUSES.get(reason)?.mostMilliseconds ?? Infinity));
}
