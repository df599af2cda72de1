import { OperatorError } from '../contract/error.js';
import { loadKubeConfig } from './cluster.js';
import type { ClusterOptions } from './cluster.js';
import type { ClusterClient } from './cluster-client.js';
import { CliError } from './exit.js';
import { packageVersion } from './version.js';

/** The oldest Kubernetes whose lists are consistent and cheap. */
export const OLDEST = '1.34';

const REMEDIES: Readonly<Record<string, string>> = {
  Unreachable: 'check --kubeconfig and --context, and that the cluster is up',
  Unauthorized: 'log in again, or choose other credentials with --kubeconfig or --context',
  Forbidden: 'use credentials that have that right, such as those of cluster-admin',
};

/**
 * Lets a command work with the cluster that its options name.
 * @throws CliError with exit code 2 for bad input, 3 when there is no cluster, or it is too old or refuses
 */
export async function withCluster(
  options: ClusterOptions,
  use: (cluster: ClusterClient) => Promise<void>,
): Promise<void> {
  const [{ ClusterClient }, { UndiciTransport }] = await Promise.all([
    import('./cluster-client.js'),
    import('../engine/undici-transport.js'),
  ]);
  const transport = new UndiciTransport(await loadKubeConfig(options), `reconstruct/${packageVersion()}`);
  try {
    const cluster = new ClusterClient(transport);
    await requireVersion(cluster);
    await use(cluster);
  } catch (error) {
    throw asCliError(error);
  } finally {
    await transport.close();
  }
}

async function requireVersion(cluster: ClusterClient): Promise<void> {
  const version = await cluster.version();
  const [found, needed] = [version, OLDEST].map((text) => text.split('.').map(Number));
  const [[major = 0, minor = 0], [atLeast = 0, andMinor = 0]] = [found ?? [], needed ?? []];
  if (major > atLeast || (major === atLeast && minor >= andMinor)) return;
  throw new CliError(`The API server is of Kubernetes ${version}; ${OLDEST} or newer is needed`, 3);
}

/** One line that says what is wrong, and what mends it. */
export function asCliError(error: unknown): unknown {
  if (!(error instanceof OperatorError)) return error;
  const [line = ''] = error.message.split('\n');
  const remedy = REMEDIES[error.reason];
  return new CliError(
    remedy === undefined ? line : `${line.replace(/[.:]$/, '')}; ${remedy}`,
    error.reason === 'InvalidInput' ? 2 : 3,
  );
}
