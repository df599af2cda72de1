import { definitionName, definitionType } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

interface Definition {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly served: boolean }[] };
}

/** Version in which a kind is served in place of its own. */
export const OTHER_VERSION = 'v9';

/** Has the API server serve a kind in another version alone, as after its CRD was upgraded. */
export async function serveOtherVersion(cluster: Cluster, type: ResourceType): Promise<void> {
  const [own] = await versionsOf(cluster, type);
  const other = { ...own!, name: OTHER_VERSION, storage: false };
  await change(cluster, type, [{ ...own!, served: false }, other]);
  await eventually(async () => {
    const { status } = await cluster.send('GET', `/apis/${type.apiVersion}/${type.plural}`);
    if (status !== 404) throw new Error(`${type.apiVersion} is still served`);
  });
}

/** Has the API server serve a kind in its own version again, and in no other. */
export async function serveOwnVersion(cluster: Cluster, type: ResourceType): Promise<void> {
  const [own] = await versionsOf(cluster, type);
  await change(cluster, type, [{ ...own!, served: true }]);
  await eventually(() => cluster.list(type, 'default'));
}

async function versionsOf(cluster: Cluster, type: ResourceType): Promise<Definition['spec']['versions']> {
  const place = { type: definitionType, name: definitionName(type) };
  return (await cluster.get<Definition>(place)).spec.versions;
}

async function change(
  cluster: Cluster,
  type: ResourceType,
  versions: Definition['spec']['versions'],
): Promise<void> {
  await cluster.merge({ type: definitionType, name: definitionName(type) }, { spec: { versions } }, 'test');
}
