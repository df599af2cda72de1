import type { Manager } from '../engine/manager.js';
import type { Check } from '../telemetry/checks.js';
import type { HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';

export interface ServerOptions {
  /** `host:port`, or `0` for none. */
  readonly metricsBindAddress: string;
  readonly healthBindAddress: string;
}

/** Serves what probes and Prometheus ask for. */
export async function startServers(
  options: ServerOptions,
  manager: Manager,
  metrics: Metrics,
  log: Logger,
): Promise<HttpServer[]> {
  const { metricsBindAddress, healthBindAddress } = options;
  return [
    ...(metricsBindAddress === '0' ? [] : [await serveMetrics(metricsBindAddress, metrics)]),
    ...(healthBindAddress === '0' ? [] : [await serveHealth(healthBindAddress, manager, log)]),
  ];
}

async function serveMetrics(address: string, metrics: Metrics): Promise<HttpServer> {
  const [{ serveHttp }, { observeProcess }] = await Promise.all([
    import('../telemetry/http.js'),
    import('../telemetry/process-metrics.js'),
  ]);
  const route = async (): Promise<{ status: number; body: string; contentType: string }> => ({
    status: 200,
    body: await metrics.scrape(),
    contentType: metrics.registry.contentType,
  });
  const server = await serveHttp(address, '--metrics-bind-address', { '/metrics': route });
  observeProcess(metrics);
  return server;
}

async function serveHealth(address: string, manager: Manager, log: Logger): Promise<HttpServer> {
  const [{ serveHttp }, { checkedPath }, { eventLoopCheck }, { systemClock }] = await Promise.all([
    import('../telemetry/http.js'),
    import('../telemetry/checks.js'),
    import('../telemetry/event-loop-check.js'),
    import('../engine/clock.js'),
  ]);
  const live = [
    eventLoopCheck(systemClock),
    listing('leader', () => manager.staleLeadership()),
    listing('watches', () => manager.silentWatches()),
  ];
  const missing = (): string[] => manager.notReady().map(({ what, why }) => `${what}: ${why}`);
  return serveHttp(address, '--health-bind-address', {
    ...checkedPath({ path: '/healthz', checks: live, log }),
    ...checkedPath({ path: '/readyz', checks: [listing('caches', missing)], log }),
  });
}

/** A check that passes while there is nothing to list. */
function listing(name: string, reasons: () => readonly string[]): Check {
  return { name, check: () => reasons().join('; ') || undefined };
}
