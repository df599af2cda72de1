import { MEMORY_LIMIT_MEBIBYTES } from '../resources.js';
import { maxBy, sumBy } from './alert.js';
import type { Alert } from './alert.js';

/** Of the process: whether it is there, leads, and has what it needs. */
export const processAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructDown', severity: 'critical', for: '5m' },
    // Of what isn't there, `absent` has the labels only where nothing is compared within it.
    expr: (query) => `${maxBy([], query('up'))} == 0 or absent(${query('up')})`,
    summary: 'No operator answers',
    description: 'No Pod of the operator in {{ $labels.namespace }} gives its metrics.',
  },
  {
    ...{ name: 'ReconstructNoLeader', severity: 'critical', for: '2m' },
    expr: (query) => `${maxBy([], query('leader_election_master_status'))} == 0`,
    summary: 'No replica leads, so nothing is done',
    description: 'Of the replicas in {{ $labels.namespace }}, none holds the lease "reconstruct".',
  },
  {
    ...{ name: 'ReconstructLeaderFlapping', severity: 'warning' },
    expr: (query) => `${sumBy([], `increase(${query('reconstruct_leadership_losses_total')}[1h])`)} > 3`,
    summary: 'The lease is lost again and again',
    description: 'The lease was lost {{ $value | printf "%.0f" }} times within an hour.',
  },
  {
    ...{ name: 'ReconstructMemoryNearLimit', severity: 'warning', for: '10m' },
    expr: (query) =>
      `${query('process_resident_memory_bytes')} > 0.9 * ${MEMORY_LIMIT_MEBIBYTES} * 1024 * 1024`,
    summary: 'The operator is about to be killed for want of memory',
    description:
      '{{ $labels.pod }} holds {{ $value | humanize1024 }}B of ' +
      `${MEMORY_LIMIT_MEBIBYTES} MiB that it may.`,
  },
  {
    ...{ name: 'ReconstructEventLoopLag', severity: 'warning', for: '5m' },
    expr: (query) => `${query('reconstruct_event_loop_lag_seconds', 'quantile="max"')} > 2`,
    summary: 'The operator lacks processor time, and may lose its lease',
    description: 'Timers of {{ $labels.pod }} fire up to {{ $value | humanizeDuration }} late.',
  },
  {
    ...{ name: 'ReconstructPolicyRefused', severity: 'warning', for: '5m' },
    expr: (query) => `${maxBy([], query('reconstruct_policy_refused'))} == 1`,
    summary: 'The policy file can not work; the one before is in force',
    description:
      'The policy of the operator in {{ $labels.namespace }} was changed into one that is refused.',
  },
  {
    ...{ name: 'ReconstructPolicyNeedsRestart', severity: 'info', for: '15m' },
    expr: (query) => `${maxBy([], query('reconstruct_policy_needs_restart'))} == 1`,
    summary: 'A part of the policy is in force only after a restart',
    description: 'The policy says something else of a kind that takes it at the start alone.',
  },
];
