import { resourceType } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { services } from './cluster.js';
import type { Cluster } from './cluster.js';

export const slices: ResourceType = resourceType({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
});

/** The field manager of what the chart makes. */
export const PROXY_MANAGER = 'helm';

/** The Service of ingress-nginx, as its chart makes it. */
export async function makeProxy(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const ports = [
    { name: 'http', port: 80, targetPort: 'http' },
    { name: 'https', port: 443, targetPort: 'https' },
  ];
  await cluster.apply(
    services,
    {
      ...{ apiVersion: 'v1', kind: 'Service', spec: { selector: { app: 'nginx' }, ports } },
      metadata: { namespace, name },
    },
    PROXY_MANAGER,
  );
}

/** A Service named `db` with somebody behind its port 5432. */
export async function makeDatabase(cluster: Cluster, namespace: string): Promise<void> {
  const metadata = { namespace, name: 'db' };
  await cluster.create(services, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata },
    spec: { ports: [{ name: 'sql', port: 5432 }] },
  });
  await cluster.create(slices, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'db' } },
    ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
  });
}
