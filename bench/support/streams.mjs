// A shared proxy, Services that StreamIngresses lead to, and StreamIngresses.
import { streamIngress } from '../../lib/kinds/stream-ingress/kind.js';
import { CONCURRENCY, headOf, service } from './cluster.mjs';
import { each } from './util.mjs';

const slice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};
const INGRESS_NAMESPACE = 'ingress-nginx';
const FIRST_PORT = 20_000;
const UPSTREAMS = 20;

/** The Service of ingress-nginx, as its chart makes it. */
export async function makeProxy(cluster) {
  await cluster.makeNamespace(INGRESS_NAMESPACE);
  const ports = [
    { name: 'http', port: 80, targetPort: 'http' },
    { name: 'https', port: 443, targetPort: 'https' },
  ];
  const object = {
    ...headOf(service),
    metadata: { namespace: INGRESS_NAMESPACE, name: 'ingress-nginx-controller' },
    spec: { type: 'LoadBalancer', selector: { app: 'ingress-nginx' }, ports },
  };
  await cluster.apply(service, object, 'helm');
}

/** Services of one port for TCP and UDP each, at which somebody is ready. */
export async function makeUpstreams(cluster, namespace) {
  const names = Array.from({ length: UPSTREAMS }, (_, index) => `db-${index}`);
  const ports = [
    { name: 'tcp', port: 5432, protocol: 'TCP' },
    { name: 'udp', port: 5432, protocol: 'UDP' },
  ];
  await each(names, CONCURRENCY, async (name) => {
    await cluster.create(service, { ...headOf(service), metadata: { namespace, name }, spec: { ports } });
    await cluster.create(slice, {
      ...headOf(slice),
      metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
      ...{ addressType: 'IPv4', ports },
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
    });
  });
}

/** Of both protocols in turn, so that both ConfigMaps are written. */
export function streamOf(namespace, index) {
  return {
    ...headOf(streamIngress.type),
    metadata: { namespace, name: `stream-${index}` },
    spec: {
      protocol: index % 2 === 0 ? 'TCP' : 'UDP',
      listen: FIRST_PORT + index,
      upstream: { service: `db-${index % UPSTREAMS}`, port: 5432 },
    },
  };
}

/** Resolves when that many of the objects that a witness sees are Ready. */
export function readyCount(witness, count) {
  const ready = new Set([...witness.objects.values()].filter(isReady).map(nameOf));
  return witness.until((object) => {
    if (object && isReady(object)) ready.add(nameOf(object));
    else if (object) ready.delete(nameOf(object));
    return ready.size >= count;
  });
}

function isReady({ metadata, status }) {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' && ready.observedGeneration === metadata.generation;
}

function nameOf({ metadata }) {
  return metadata.name;
}
