import { maxBy } from './alert.js';
import type { Alert } from './alert.js';
import type { Query } from './query.js';

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
export const resourceAlerts: readonly Alert[] = [
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
