import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { goModuleFolder } from './go-module.js';

/** The folder whose go.mod pins the release. */
const PIN = join(repoFolder(), 'test/full/support/gateway-api');

const definitions = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});

const gatewayType = (kind: string, version = 'v1'): ResourceType =>
  resourceType({ apiVersion: `gateway.networking.k8s.io/${version}`, kind });

export const listenerSets = gatewayType('ListenerSet');
export const tcpRoutes = gatewayType('TCPRoute');
export const udpRoutes = gatewayType('UDPRoute');
export const referenceGrants = gatewayType('ReferenceGrant', 'v1beta1');

/** What the Gateway API serves by default, and what it serves beside while it is being tried out. */
export type Channel = 'standard' | 'experimental';

/** Makes types of the Gateway API known, as its release defines them. @param channel default: standard */
export async function installGatewayApi(
  cluster: Cluster,
  types: readonly ResourceType[],
  channel: Channel = 'standard',
): Promise<void> {
  const folder = await goModuleFolder('sigs.k8s.io/gateway-api', PIN);
  for (const type of types) {
    const file = join(folder, 'config/crd', channel, `gateway.networking.k8s.io_${type.plural}.yaml`);
    const { status: _, ...crd } = parse(await readFile(file, 'utf8')) as AnyObject;
    await cluster.apply(definitions, crd, 'test');
  }
  for (const type of types) await eventually(() => cluster.list(type, 'default'));
}
