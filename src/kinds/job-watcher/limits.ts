import type { Limits } from './spec.js';

/** How many of the due Jobs a run may delete. */
export interface Allowance {
  readonly count: number;
  /** More are due, so nothing is deleted until somebody does something. */
  readonly exceeded: boolean;
}

/** What a watcher has before it. */
export interface Backlog {
  readonly due: number;
  /** Those of them whose deletion has failed: they keep no others from it, and take what room is left. */
  readonly failed: number;
  /** All Jobs that the watcher matches, of which `maxPercent` is a share. */
  readonly matched: number;
}

/** Holds a run against its limits. A share is exact: 109 of 1000 are more than 10 %. */
export function allowance(limits: Limits | undefined, { due, failed, matched }: Backlog): Allowance {
  const most = mostOf(limits, matched);
  if (due - failed <= most) return { count: Math.min(due, most), exceeded: false };
  // Where not even one is allowed, to wait is of no use either.
  if (limits?.mode === 'Throttle' && most > 0) return { count: most, exceeded: false };
  return { count: 0, exceeded: true };
}

function mostOf({ maxPerRun = Infinity, maxPercent }: Limits = {}, matched: number): number {
  return Math.min(maxPerRun, maxPercent === undefined ? Infinity : Math.floor((matched * maxPercent) / 100));
}
