import { resourceType } from '../../../src/contract/resource.js';
import { services } from './cluster.js';
import type { Cluster } from './cluster.js';

const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });

/** How a Service that others lead to looks. */
export interface UpstreamProps {
  /** @default TCP */
  readonly protocol?: 'TCP' | 'UDP';
  /** @default 5432 */
  readonly port?: number;
  /** Whether somebody is ready behind it. @default true */
  readonly ready?: boolean;
}

/** A Service with one port, `sql`, without a selector, and an EndpointSlice of it. */
export async function makeUpstream(
  cluster: Cluster,
  namespace: string,
  name = 'db',
  { protocol = 'TCP', port = 5432, ready = true }: UpstreamProps = {},
): Promise<void> {
  const ports = [{ name: 'sql', port, protocol }];
  await cluster.create(services, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name }, spec: { ports } },
  });
  await putEndpoints(cluster, { namespace, name, protocol, ready });
}

/** Makes the EndpointSlice of a Service say whether somebody is ready behind `sql`. */
export async function putEndpoints(
  cluster: Cluster,
  props: { namespace: string; name: string; protocol?: string; ready: boolean },
): Promise<void> {
  const { namespace, name, protocol = 'TCP', ready } = props;
  const { apiVersion, kind } = slices;
  const labels = { 'kubernetes.io/service-name': name };
  const slice = {
    ...{ apiVersion, kind, metadata: { namespace, name, labels }, addressType: 'IPv4' },
    ports: [{ name: 'sql', port: 5432, protocol }],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready } }],
  };
  await cluster.apply(slices, slice, 'test');
}
