import type { Kind } from '../../../src/contract/kind.js';
import { resourceType } from '../../../src/contract/resource.js';
import { makeProxy, slices } from './chart-proxy.js';
import { deployments, services } from './cluster.js';
import type { Cluster } from './cluster.js';
import { installCrd } from './crds.js';
import { exampleDocument } from './examples.js';
import { installGatewayApi, listenerSets, referenceGrants, tcpRoutes, udpRoutes } from './gateway-api.js';
import { Jobs } from './jobs.js';

const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });
const httpRoutes = resourceType({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' });

const PROXIES = 'ingress-nginx';
const PROXY = 'ingress-nginx-controller';

/** What the examples need that they don't bring along. @param namespaces those that they are in */
export async function makeSurroundings(
  cluster: Cluster,
  kinds: readonly Kind[],
  namespaces: readonly string[],
): Promise<void> {
  const gatewayTypes = [httpRoutes, listenerSets, tcpRoutes, udpRoutes, referenceGrants];
  await installGatewayApi(cluster, gatewayTypes);
  await Promise.all(kinds.map((kind) => installCrd(cluster, kind)));
  for (const name of new Set([...namespaces, PROXIES, 'infra'])) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    if (name !== 'default') await cluster.create(namespaceType, namespace);
  }
  await cluster.create(accounts, {
    ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'shop' } },
  });
  await makeIngress(cluster);
  await makeUpstream(cluster, 'shop', 'db', { name: 'sql', port: 5432 });
  await makeUpstream(cluster, 'shop', 'mail', { name: 'smtp', port: 25 });
  await makeUpstream(cluster, 'shop', 'dns', { name: 'dns-udp', port: 53, protocol: 'UDP' });
  await makeUpstream(cluster, 'infra', 'broker', { name: 'mqtt', port: 1883 });
  await cluster.create(referenceGrants, exampleDocument('streamingress/admin/reference-grant.yaml'));
  // One that every watcher counts, and none deletes.
  const annotations = { 'batch.my.github.com/keep': 'true' };
  await new Jobs(cluster, 'default').finished('pi-kept', { metadata: { annotations } });
}

/** An ingress-nginx that reads what StreamIngresses write. */
async function makeIngress(cluster: Cluster): Promise<void> {
  await makeProxy(cluster, PROXIES, PROXY);
  const args = ['tcp', 'udp'].map((name) => `--${name}-services-configmap=${PROXIES}/${name}-services`);
  const labels = { app: 'nginx' };
  await cluster.create(deployments, {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: PROXIES, name: PROXY } },
    spec: {
      ...{ replicas: 0, selector: { matchLabels: labels } },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'controller', image: 'example.com/nginx:1', args }] },
      },
    },
  });
}

/** A Service, and somebody behind it. */
async function makeUpstream(cluster: Cluster, namespace: string, name: string, port: object): Promise<void> {
  const metadata = { namespace, name };
  await cluster.create(services, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [port] } });
  await cluster.create(slices, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
    ports: [port],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
  });
}
