import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Metric } from '../contract/controller.js';

/** From a fast write to the longest that a reconcile may take; the buckets of controller-runtime. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Buckets of the work queue: from a key that is taken at once to one that has waited for a day. */
const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600, 3_600, 86_400];

/** Each metric as `type name{labels} help`, under the name that the code has for it; `npm run reference` documents them. */
const METRICS = {
  reconciles:
    'counter controller_runtime_reconcile_total{controller,result} Reconciles per controller and result: success, error, requeue, requeue_after',
  reconcileErrors:
    'counter controller_runtime_reconcile_errors_total{controller} Failed reconciles per controller',
  terminalReconcileErrors:
    'counter controller_runtime_terminal_reconcile_errors_total{controller} Reconciles that failed for good, until something is changed',
  reconcilePanics:
    'counter controller_runtime_reconcile_panics_total{controller} Reconciles that failed by a bug of a kind or of the operator',
  reconcileTimeouts:
    'counter controller_runtime_reconcile_timeouts_total{controller} Reconciles that were given up after their timeout',
  reconcileSeconds: 'histogram controller_runtime_reconcile_time_seconds{controller} Time of a reconcile',
  maxConcurrentReconciles:
    'gauge controller_runtime_max_concurrent_reconciles{controller} Workers per controller',
  activeWorkers: 'gauge controller_runtime_active_workers{controller} Workers that are busy',
  queueDepth: 'gauge workqueue_depth{name,controller,priority} Keys that wait for a worker, by lane',
  queueAdds: 'counter workqueue_adds_total{name,controller} Keys that were put into the queue',
  queueSeconds:
    'histogram workqueue_queue_duration_seconds{name,controller} How long a key waited for a worker',
  workSeconds:
    'histogram workqueue_work_duration_seconds{name,controller} How long a worker was busy with a key',
  unfinishedWorkSeconds:
    'gauge workqueue_unfinished_work_seconds{name,controller} Time spent so far on the keys in work, summed up',
  oldestQueuedSeconds:
    'gauge reconstruct_queue_oldest_seconds{name,controller} Age of the key that has waited for longest, held back or not; 0 while none waits',
  longestRunningSeconds:
    'gauge workqueue_longest_running_processor_seconds{name,controller} Time spent so far on the key that is in work for longest',
  queueRetries: 'counter workqueue_retries_total{name,controller} Keys that were put back after a failure',
  requests:
    'counter rest_client_requests_total{code,method,host} Requests to the API server by status code and method; code <error> if there was no answer',
  requestSeconds:
    'histogram rest_client_request_duration_seconds{verb,host} From a request to its answer; of a watch, to its first byte',
  requestRetries:
    'counter rest_client_request_retries_total{verb,host} Requests that were repeated because their connection ended',
  leader:
    'gauge leader_election_master_status{name} 1 while this process leads, else 0; by the name of the lease',
  leaderSlowPath: 'counter leader_election_slowpath_total{name} Renewals that had to read the lease first',
  leadershipLosses:
    'counter reconstruct_leadership_losses_total{name} Losses of the lease that were no handover; by the name of the lease',
  reflectorLists: 'counter reflector_lists_total{name} Complete lists, paged or streamed',
  reflectorListSeconds: 'histogram reflector_list_duration_seconds{name} Time of a complete list',
  reflectorWatches: 'counter reflector_watches_total{name} Watches that were opened',
  reflectorShortWatches:
    'counter reflector_short_watches_total{name} Watches that ended at once, without an event',
  reflectorLastResourceVersion:
    'gauge reflector_last_resource_version{name} Resource version up to which everything was delivered',
  watchSilenceSeconds:
    'gauge reconstruct_watch_silence_seconds{name} Time since the last event or bookmark of a watch; -1 while no watch of the name is open',
  changes:
    'counter reconstruct_changes_total{controller,action} Objects by action: created, configured, corrected, drifted, recreated, unchanged, deleted, skipped, failed; with --observe-only would be created and so on',
  applies:
    'counter reconstruct_applies_total{controller,outcome} Apply requests by outcome: created, changed, unchanged, or the reason of the failure',
  drift:
    'counter reconstruct_drift_total{controller,manager} Drift corrections, by the field manager that made the change; `unknown` where it was not seen, `other` after 20 managers',
  storeObjects: 'gauge reconstruct_store_objects{type} Objects in memory by type',
  customResources:
    'gauge reconstruct_custom_resources{type,state,reason} Custom resources by type, by state (ready, progressing, failing, stalled, deleting, or unseen without conditions), and by the reason of Ready; `other` after 50 reasons, beside those of alerts',
  pendingUpdates:
    'gauge reconstruct_pending_updates{type,reason} Custom resources whose update is held, by type, and by the most severe of its changes: Refused, Recreates, Deletes, RollsPods, Changes, Creates',
  rolloutStopped:
    'gauge reconstruct_rollout_stopped{controller} 1 while a rollout of --on-upgrade has stopped, and waits for a person',
  eventLoopLagSeconds:
    'gauge reconstruct_event_loop_lag_seconds{quantile} Lateness of timers since the last scrape: mean, p99 and max',
  fencedWrites:
    'counter reconstruct_fenced_writes_total Writes that were held back because the lease was no longer certain',
  serverUnreachable:
    'gauge reconstruct_server_unreachable 1 while requests are held back because the API server can not be reached',
  events: 'counter reconstruct_events_total{outcome} Events by outcome: sent, series, dropped',
  policyChanges:
    'counter reconstruct_policy_changes_total{outcome} Changes of the policy file while it runs, by outcome: in_force, needs_restart, refused',
  policyRefused:
    'gauge reconstruct_policy_refused 1 while the policy file is refused, and the policy before stays in force',
  policyNeedsRestart:
    'gauge reconstruct_policy_needs_restart 1 while a changed part of the policy needs a restart',
  settingsChanges:
    'counter reconstruct_settings_changes_total{outcome} Changes of the settings file while it runs, by outcome: in_force, refused',
  settingsRefused:
    'gauge reconstruct_settings_refused 1 while the settings file is refused, and the settings before stay in force',
} as const;

/**
 * Reasons that alerts select. They always have a series: statuses of children, and the conditions of custom resources whose
 * status users may write, could fill the bound with others.
 */
export const ALERTED_REASONS: readonly string[] = [
  ...['FieldContested', 'OwnershipConflict', 'FieldConflict', 'NodePortConflict', 'NoReadyEndpoints'],
  ...['PortConflict', 'PortUnavailable', 'ListenerConflict', 'ProtocolConflict', 'BlastRadiusExceeded'],
];

type Definitions = typeof METRICS;
type Split<Labels extends string> = Labels extends `${infer First},${infer Rest}`
  ? First | Split<Rest>
  : Labels;
type LabelsOf<Definition> = Definition extends `${string}{${infer Labels}} ${string}` ? Split<Labels> : never;
type Defined<Definition> = Definition extends `counter ${string}`
  ? Counter<LabelsOf<Definition>>
  : Definition extends `gauge ${string}`
    ? Gauge<LabelsOf<Definition>>
    : Histogram<LabelsOf<Definition>>;

/** Members that are counters by controller alone. */
type ControllerCounter = {
  [Name in keyof Definitions]: Definitions[Name] extends `counter ${string}{controller} ${string}`
    ? Name
    : never;
}[keyof Definitions];

type Registered = { readonly registry: Registry } & {
  readonly [Name in keyof Definitions]: Defined<Definitions[Name]>;
};

const Registered = class {
  readonly registry = new Registry();

  constructor() {
    for (const [member, definition] of Object.entries(METRICS)) {
      const [, type, name = '', labels = '', help = ''] =
        /^(\w+) (\w+)(?:\{(.*?)\})? (.*)$/.exec(definition) ?? [];
      const buckets = name.startsWith('workqueue_') ? QUEUE_SECONDS : SECONDS;
      const labelNames = labels.split(',').filter(Boolean);
      Object.assign(this, {
        [member]: register(this.registry, {
          type: type as Metric['type'],
          name,
          help,
          labels: labelNames,
          buckets,
        }),
      });
    }
  }
} as new () => Registered;

/**
 * Metrics of the operator. The names are those of controller-runtime, client-go and their work queue, so that existing
 * dashboards and alerts work; others begin with `reconstruct_`.
 *
 * No label ever holds the name of an object: the number of series stays the same, however many objects there are.
 * @see https://github.com/kubernetes-sigs/controller-runtime/tree/main/pkg/internal/controller/metrics
 */
export class Metrics extends Registered {
  private readonly beforeScrape: (() => void)[] = [];

  /** Registers what is cheaper to read at a scrape than to keep up to date. */
  onScrape(update: () => void): void {
    this.beforeScrape.push(update);
  }

  async scrape(): Promise<string> {
    for (const update of this.beforeScrape) update();
    return this.registry.metrics();
  }

  /** Sets the counters of a controller to zero, so that they are there from the first scrape on. */
  controllerStarted(controller: string, workers: number): void {
    for (const result of ['success', 'error', 'requeue', 'requeue_after'])
      this.reconciles.inc({ controller, result }, 0);
    const counters = Object.entries(METRICS).filter(([, line]) => /^counter \w+\{controller\} /.test(line));
    for (const [member] of counters) this[member as ControllerCounter].inc({ controller }, 0);
    this.maxConcurrentReconciles.set({ controller }, workers);
    this.activeWorkers.set({ controller }, 0);
  }
}

function register(
  registry: Registry,
  { type, name, help, labels = [], buckets = SECONDS }: Metric,
): Counter | Gauge | Histogram {
  const common = { name, help, labelNames: [...labels], registers: [registry] };
  if (type === 'counter') return new Counter(common);
  if (type === 'gauge') return new Gauge(common);
  return new Histogram({ ...common, buckets: [...buckets] });
}

export type RecordSample = (labels: Readonly<Record<string, string>>, value: number) => void;

const declarations = new WeakMap<Registry, Map<string, Metric>>();

/**
 * Registers a metric of a kind, or finds the one of an equal declaration; help doesn't count. One without labels is there
 * from the first scrape on.
 * @throws Error where another metric has that name, such as one of this project's own
 */
export function declareMetric(registry: Registry, metric: Metric): RecordSample {
  const { name } = metric;
  const declared = declarations.get(registry) ?? new Map<string, Metric>();
  declarations.set(registry, declared);
  const before = declared.get(name);
  const known = registry.getSingleMetric(name);
  if (known && !(before && shapeOf(before) === shapeOf(metric)))
    throw new Error(
      `There is another metric ${name} already: give this one another name, or declare both alike`,
    );
  declared.set(name, metric);
  const registered = known ?? register(registry, metric);
  return (labels, value) => {
    if (registered instanceof Counter) registered.inc(labels, value);
    else if (registered instanceof Gauge) registered.set(labels, value);
    else if (registered instanceof Histogram) registered.observe(labels, value);
  };
}

function shapeOf({ type, labels = [], buckets = [] }: Metric): string {
  return JSON.stringify([type, [...labels].sort(), buckets]);
}

/** Interval between samples of the lag: every 100 ms costs an idle process half a millisecond of CPU per second. */
const RESOLUTION_MILLISECONDS = 100;

/**
 * Registers the metrics of any process, under the names of the Prometheus client libraries, and the lag of the event loop.
 * Only the lag has a timer, so this is called where metrics are served, and nowhere else.
 * @see https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
 */
export function observeProcess(metrics: Metrics): void {
  const registers = [metrics.registry];
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const cpuHelp = 'CPU time of the process, user and system';
  const cpu = new Counter({ name: 'process_cpu_seconds_total', help: cpuHelp, registers });
  const startTime = gauge('process_start_time_seconds', 'When the process started, seconds since the epoch');
  const resident = gauge('process_resident_memory_bytes', 'Memory that the process holds');
  const heapTotal = gauge('nodejs_heap_size_total_bytes', 'Heap that V8 has reserved');
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'Heap that objects take');
  const external = gauge('nodejs_external_memory_bytes', 'Memory of buffers, outside the heap');
  startTime.set(Math.round(Date.now() / 1000 - process.uptime()));

  // A sample is the time from one firing to the next, so the interval itself is no lag.
  const lag = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MILLISECONDS / 1e3);
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MILLISECONDS });
  for (const quantile of ['mean', 'p99', 'max']) metrics.eventLoopLagSeconds.set({ quantile }, 0);
  delay.enable();
  metrics.onScrape(() => {
    const { user, system } = process.cpuUsage();
    cpu.reset();
    cpu.inc((user + system) / 1e6);
    const memory = process.memoryUsage();
    resident.set(memory.rss);
    heapTotal.set(memory.heapTotal);
    heapUsed.set(memory.heapUsed);
    external.set(memory.external);
    // Nothing was sampled yet where two scrapes follow at once.
    if (delay.count === 0) return;
    const lags = { mean: lag(delay.mean), p99: lag(delay.percentile(99)), max: lag(delay.max) };
    for (const [quantile, seconds] of Object.entries(lags))
      metrics.eventLoopLagSeconds.set({ quantile }, seconds);
    delay.reset();
  });
}
