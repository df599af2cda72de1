import type { KubernetesObject } from '../../contract/object.js';
import { durationSeconds } from './duration.js';
import type { Outcome } from './finish.js';

/** On a Job: how long after its completion it is deleted; a duration of Go. */
export const COMPLETED_TTL_ANNOTATION = 'batch.my.github.com/ttl-after-completed';

/** On a Job: the same after a failure. */
export const FAILED_TTL_ANNOTATION = 'batch.my.github.com/ttl-after-failed';

/** On a Job: `"true"` keeps it, whatever a JobWatcher says. */
export const KEEP_ANNOTATION = 'batch.my.github.com/keep';

/**
 * What a Job's own annotations say. `keep`: it stays; `invalid`: one of them can't be read, so it stays too, since
 * whoever wrote it wanted something; else the seconds by outcome.
 */
export type Overrides = 'keep' | 'invalid' | Readonly<Partial<Record<Outcome, number>>>;

/** @returns undefined where there is none */
export function overridesOf({ metadata: { annotations = {} } }: KubernetesObject): Overrides | undefined {
  const keep = annotations[KEEP_ANNOTATION];
  if (keep === 'true') return 'keep';
  if (keep !== undefined && keep !== 'false') return 'invalid';
  const completed = annotations[COMPLETED_TTL_ANNOTATION];
  const failed = annotations[FAILED_TTL_ANNOTATION];
  if (completed === undefined && failed === undefined) return undefined;
  const seconds: Partial<Record<Outcome, number>> = {};
  for (const [outcome, text] of [['completed', completed] as const, ['failed', failed] as const]) {
    if (text === undefined) continue;
    const value = durationSeconds(text);
    if (value === undefined) return 'invalid';
    seconds[outcome] = value;
  }
  return seconds;
}
