import type { Transport } from '../client/transport.js';
import type { ClusterClient } from '../client/cluster.js';
import type { ClusterOptions } from './options.js';
import { operatorImage, packageVersion } from './package.js';

interface VersionOptions extends ClusterOptions {
  readonly client?: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

/** `reconstruct version`: prints the version of this command, and of the API server. */
export async function runVersion({ client, output, ...options }: VersionOptions): Promise<void> {
  const [{ print }, { writeYaml }] = await Promise.all([import('./output.js'), import('../values/yaml.js')]);
  const clientVersion = { version: packageVersion(), image: operatorImage(), node: process.versions.node };
  const printAll = async (all: object): Promise<void> =>
    print(output === 'yaml' ? writeYaml(all) : `${JSON.stringify(all, undefined, 2)}\n`);
  // It is known in any case.
  if (output === 'text') await print(`Client version: ${clientVersion.version}\n`);
  else if (client) await printAll({ clientVersion });
  if (client) return;
  const { versionOf, withCluster } = await import('./cluster.js');
  const use = async (cluster: ClusterClient, { transport }: { transport: Transport }): Promise<void> => {
    const serverVersion = await versionOf(cluster, transport.host);
    const { major, minor, gitVersion = `${major}.${minor}` } = serverVersion;
    if (output === 'text') await print(`Server version: ${gitVersion}\n`);
    else await printAll({ clientVersion, serverVersion });
  };
  // Of whatever version.
  await withCluster(options, use, () => Promise.resolve());
}
