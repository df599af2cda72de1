import type { Manager } from '../engine/manager.js';
import type { Check } from '../telemetry/checks.js';
import type { HttpServer, Routes } from '../telemetry/http.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { CliError } from './exit.js';

export interface ServerOptions {
  /** `host:port`, or `0` for none. */
  readonly metricsBindAddress: string;
  readonly healthBindAddress: string;
}

/**
 * Serves probes and metrics.
 * @throws CliError with exit code 2 where an address can't be listened on
 */
export async function startServers(
  { metricsBindAddress, healthBindAddress }: ServerOptions,
  manager: Manager,
  metrics: Metrics,
  log: Logger,
): Promise<HttpServer[]> {
  const health = (): Promise<Routes> => healthRoutes(manager, log);
  return [
    ...(await serve(metricsBindAddress, '--metrics-bind-address', () => metricsRoutes(metrics))),
    ...(await serve(healthBindAddress, '--health-bind-address', health)),
  ];
}

async function serve(address: string, flag: string, routes: () => Promise<Routes>): Promise<HttpServer[]> {
  if (address === '0') return [];
  const { AddressError, serveHttp } = await import('../telemetry/http.js');
  try {
    return [await serveHttp(address, flag, await routes())];
  } catch (error) {
    throw error instanceof AddressError ? new CliError(error.message, 2) : error;
  }
}

async function metricsRoutes(metrics: Metrics): Promise<Routes> {
  const { observeProcess } = await import('../telemetry/metrics.js');
  observeProcess(metrics);
  const { contentType } = metrics.registry;
  return { '/metrics': async () => ({ status: 200, body: await metrics.scrape(), contentType }) };
}

async function healthRoutes(manager: Manager, log: Logger): Promise<Routes> {
  const [{ checkedPath, eventLoopCheck }, { systemClock }] = await Promise.all([
    import('../telemetry/checks.js'),
    import('../engine/clock.js'),
  ]);
  const live = [
    eventLoopCheck(systemClock),
    listing('leader', () => manager.staleLeadership()),
    listing('watches', () => manager.silentWatches()),
  ];
  const missing = (): string[] => manager.notReady().map(({ what, why }) => `${what}: ${why}`);
  return {
    ...checkedPath({ path: '/healthz', checks: live, log }),
    ...checkedPath({ path: '/readyz', checks: [listing('caches', missing)], log }),
  };
}

/** Returns a check that passes while there is nothing to list. */
function listing(name: string, reasons: () => readonly string[]): Check {
  return { name, check: () => reasons().join('; ') || undefined };
}
