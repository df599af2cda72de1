import { existsSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import { messageOf } from '../contract/error.js';
import { suggest } from '../contract/suggest.js';
import { CliError } from './exit.js';

export interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/**
 * The cluster that the options name: a kubeconfig, or the cluster that this runs in.
 * @throws CliError with exit code 2 when the kubeconfig or the context can't be used, 3 when there is no cluster
 */
export async function loadKubeConfig({ kubeconfig, context }: ClusterOptions): Promise<KubeConfig> {
  // Loaded late: it is by far the largest dependency, and most commands do without.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  if (kubeconfig !== undefined && !existsSync(kubeconfig)) {
    throw new CliError(`${kubeconfig}: there is no such file; check the path given to --kubeconfig`, 2);
  }
  try {
    if (kubeconfig !== undefined) config.loadFromFile(kubeconfig);
    else config.loadFromDefault();
  } catch (error) {
    const file = kubeconfig ?? process.env.KUBECONFIG ?? '~/.kube/config';
    const from = kubeconfig === undefined && process.env.KUBECONFIG ? ' (from $KUBECONFIG)' : '';
    throw new CliError(`${file}${from}: can't be read as a kubeconfig: ${messageOf(error)}`, 2);
  }
  if (context !== undefined) {
    const names = config.getContexts().map(({ name }) => name);
    if (!names.includes(context)) {
      throw new CliError(
        `--context ${context}: there is no such context; there are ${names.join(', ') || 'none'}${meant(context, names)}`,
        2,
      );
    }
    config.setCurrentContext(context);
  }
  refuseLostContext(config, kubeconfig);
  if (kubeconfig !== undefined && !config.getCurrentCluster()) {
    throw new CliError(
      `${kubeconfig}: names no cluster; it isn't a kubeconfig, or has no current context`,
      2,
    );
  }
  // What client-node falls back to when it has found nothing.
  const cluster = config.getCurrentCluster();
  if (!cluster || (cluster.name === 'cluster' && cluster.server === 'http://localhost:8080')) {
    throw new CliError(
      'No cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or run inside a cluster',
      3,
    );
  }
  return config;
}

/** Contexts there are, and the current one isn't among them, or leads nowhere. */
function refuseLostContext(config: KubeConfig, kubeconfig: string | undefined): void {
  const names = config.getContexts().map(({ name }) => name);
  const current = config.getCurrentContext() as string | undefined;
  if (names.length === 0 || config.getCurrentCluster()) return;
  const file = kubeconfig ?? process.env.KUBECONFIG ?? '~/.kube/config';
  const wrong = !current
    ? 'has no current context'
    : names.includes(current)
      ? `its context ${current} names a cluster that isn't there`
      : `its current context ${current} isn't there`;
  throw new CliError(`${file}: ${wrong}; choose one with --context: ${names.join(', ')}`, 2);
}

function meant(context: string, names: readonly string[]): string {
  const near = suggest(context, names);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** What client-node calls the cluster that it finds by a Pod's service account. */
const IN_CLUSTER = 'inCluster';

/** Whether the process is a Pod's, and the cluster its own: another may be running beside it. */
export function runsInCluster(config: KubeConfig): boolean {
  return config.getCurrentCluster()?.name === IN_CLUSTER;
}

/** The Pod's namespace in a cluster, the context's outside, else `default`. */
export function currentNamespace(config: KubeConfig): string {
  // In a cluster, it is what the service account's file says.
  return config.getContextObject(config.getCurrentContext())?.namespace?.trim() || 'default';
}
