/** What Prometheus has collected: one value every 30 s, in the notation of promtool. */
export type Series = Readonly<Record<string, string>>;

/** Whether an alert fires, after so long. */
export interface AlertCase {
  readonly alert: string;
  readonly fires: boolean;
  readonly why: string;
  readonly at: string;
  readonly series: Series;
}

type Labels = Readonly<Record<string, string>>;

/** A series of the operator, of the Pod `a` unless another one is named. */
function of(metric: string, labels: Labels = {}): string {
  const all = { job: 'reconstruct-metrics', namespace: 'reconstruct-system', pod: 'a', ...labels };
  const text = Object.entries(all).map(([name, value]) => `${name}="${value}"`);
  return `${metric}{${text.join(',')}}`;
}

const AN_HOUR = '1x120';
const LEADS = { [of('leader_election_master_status')]: AN_HOUR };
const STANDS_BY = { [of('leader_election_master_status')]: '0x120' };

const resources = (state: string, reason: string, type = 'AppService.kosmos.io'): string =>
  of('reconstruct_custom_resources', { type, state, reason });
const STREAM = 'StreamIngress.nginx-stream.jeffthecoder.xyz';
const WATCHER = 'JobWatcher.batch.my.github.com';
const unreachable = of('reconstruct_server_unreachable');
const answered = (code: string): string => of('rest_client_requests_total', { code });
const widget = { controller: 'widget' };
const work = (errors: string, terminal: string, all: string): Series => ({
  [of('controller_runtime_reconcile_errors_total', widget)]: errors,
  [of('controller_runtime_terminal_reconcile_errors_total', widget)]: terminal,
  [of('controller_runtime_reconcile_total', { ...widget, result: 'error' })]: errors,
  [of('controller_runtime_reconcile_total', { ...widget, result: 'success' })]: all,
});
const oldest = of('reconstruct_queue_oldest_seconds', { ...widget, name: 'widget' });
const silence = of('reconstruct_watch_silence_seconds', { name: 'deployments.apps' });
const lag = (le: string): string => of('reconstruct_jobs_deletion_lag_seconds_bucket', { le });
const jobs = (deleted: string): Series => ({
  [of('reconstruct_jobs_pending')]: '5x120',
  [of('reconstruct_jobs_deletion_lag_seconds_count')]: deleted,
});

function about(
  alert: string,
  at: string,
  fires: Record<string, Series>,
  quiet: Record<string, Series>,
): AlertCase[] {
  const cases = (of: Record<string, Series>, does: boolean): AlertCase[] =>
    Object.entries(of).map(([why, series]) => ({ alert, fires: does, why, at, series }));
  return [...cases(fires, true), ...cases(quiet, false)];
}

export const alertCases: readonly AlertCase[] = [
  ...about(
    'ReconstructDown',
    '15m',
    {
      'no Pod answers': { [of('up')]: '0x60' },
      'there is none': { [of('up', { job: 'other' })]: '1x60' },
      'the last one is gone after it failed': { [of('up')]: '1x10 0x6 stale' },
    },
    {
      'another Pod answers': { [of('up')]: '0x60', [of('up', { pod: 'b' })]: '1x60' },
      'it was back soon': { [of('up')]: '1x10 0x6 1x60' },
    },
  ),
  ...about(
    'ReconstructNoLeader',
    '12m',
    {
      'none leads': {
        [of('leader_election_master_status')]: '1x10 0x60',
        [of('leader_election_master_status', { pod: 'b' })]: '0x60',
      },
    },
    {
      'another one leads': {
        [of('leader_election_master_status')]: '1x10 0x60',
        [of('leader_election_master_status', { pod: 'b' })]: '0x11 1x60',
      },
      'an operator elsewhere has none': {
        [of('leader_election_master_status', { namespace: 'other' })]: '0x60',
        ...LEADS,
      },
    },
  ),
  ...about(
    'ReconstructLeaderFlapping',
    '1h',
    { 'five times': { [of('reconstruct_leadership_losses_total')]: '0x20 1x20 2x20 3x20 4x20 5x20' } },
    { once: { [of('reconstruct_leadership_losses_total')]: '0x60 1x60' } },
  ),
  ...about(
    'ReconstructMemoryNearLimit',
    '15m',
    { 'it stays there': { [of('process_resident_memory_bytes')]: '500000000x60' } },
    {
      'it is far away': { [of('process_resident_memory_bytes')]: '400000000x60' },
      'a peak': { [of('process_resident_memory_bytes')]: '100000000x10 500000000x10 100000000x60' },
    },
  ),
  ...about(
    'ReconstructEventLoopLag',
    '10m',
    { 'for long': { [of('reconstruct_event_loop_lag_seconds', { quantile: 'max' })]: '3x60' } },
    {
      'one pause': { [of('reconstruct_event_loop_lag_seconds', { quantile: 'max' })]: '0x15 9 0x60' },
      'the mean is no maximum': { [of('reconstruct_event_loop_lag_seconds', { quantile: 'mean' })]: '3x60' },
    },
  ),
  ...about(
    'ReconstructPolicyRefused',
    '10m',
    {
      'by one replica': {
        [of('reconstruct_policy_refused')]: '1x60',
        [of('reconstruct_policy_refused', { pod: 'b' })]: '0x60',
      },
    },
    { 'by none': { [of('reconstruct_policy_refused')]: '0x60' } },
  ),
  ...about(
    'ReconstructPolicyNeedsRestart',
    '20m',
    { 'it waits': { [of('reconstruct_policy_needs_restart')]: '1x60' } },
    { 'it was restarted': { [of('reconstruct_policy_needs_restart')]: '1x20 0x60' } },
  ),
  ...about(
    'ReconstructApiServerUnreachable',
    '10m',
    { 'for long': { [unreachable]: '1x60' } },
    {
      'for a moment': { [unreachable]: '0x12 1x6 0x60' },
      'it is overloaded': { [answered('429')]: '0+60x60' },
    },
  ),
  ...about(
    'ReconstructApiServerOverloaded',
    '40m',
    { 'a third of all requests': { [answered('200')]: '0+60x60', [answered('429')]: '0+30x60' } },
    { 'now and then': { [answered('200')]: '0+60x60', [answered('503')]: '0+5x60' } },
  ),
  ...about(
    'ReconstructWatchSilent',
    '6m',
    { 'nothing comes': { [silence]: '0+30x60', [unreachable]: '0x60' } },
    {
      'bookmarks come': { [silence]: '60x60' },
      'there is no watch': { [silence]: '-1x60' },
      'the API server is out of reach': { [silence]: '0+30x60', [unreachable]: '1x60' },
    },
  ),
  ...about(
    'ReconstructReconcileErrors',
    '40m',
    { 'most fail': work('0+3x120', '0x120', '0+1x120') },
    {
      'for good, by users': work('0+3x120', '0+3x120', '0+1x120'),
      'few of many': work('0+1x120', '0x120', '0+300x120'),
      'a single one, now and then': work('0 0 0 0 0 0 0 0 0 0 1x120', '0x120', '0x120'),
    },
  ),
  ...about(
    'ReconstructPanics',
    '12m',
    { once: { [of('controller_runtime_reconcile_panics_total', widget)]: '0x15 1x30' } },
    { never: { [of('controller_runtime_reconcile_panics_total', widget)]: '0x60' } },
  ),
  ...about(
    'ReconstructQueueBacklog',
    '20m',
    { 'of the leader': { [oldest]: '0+30x60', ...LEADS } },
    {
      'of a standby, which holds everything': { [oldest]: '0+30x60', ...STANDS_BY },
      'the API server is out of reach': { [oldest]: '0+30x60', ...LEADS, [unreachable]: '1x60' },
      'it is worked off': { [oldest]: '0+30x15 0x60', ...LEADS },
    },
  ),
  ...about(
    'ReconstructDrift',
    '40m',
    {
      'six in half a minute': { [of('reconstruct_drift_total', { ...widget, manager: 'rival' })]: '0+6x120' },
    },
    {
      'one in half a minute': { [of('reconstruct_drift_total', { ...widget, manager: 'rival' })]: '0+1x120' },
    },
  ),
  ...about(
    'ReconstructFieldContested',
    '12m',
    { 'it goes on': { [resources('failing', 'FieldContested')]: '1x60' } },
    { 'it has ended': { [resources('failing', 'FieldContested')]: '1x10 stale' } },
  ),
  ...about(
    'ReconstructOwnershipConflict',
    '20m',
    {
      'somebody else has the object': { [resources('stalled', 'OwnershipConflict')]: '1x60' },
      'somebody else has the node port': { [resources('stalled', 'NodePortConflict')]: '1x60' },
    },
    { 'it stalls for another reason': { [resources('stalled', 'Invalid')]: '1x60' } },
  ),
  ...about(
    'ReconstructStreamPortConflict',
    '15m',
    {
      'an older one has the port': { [resources('stalled', 'PortConflict', STREAM)]: '2x60' },
      'another manager has the port': { [resources('stalled', 'PortUnavailable', STREAM)]: '1x60' },
    },
    { 'nobody is ready': { [resources('failing', 'NoReadyEndpoints', STREAM)]: '1x60' } },
  ),
  ...about(
    'ReconstructStreamNoEndpoints',
    '15m',
    { 'nobody is ready': { [resources('failing', 'NoReadyEndpoints', STREAM)]: '1x60' } },
    {
      'somebody is': { [resources('ready', 'Programmed', STREAM)]: '1x60' },
      'a rollout': { [resources('failing', 'NoReadyEndpoints', STREAM)]: '1x4 stale' },
    },
  ),
  ...about(
    'ReconstructResourceNotReady',
    '35m',
    {
      'it stalls': { [resources('stalled', 'Invalid')]: '1x90' },
      'it fails': { [resources('failing', 'ImagePullBackOff')]: '1x90' },
    },
    {
      'another alert tells': { [resources('stalled', 'OwnershipConflict')]: '1x90' },
      'it is under way': { [resources('progressing', 'RollingOut')]: '1x90' },
      'it is ready': { [resources('ready', 'Available')]: '1x90' },
    },
  ),
  ...about(
    'ReconstructResourceUnseen',
    '15m',
    { 'nobody looks after it': { [resources('unseen', '')]: '1x60' } },
    {
      'it was seen': {
        [resources('unseen', '')]: '1x2 stale',
        [resources('ready', 'Available')]: '_x2 1x60',
      },
    },
  ),
  ...about(
    'ReconstructJobDeletionBlocked',
    '10m',
    { 'the limits hold all back': { [resources('stalled', 'BlastRadiusExceeded', WATCHER)]: '1x60' } },
    { 'all is well': { [resources('ready', 'Watching', WATCHER)]: '1x60' } },
  ),
  ...about(
    'ReconstructJobDeletionLag',
    '40m',
    { 'most are late': { [lag('300')]: '0x120', [lag('900')]: '0+1x120', [lag('+Inf')]: '0+1x120' } },
    {
      'they are in time': { [lag('300')]: '0+1x120', [lag('900')]: '0+1x120', [lag('+Inf')]: '0+1x120' },
      'none was due': { [lag('300')]: '0x120', [lag('900')]: '0x120', [lag('+Inf')]: '0x120' },
    },
  ),
  ...about(
    'ReconstructJobsPending',
    '40m',
    { 'none is deleted': { ...jobs('7x120'), ...LEADS } },
    {
      'they are deleted one by one': { ...jobs('0+1x120'), ...LEADS },
      'of a process that leads no longer': { ...jobs('7x120'), ...STANDS_BY },
    },
  ),
  ...about(
    'ReconstructJobDeletionErrors',
    '20m',
    {
      'for the first time': {
        [of('reconstruct_jobs_delete_errors_total', { reason: 'Forbidden' })]: '_x20 1x60',
      },
      'once more': { [of('reconstruct_jobs_delete_errors_total', { reason: 'Forbidden' })]: '1x20 2x60' },
    },
    { 'it passes': { [of('reconstruct_jobs_delete_errors_total', { reason: 'Conflict' })]: '0x20 1x60' } },
  ),
];
