import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The names of controller-runtime, client-go and their work queue, so that existing dashboards and alerts work. */
export class Metrics {
  readonly registry = new Registry();

  readonly reconciles = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciles per controller and result: success, error, requeue, requeue_after',
    labelNames: ['controller', 'result'] as const,
    registers: [this.registry],
  });

  readonly reconcileErrors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Failed reconciles per controller',
    labelNames: ['controller'] as const,
    registers: [this.registry],
  });

  readonly terminalReconcileErrors = new Counter({
    name: 'controller_runtime_terminal_reconcile_errors_total',
    help: 'Reconciles that failed for good, until somebody changes something',
    labelNames: ['controller'] as const,
    registers: [this.registry],
  });

  readonly reconcileSeconds = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Time of a reconcile',
    labelNames: ['controller'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [this.registry],
  });

  readonly maxConcurrentReconciles = new Gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Workers per controller',
    labelNames: ['controller'] as const,
    registers: [this.registry],
  });

  readonly activeWorkers = new Gauge({
    name: 'controller_runtime_active_workers',
    help: 'Workers that are busy',
    labelNames: ['controller'] as const,
    registers: [this.registry],
  });

  readonly queueDepth = new Gauge({
    name: 'workqueue_depth',
    help: 'Keys that wait for a worker',
    labelNames: ['name', 'controller'] as const,
    registers: [this.registry],
  });

  readonly queueRetries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Keys that were put back after a failure',
    labelNames: ['name', 'controller'] as const,
    registers: [this.registry],
  });

  readonly requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server by status code and method; code <error> if there was no answer',
    labelNames: ['code', 'method'] as const,
    registers: [this.registry],
  });

  readonly changes = new Counter({
    name: 'reconstruct_changes_total',
    help: 'Objects by what became of them: created, configured, unchanged, deleted, skipped, failed',
    labelNames: ['controller', 'action'] as const,
    registers: [this.registry],
  });

  readonly storeObjects = new Gauge({
    name: 'reconstruct_store_objects',
    help: 'Objects in memory by type',
    labelNames: ['type'] as const,
    registers: [this.registry],
  });

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
    this.maxConcurrentReconciles.set({ controller }, workers);
    this.activeWorkers.set({ controller }, 0);
  }
}
