import type { Query } from './query.js';

/**
 * - `critical`: the operator doesn't work, or soon won't; somebody has to look now.
 * - `warning`: it works, but not as it should; somebody has to look today.
 * - `info`: something that its users have to put right.
 */
export type Severity = 'critical' | 'warning' | 'info';

/** A condition that somebody wants to be told of; each has a page in docs/runbooks, which gives the reasons. */
export interface Alert {
  /** Also that of its page. */
  readonly name: string;
  readonly severity: Severity;
  /** How long it has to hold, as Prometheus writes durations. @default - not at all */
  readonly for?: string;
  /** PromQL. */
  readonly expr: (query: Query) => string;
  /** One line. */
  readonly summary: string;
  /** What is seen, with the values of the alert's labels. */
  readonly description: string;
}

/** One series for each of these, whichever replica tells. */
export function maxBy(labels: readonly string[], expr: string): string {
  return `max by (${['namespace', 'job', ...labels].join(', ')}) (${expr})`;
}

export function sumBy(labels: readonly string[], expr: string): string {
  return `sum by (${['namespace', 'job', ...labels].join(', ')}) (${expr})`;
}

/** Only of the replica that leads: what one has measured that leads no longer is old. */
export function whereLeading(query: Query, expr: string): string {
  return `${expr} and on (namespace, pod) ${query('leader_election_master_status')} == 1`;
}
