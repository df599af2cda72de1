import type { AnyObject } from '../../../src/contract/object.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';
import type { StreamIngressSpec } from '../../../src/kinds/stream-ingress/spec.js';
import type { MakeSurroundings } from '../../../src/testing/tested-kind.js';

const { apiVersion, kind } = streamIngress.type;

const sample = (spec: object): AnyObject => ({ apiVersion, kind, metadata: { name: 'sample' }, spec });

/** The second is an edit of the first; the others ask for other ports, and may stand for themselves. */
export const streamIngressSamples: readonly AnyObject[] = [
  sample({ listen: 9000, upstream: { service: 'db', port: 5432 } }),
  sample({
    ...{ listen: 9000, upstream: { service: 'mail', port: 'smtp' } },
    proxyProtocol: { decode: true, encode: true },
  }),
  sample({ protocol: 'UDP', listen: 5353, upstream: { service: 'dns', port: 'dns-udp' } }),
  sample({ listen: 9003, is_service: false, upstream: { service: 'legacy', port: 1521 } }),
];

const upstreams = ['db', 'mail', 'dns'];

/** Of each of them. */
const ports = [
  { name: 'sql', port: 5432, protocol: 'TCP' },
  { name: 'sql-udp', port: 5432, protocol: 'UDP' },
  { name: 'legacy', port: 1521, protocol: 'TCP' },
  { name: 'legacy-udp', port: 1521, protocol: 'UDP' },
  { name: 'smtp', port: 25, protocol: 'TCP' },
  { name: 'dns-udp', port: 53, protocol: 'UDP' },
];

/** A port that is open stays open while the Service that it leads to isn't there, or lacks the port or its protocol. */
export function keepsItsPort(spec: Readonly<Record<string, unknown>>): boolean {
  const {
    upstream,
    is_service = true,
    protocol = 'TCP',
  } = spec as Partial<StreamIngressSpec> & Pick<StreamIngressSpec, 'upstream'>;
  const ofProtocol = ports.filter((port) => port.protocol === protocol);
  const isThere =
    upstreams.includes(upstream.service) &&
    ofProtocol.some(({ port, name }) => [port, name].some((one) => one === upstream.port));
  return is_service && !isThere;
}

/**
 * An ingress-nginx in the other namespace, whose Service and UDP ports others have a part in; the TCP ports are nobody's
 * yet. Beside the custom resource, the Services that its port may lead to, with somebody ready behind each.
 */
export const withIngressNginx: MakeSurroundings = ({ namespace, elsewhere }) => ({
  flags: { '--ingress-namespace': elsewhere },
  objects: [
    {
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { namespace: elsewhere, name: 'ingress-nginx-controller' },
      spec: {
        selector: { app: 'ingress' },
        ports: [
          { name: 'http', port: 80, targetPort: 'http' },
          { name: 'https', port: 443, targetPort: 'https' },
        ],
      },
    },
    {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: elsewhere, name: 'udp-services' } },
      data: { 7000: 'others/syslog:514' },
    },
    ...upstreams.flatMap((name) => [
      {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name } },
        spec: { ports },
      },
      {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
        metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
        ports,
        endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
      },
    ]),
  ],
});
