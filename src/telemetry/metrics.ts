import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** From a fast write to the longest that a reconcile may take; the buckets of controller-runtime. */
export const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Of the work queue: from what is taken at once to what has waited for a day. */
const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600, 3_600, 86_400];

/**
 * What is measured. The names are those of controller-runtime, client-go and their work queue, so that existing
 * dashboards and alerts work; what they have no name for begins with `reconstruct_`.
 *
 * No label ever holds the name of an object: the number of series stays the same, however many objects there are.
 * @see https://github.com/kubernetes-sigs/controller-runtime/tree/main/pkg/internal/controller/metrics
 */
export class Metrics {
  readonly registry = new Registry();

  readonly reconciles = this.counter(
    'controller_runtime_reconcile_total',
    'Reconciles per controller and result: success, error, requeue, requeue_after',
    ['controller', 'result'],
  );
  readonly reconcileErrors = this.counter(
    'controller_runtime_reconcile_errors_total',
    'Failed reconciles per controller',
    ['controller'],
  );
  readonly terminalReconcileErrors = this.counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciles that failed for good, until somebody changes something',
    ['controller'],
  );
  readonly reconcilePanics = this.counter(
    'controller_runtime_reconcile_panics_total',
    'Reconciles that failed by a bug: of a kind, as in its construct or its status function, or of the operator itself',
    ['controller'],
  );
  readonly reconcileTimeouts = this.counter(
    'controller_runtime_reconcile_timeouts_total',
    'Reconciles that were given up because they took too long',
    ['controller'],
  );
  readonly reconcileSeconds = this.histogram(
    'controller_runtime_reconcile_time_seconds',
    'Time of a reconcile',
    ['controller'],
    SECONDS,
  );
  readonly maxConcurrentReconciles = this.gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Workers per controller',
    ['controller'],
  );
  readonly activeWorkers = this.gauge('controller_runtime_active_workers', 'Workers that are busy', [
    'controller',
  ]);

  readonly queueDepth = this.gauge('workqueue_depth', 'Keys that wait for a worker, by lane', [
    'name',
    'controller',
    'priority',
  ]);
  readonly queueAdds = this.counter('workqueue_adds_total', 'Keys that were put into the queue', [
    'name',
    'controller',
  ]);
  readonly queueSeconds = this.histogram(
    'workqueue_queue_duration_seconds',
    'How long a key waited for a worker',
    ['name', 'controller'],
    QUEUE_SECONDS,
  );
  readonly workSeconds = this.histogram(
    'workqueue_work_duration_seconds',
    'How long a worker was busy with a key',
    ['name', 'controller'],
    QUEUE_SECONDS,
  );
  readonly unfinishedWorkSeconds = this.gauge(
    'workqueue_unfinished_work_seconds',
    'Time spent so far on the keys that are in work, summed up',
    ['name', 'controller'],
  );
  readonly oldestQueuedSeconds = this.gauge(
    'reconstruct_queue_oldest_seconds',
    'Time since the key that has waited for longest was put into the queue, held back or not; 0 while none waits',
    ['name', 'controller'],
  );
  readonly longestRunningSeconds = this.gauge(
    'workqueue_longest_running_processor_seconds',
    'Time spent so far on the key that is in work for longest',
    ['name', 'controller'],
  );
  readonly queueRetries = this.counter('workqueue_retries_total', 'Keys that were put back after a failure', [
    'name',
    'controller',
  ]);

  readonly requests = this.counter(
    'rest_client_requests_total',
    'Requests to the API server by status code and method; code <error> if there was no answer',
    ['code', 'method', 'host'],
  );
  readonly requestSeconds = this.histogram(
    'rest_client_request_duration_seconds',
    'From a request to its answer; of a watch, to its first byte',
    ['verb', 'host'],
    SECONDS,
  );
  readonly requestRetries = this.counter(
    'rest_client_request_retries_total',
    'Requests that were repeated because their connection ended under them',
    ['verb', 'host'],
  );

  readonly leader = this.gauge(
    'leader_election_master_status',
    'Whether this process leads: 1 or 0; by the name of the lease',
    ['name'],
  );
  readonly leaderSlowPath = this.counter(
    'leader_election_slowpath_total',
    'Renewals that had to read the lease first',
    ['name'],
  );

  readonly leadershipLosses = this.counter(
    'reconstruct_leadership_losses_total',
    'How often this process has lost the lease against its will; by the name of the lease',
    ['name'],
  );

  readonly reflectorLists = this.counter('reflector_lists_total', 'Complete lists, paged or streamed', [
    'name',
  ]);
  readonly reflectorListSeconds = this.histogram(
    'reflector_list_duration_seconds',
    'Time of a complete list',
    ['name'],
    SECONDS,
  );
  readonly reflectorWatches = this.counter('reflector_watches_total', 'Watches that were opened', ['name']);
  readonly reflectorShortWatches = this.counter(
    'reflector_short_watches_total',
    'Watches that ended at once, without an event',
    ['name'],
  );
  readonly reflectorLastResourceVersion = this.gauge(
    'reflector_last_resource_version',
    'The version up to which everything was delivered',
    ['name'],
  );
  readonly watchSilenceSeconds = this.gauge(
    'reconstruct_watch_silence_seconds',
    'Time since anything was heard of a watch, a bookmark included; -1 while there is none',
    ['name'],
  );

  readonly changes = this.counter(
    'reconstruct_changes_total',
    'Objects by what became of them: created, configured, corrected, recreated, unchanged, deleted, skipped, failed',
    ['controller', 'action'],
  );
  readonly applies = this.counter(
    'reconstruct_applies_total',
    'Apply requests by outcome: created, changed, unchanged, or the reason of the failure',
    ['controller', 'outcome'],
  );
  readonly drift = this.counter(
    'reconstruct_drift_total',
    'Corrections of fields of ours that somebody else had changed, by field manager; `unknown` where nobody saw who it was, `other` after 20 managers',
    ['controller', 'manager'],
  );
  readonly storeObjects = this.gauge('reconstruct_store_objects', 'Objects in memory by type', ['type']);
  readonly customResources = this.gauge(
    'reconstruct_custom_resources',
    'Custom resources by type, by state (ready, progressing, failing, stalled, deleting, or unseen without conditions), and by the reason of Ready; `other` after 50 reasons',
    ['type', 'state', 'reason'],
  );
  readonly eventLoopLagSeconds = this.gauge(
    'reconstruct_event_loop_lag_seconds',
    'How late timers fired since the last scrape: the mean, p99 and max',
    ['quantile'],
  );
  readonly fencedWrites = this.counter(
    'reconstruct_fenced_writes_total',
    'Writes that were held back because the lease was no longer certain',
    [],
  );
  readonly serverUnreachable = this.gauge(
    'reconstruct_server_unreachable',
    'Requests are held back, since the API server is out of reach: 1 or 0',
    [],
  );
  readonly events = this.counter(
    'reconstruct_events_total',
    'Events by what became of them: sent, series, dropped',
    ['outcome'],
  );

  readonly policyChanges = this.counter(
    'reconstruct_policy_changes_total',
    'Changes of the policy file while it runs, by what became of them: in_force, needs_restart, refused',
    ['outcome'],
  );
  readonly policyRefused = this.gauge(
    'reconstruct_policy_refused',
    'Whether the policy file holds none that can work, so that the one before stays in force: 1 or 0',
    [],
  );
  readonly policyNeedsRestart = this.gauge(
    'reconstruct_policy_needs_restart',
    'Whether the policy says something else of a kind that follows it only at the start: 1 or 0',
    [],
  );

  private readonly beforeScrape: (() => void)[] = [];

  /** For what is cheaper to read when somebody asks than to keep up to date. */
  onScrape(update: () => void): void {
    this.beforeScrape.push(update);
  }

  /** The text format of Prometheus. */
  async scrape(): Promise<string> {
    for (const update of this.beforeScrape) update();
    return this.registry.metrics();
  }

  /** A controller has started: its counters are there from the first scrape on, at zero. */
  controllerStarted(controller: string, workers: number): void {
    for (const result of ['success', 'error', 'requeue', 'requeue_after'])
      this.reconciles.inc({ controller, result }, 0);
    this.reconcileErrors.inc({ controller }, 0);
    this.terminalReconcileErrors.inc({ controller }, 0);
    this.reconcilePanics.inc({ controller }, 0);
    this.reconcileTimeouts.inc({ controller }, 0);
    this.maxConcurrentReconciles.set({ controller }, workers);
    this.activeWorkers.set({ controller }, 0);
  }

  private counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  private gauge<T extends string>(name: string, help: string, labelNames: readonly T[]): Gauge<T> {
    return new Gauge({ name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  private histogram<T extends string>(
    name: string,
    help: string,
    labelNames: readonly T[],
    buckets: number[],
  ): Histogram<T> {
    return new Histogram({ name, help, labelNames: [...labelNames], buckets, registers: [this.registry] });
  }
}
