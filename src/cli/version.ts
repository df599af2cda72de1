import { readFileSync } from 'node:fs';
import type { Transport } from '../client/transport.js';
import type { ClusterClient } from './cluster.js';
import type { ClusterOptions } from './commands.js';

interface Package {
  readonly version: string;
  /** Only in a bundle that was made for a release. */
  readonly image?: string;
}

/** The bundler puts in what is read here. */
function ownPackage(): Package {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Package;
}

export function packageVersion(): string {
  return ownPackage().version;
}

/** The image of this version: that of the release, or else the one that `npm run image:build` makes. */
export function operatorImage(): string {
  const { version, image } = ownPackage();
  return image ?? `reconstruct:${version}`;
}

interface VersionOptions extends ClusterOptions {
  readonly client?: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

/** `reconstruct version`: prints the version of this command, and of the API server. */
export async function runVersion({ client, output, ...options }: VersionOptions): Promise<void> {
  const [{ print }, { writeYaml }] = await Promise.all([
    import('./output.js'),
    import('../contract/yaml.js'),
  ]);
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
