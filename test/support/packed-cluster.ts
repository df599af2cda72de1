import type { ClusterClient } from '../../src/client/cluster.js';
import type { ClusterOptions } from '../../src/cli/options.js';
import type { Transport } from '../../src/client/transport.js';
import { run } from './commands.js';
import { bundle } from './operator.js';

/**
 * Stands for `withCluster` of the sources in the project `packed`: has the packed command ask the API server for its version,
 * which is all that it does.
 */
export async function withCluster(
  options: ClusterOptions,
  use: (cluster: ClusterClient | undefined, connection: { readonly transport: Transport }) => Promise<void>,
): Promise<void> {
  const { kubeconfig, as, asGroup = [], requestTimeout, verbose } = options;
  const args = [
    ...(kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]),
    ...(as === undefined ? [] : ['--as', as]),
    ...asGroup.flatMap((group) => ['--as-group', group]),
    ...(requestTimeout === undefined ? [] : ['--request-timeout', `${requestTimeout}ms`]),
    ...(verbose ? ['--verbose'] : []),
  ];
  const { code, stderr } = await run(process.execPath, [bundle, 'version', ...args]);
  if (code !== 0) throw Object.assign(new Error(stderr.trim()), { exitCode: code });
  process.stderr.write(stderr);
  const done = (): Promise<never> => Promise.resolve({} as never);
  await use(undefined, { transport: { host: '', request: done, stream: done, close: done } });
}
