import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge } from 'prom-client';
import type { Metrics } from './metrics.js';

/** How often the lag is sampled: every 100 ms costs an idle process half a millisecond of CPU per second. */
const RESOLUTION_MILLISECONDS = 100;

/**
 * What every dashboard of a process expects, under the names of the Prometheus client libraries, and how late the
 * event loop is. The values are read when somebody asks; only the lag has a timer, so this is called where metrics are
 * served, and nowhere else.
 * @returns ends it
 * @see https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
 */
export function observeProcess(metrics: Metrics): () => void {
  const registers = [metrics.registry];
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });

  const cpu = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process, user and system',
    registers,
  });
  const startTime = gauge('process_start_time_seconds', 'When the process started, seconds since the epoch');
  const resident = gauge('process_resident_memory_bytes', 'Memory that the process holds');
  const heapTotal = gauge('nodejs_heap_size_total_bytes', 'Heap that V8 has reserved');
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'Heap that objects take');
  const external = gauge('nodejs_external_memory_bytes', 'Memory of buffers, outside the heap');
  startTime.set(Math.round(Date.now() / 1000 - process.uptime()));

  for (const quantile of ['mean', 'p99', 'max']) metrics.eventLoopLagSeconds.set({ quantile }, 0);
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MILLISECONDS });
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
    setLag(metrics, delay);
    delay.reset();
  });
  return () => {
    delay.disable();
  };
}

type Delays = ReturnType<typeof monitorEventLoopDelay>;

function setLag({ eventLoopLagSeconds }: Metrics, delay: Delays): void {
  // Nothing was sampled yet where two scrapes follow at once.
  if (delay.count === 0) return;
  // A sample is the time from one firing to the next, so the interval itself is no lag.
  const lag = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MILLISECONDS / 1e3);
  eventLoopLagSeconds.set({ quantile: 'mean' }, lag(delay.mean));
  eventLoopLagSeconds.set({ quantile: 'p99' }, lag(delay.percentile(99)));
  eventLoopLagSeconds.set({ quantile: 'max' }, lag(delay.max));
}
