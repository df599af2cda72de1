import type { Metrics } from '../telemetry/metrics.js';
import type { Clock } from './clock.js';
import { LANES } from './lanes.js';
import type { Queue, QueueObserver } from './queue.js';

/** Measures the queue of a controller under the names of client-go's work queue. */
export class QueueMetrics implements QueueObserver {
  private readonly labels: { readonly name: string; readonly controller: string };

  constructor(
    private readonly metrics: Metrics,
    controller: string,
  ) {
    this.labels = { name: controller, controller };
    metrics.queueAdds.inc(this.labels, 0);
    metrics.queueRetries.inc(this.labels, 0);
    metrics.queueSeconds.zero(this.labels);
    metrics.workSeconds.zero(this.labels);
  }

  added(): void {
    this.metrics.queueAdds.inc(this.labels);
  }

  taken(waitedMilliseconds: number): void {
    this.metrics.queueSeconds.observe(this.labels, waitedMilliseconds / 1000);
  }

  done(workedMilliseconds: number): void {
    this.metrics.workSeconds.observe(this.labels, workedMilliseconds / 1000);
  }

  retried(): void {
    this.metrics.queueRetries.inc(this.labels);
  }

  /** What is cheaper to look up than to keep up to date is looked up when somebody asks. */
  readOnScrape(queue: Queue, clock: Clock): void {
    const { metrics, labels } = this;
    metrics.onScrape(() => {
      for (const lane of LANES) metrics.queueDepth.set({ ...labels, priority: lane }, queue.depthOf(lane));
      const now = clock.monotonic();
      metrics.oldestQueuedSeconds.set(labels, (now - (queue.oldestSince ?? now)) / 1000);
      const seconds = queue.workingSince.map((since) => (now - since) / 1000);
      metrics.unfinishedWorkSeconds.set(
        labels,
        seconds.reduce((sum, each) => sum + each, 0),
      );
      metrics.longestRunningSeconds.set(labels, Math.max(0, ...seconds));
    });
  }
}
