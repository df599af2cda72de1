import { MEMORY_LIMIT_MEBIBYTES } from '../arguments.js';
import type { Query } from './prometheus.js';

/** Tried again at once; what is refused for good is counted once, and not with each look. */
const PASSING = ['Conflict', 'Unreachable', 'ServerOverloaded'];

/** Of the Jobs that JobWatchers delete. */
const jobAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructJobDeletionLag', severity: 'warning', for: '15m' },
    expr: (query) =>
      `histogram_quantile(0.9, ${sumBy(['le'], `rate(${query('reconstruct_jobs_deletion_lag_seconds_bucket')}[15m])`)}) > 300`,
    summary: 'Jobs are deleted long after they were due',
    description: 'One Job in ten is deleted {{ $value | humanizeDuration }} too late, or later.',
  },
  {
    ...{ name: 'ReconstructJobsPending', severity: 'warning' },
    expr: (query) =>
      whereLeading(query, `min_over_time(${query('reconstruct_jobs_pending')}[30m]) > 0`) +
      ` unless on (namespace, job) ${sumBy([], `increase(${query('reconstruct_jobs_deletion_lag_seconds_count')}[30m])`)} > 0`,
    summary: 'Jobs are due, and none is deleted',
    description: '{{ $value }} Jobs or more have been due for half an hour, and none was deleted.',
  },
  {
    ...{ name: 'ReconstructJobDeletionErrors', severity: 'warning' },
    expr: (query) => {
      const errors = query('reconstruct_jobs_delete_errors_total', `reason!~"${PASSING.join('|')}"`);
      // A counter that begins at 1 has not increased.
      const begun = `${sumBy(['reason'], errors)} unless ${sumBy(['reason'], `${errors} offset 1h`)}`;
      return `${sumBy(['reason'], `increase(${errors}[1h])`)} > 0 or (${begun})`;
    },
    summary: 'Jobs can not be deleted',
    description: 'Deletions of Jobs fail: {{ $labels.reason }}.',
  },
];

/** Of the process: whether it is there, leads, and has what it needs. */
const processAlerts: readonly Alert[] = [
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

const STREAM_INGRESS = 'StreamIngress.nginx-stream.jeffthecoder.xyz';
const JOB_WATCHER = 'JobWatcher.batch.my.github.com';

const CONFLICTS = ['OwnershipConflict', 'FieldConflict', 'NodePortConflict'];
const PORT_CONFLICTS = ['PortConflict', 'PortUnavailable', 'ListenerConflict', 'ProtocolConflict'];
const TOLD_ELSEWHERE = [
  ...CONFLICTS,
  ...PORT_CONFLICTS,
  'FieldContested',
  'NoReadyEndpoints',
  'BlastRadiusExceeded',
];

/** How many custom resources of a type are not ready for one of these reasons. */
function notReady(query: Query, reasons: readonly string[], type?: string): string {
  const matchers = [`state=~"stalled|failing"`, `reason=~"${reasons.join('|')}"`];
  const ofType = type === undefined ? [] : [`type="${type}"`];
  return count(query, [...ofType, ...matchers]);
}

function count(query: Query, matchers: readonly string[]): string {
  return `${maxBy(['type', 'state', 'reason'], query('reconstruct_custom_resources', ...matchers))} > 0`;
}

/** Of custom resources; which they are, labels don't tell. */
const resourceAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructFieldContested', severity: 'warning', for: '10m' },
    expr: (query) => notReady(query, ['FieldContested']),
    summary: 'Two writers fight over a field',
    description:
      'Of {{ $labels.type }}, {{ $value }} have a child that somebody else changes again and again.',
  },
  {
    ...{ name: 'ReconstructOwnershipConflict', severity: 'warning', for: '15m' },
    expr: (query) => notReady(query, CONFLICTS),
    summary: 'Something that a custom resource needs belongs to somebody else',
    description: 'Of {{ $labels.type }}, {{ $value }} stall: {{ $labels.reason }}.',
  },
  {
    ...{ name: 'ReconstructStreamPortConflict', severity: 'warning', for: '10m' },
    expr: (query) => notReady(query, PORT_CONFLICTS, STREAM_INGRESS),
    summary: 'Ports are asked for that others have',
    description: '{{ $value }} StreamIngresses have no port: {{ $labels.reason }}.',
  },
  {
    ...{ name: 'ReconstructStreamNoEndpoints', severity: 'warning', for: '10m' },
    expr: (query) => notReady(query, ['NoReadyEndpoints'], STREAM_INGRESS),
    summary: 'Open ports lead to nobody',
    description: '{{ $value }} StreamIngresses are open with nobody ready behind them.',
  },
  {
    ...{ name: 'ReconstructResourceNotReady', severity: 'info', for: '30m' },
    expr: (query) => count(query, ['state=~"stalled|failing"', `reason!~"${TOLD_ELSEWHERE.join('|')}"`]),
    summary: 'Custom resources are not ready',
    description: 'Of {{ $labels.type }}, {{ $value }} are {{ $labels.state }}: {{ $labels.reason }}.',
  },
  {
    ...{ name: 'ReconstructResourceUnseen', severity: 'warning', for: '10m' },
    expr: (query) => count(query, ['state="unseen"']),
    summary: 'Custom resources are not looked after',
    description: 'Of {{ $labels.type }}, {{ $value }} have no conditions.',
  },
  {
    ...{ name: 'ReconstructJobDeletionBlocked', severity: 'warning', for: '5m' },
    expr: (query) => notReady(query, ['BlastRadiusExceeded'], JOB_WATCHER),
    summary: 'More Jobs are due than the limits of a JobWatcher allow',
    description: '{{ $value }} JobWatchers delete nothing, since a run would exceed their limits.',
  },
];

const rate = (selected: string): string => `rate(${selected}[15m])`;

/** Between the operator and the API server. */
const serverAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructApiServerUnreachable', severity: 'critical', for: '5m' },
    expr: (query) => `${maxBy(['pod'], query('reconstruct_server_unreachable'))} == 1`,
    summary: 'The operator can not reach the API server',
    description: '{{ $labels.pod }} has no answer from the API server, and holds its requests back.',
  },
  {
    ...{ name: 'ReconstructApiServerOverloaded', severity: 'warning', for: '15m' },
    expr: (query) =>
      sumBy(['pod'], rate(query('rest_client_requests_total', 'code=~"429|503|504"'))) +
      ` / ${sumBy(['pod'], rate(query('rest_client_requests_total')))} > 0.2`,
    summary: 'The API server refuses much of what the operator sends',
    description:
      '{{ $value | humanizePercentage }} of what {{ $labels.pod }} has sent was answered with 429, 503 or 504.',
  },
  {
    ...{ name: 'ReconstructWatchSilent', severity: 'warning', for: '1m' },
    expr: (query) =>
      `${maxBy(['pod', 'name'], query('reconstruct_watch_silence_seconds'))} > 150` +
      ` unless on (namespace, pod) ${maxBy(['pod'], query('reconstruct_server_unreachable'))} == 1`,
    summary: 'A watch is silent: the operator may be blind',
    description:
      '{{ $labels.pod }} has heard nothing of {{ $labels.name }} for {{ $value | humanizeDuration }}.',
  },
];

/** Per second over a quarter of an hour, of each controller. */
function rateOf(query: Query, metric: string): string {
  return sumBy(['controller'], `rate(${query(metric)}[15m])`);
}

/** What a user has to put right is told once, and tried again now and then: that is no failure of the operator. */
function passingErrors(query: Query): string {
  const terminal = rateOf(query, 'controller_runtime_terminal_reconcile_errors_total');
  return `(${rateOf(query, 'controller_runtime_reconcile_errors_total')} - ${terminal})`;
}

/** Of the work itself. */
const workAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructReconcileErrors', severity: 'warning', for: '15m' },
    expr: (query) =>
      `${passingErrors(query)} > 0.02 and ${passingErrors(query)} / ` +
      `${rateOf(query, 'controller_runtime_reconcile_total')} > 0.1`,
    summary: 'Reconciles fail again and again',
    description: '{{ $labels.controller }}: {{ $value | printf "%.2f" }} reconciles fail each second.',
  },
  {
    ...{ name: 'ReconstructPanics', severity: 'warning' },
    expr: (query) =>
      `${sumBy(['controller'], `increase(${query('controller_runtime_reconcile_panics_total')}[15m])`)} > 0`,
    summary: 'A kind has thrown, which is a bug',
    description: 'The construct, the status function or another part of {{ $labels.controller }} has thrown.',
  },
  {
    ...{ name: 'ReconstructQueueBacklog', severity: 'warning', for: '5m' },
    expr: (query) =>
      whereLeading(query, `${query('reconstruct_queue_oldest_seconds')} > 300`) +
      ` unless on (namespace, pod) ${query('reconstruct_server_unreachable')} == 1`,
    summary: 'Work is not begun',
    description: '{{ $labels.controller }}: something has waited for {{ $value | humanizeDuration }}.',
  },
  {
    ...{ name: 'ReconstructDrift', severity: 'info', for: '15m' },
    expr: (query) =>
      `${sumBy(['controller', 'manager'], `rate(${query('reconstruct_drift_total')}[15m])`)} > 0.1`,
    summary: 'Somebody keeps changing what the operator says',
    description: '{{ $labels.manager }} has changes put right {{ $value | printf "%.2f" }} times a second.',
  },
];

/** Every alert, by the group that it is in. */
export const alertGroups: Readonly<Record<string, readonly Alert[]>> = {
  'reconstruct.process': processAlerts,
  'reconstruct.server': serverAlerts,
  'reconstruct.work': workAlerts,
  'reconstruct.resources': resourceAlerts,
  'reconstruct.jobs': jobAlerts,
};

/**
 * - `critical`: the operator doesn't work, or soon won't; somebody has to look now.
 * - `warning`: it works, but not as it should; somebody has to look today.
 * - `info`: something that its users have to put right.
 */
type Severity = 'critical' | 'warning' | 'info';

/** A condition that somebody wants to be told of; each has a page in docs/runbooks, which gives the reasons. */
interface Alert {
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
function maxBy(labels: readonly string[], expr: string): string {
  return `max by (${['namespace', 'job', ...labels].join(', ')}) (${expr})`;
}

function sumBy(labels: readonly string[], expr: string): string {
  return `sum by (${['namespace', 'job', ...labels].join(', ')}) (${expr})`;
}

/** Only of the replica that leads: what one has measured that leads no longer is old. */
function whereLeading(query: Query, expr: string): string {
  return `${expr} and on (namespace, pod) ${query('leader_election_master_status')} == 1`;
}
