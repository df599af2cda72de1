// Both operators have to make the same children, or nothing that is measured compares.
import { isDeepStrictEqual } from 'node:util';
import { appService, deployment, headOf, service } from '../support/cluster.mjs';
import { createAll } from '../support/workload.mjs';

const ports = [
  { name: 'http', port: 80, targetPort: 8080 },
  { name: 'alias', port: 81, targetPort: 8080, appProtocol: 'http' },
  { name: 'dns', port: 53, protocol: 'UDP', nodePort: 31053 },
  { name: 'named', port: 9000, targetPort: 'metrics' },
];
const envs = [
  { name: 'EMPTY', value: '' },
  { name: 'FROM', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
];
const resources = { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '0.5Gi' } };
const specs = {
  bare: { size: 0 },
  ports: { size: 1, ports },
  all: { size: 2, ports: [{ port: 443 }], envs, resources },
};

let expected;

/** Compares what the operator's children are and which fields it owns with those of the operator before. */
export async function children(bench) {
  const namespace = await bench.namespace('children');
  await bench.withController();
  const crs = Object.entries(specs).map(([name, spec]) => ({
    ...headOf(appService.type),
    metadata: { namespace, name },
    spec: { image: 'registry.example.com/web:1', ...spec },
  }));
  await createAll(bench.cluster, crs);
  const { faults } = await bench.settled([namespace]);
  const lists = await Promise.all([deployment, service].map((type) => bench.cluster.list(type, namespace)));
  const made = lists.flatMap(({ items }) => items.map(comparable));
  expected ??= made;
  for (const [index, child] of made.entries())
    if (!isDeepStrictEqual(child, expected[index]))
      throw new Error(`Not the same child:\n${JSON.stringify(child)}\n${JSON.stringify(expected[index])}`);
  bench.note('children', 'the same as those of the operator before', made.length);
  bench.note('children', 'statuses wrong in the end', faults.length, '', 0);
}

/** Without what the cluster decides, owner references and annotations. */
function comparable({ kind, metadata: { name, labels, managedFields }, spec }) {
  const { clusterIP, clusterIPs, ports, ...rest } = spec;
  const entry = managedFields.find(
    ({ manager, subresource }) => manager === 'appservice-controller' && !subresource,
  );
  const { 'f:metadata': owned, ...fields } = entry.fieldsV1;
  const { 'f:annotations': _, 'f:ownerReferences': __, ...metadata } = owned;
  const asked = ports?.map(({ nodePort, ...port }) => ({ ...port, ...(nodePort === 31053 && { nodePort }) }));
  return { kind, name, labels, fields, metadata, spec: { ...rest, ...(asked && { ports: asked }) } };
}
