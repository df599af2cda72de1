import type { Limits } from './spec.js';

/** How many of the due Jobs a run may delete. */
export interface Allowance {
  readonly count: number;
  /** More are due, so nothing is deleted until somebody does something. */
  readonly exceeded: boolean;
}

/**
 * Holds a run against its limits. A share is exact: 109 of 1000 are more than 10 %.
 * @param matched the Jobs that the watcher matches, of which `maxPercent` is a share
 */
export function allowance(limits: Limits | undefined, due: number, matched: number): Allowance {
  const most = mostOf(limits, matched);
  if (due <= most) return { count: due, exceeded: false };
  // Where not even one is allowed, to wait is of no use either.
  if (limits?.mode === 'Throttle' && most > 0) return { count: most, exceeded: false };
  return { count: 0, exceeded: true };
}

function mostOf({ maxPerRun = Infinity, maxPercent }: Limits = {}, matched: number): number {
  return Math.min(maxPerRun, maxPercent === undefined ? Infinity : Math.floor((matched * maxPercent) / 100));
}
