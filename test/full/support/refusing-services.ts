import { expect } from 'vitest';
import { resourceType } from '../../../src/contract/resource.js';
import { collection } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';

const apiVersion = 'admissionregistration.k8s.io/v1';
const admission = (kind: string) => resourceType({ apiVersion, kind, namespaced: false });
const policies = admission('ValidatingAdmissionPolicy');
const bindings = admission('ValidatingAdmissionPolicyBinding');

/** From now on the API server refuses a port on a Service, by an admission policy. Returns how to end that. */
export async function refusePort(
  cluster: Cluster,
  service: Place,
  port: number,
): Promise<() => Promise<void>> {
  const { type, namespace = '' } = service;
  const name = `${namespace}-${port}`;
  const metadata = { name };
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['UPDATE'] };
  const expression = `object.spec.ports.all(port, port.port != ${port})`;
  await cluster.create(policies, {
    ...{ apiVersion, kind: policies.kind, metadata },
    spec: {
      matchConstraints: { namespaceSelector, resourceRules: [rule] },
      validations: [{ expression, message: `not port ${port}` }],
    },
  });
  await cluster.create(bindings, {
    ...{ apiVersion, kind: bindings.kind, metadata },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  const isRefused = async (wanted: boolean): Promise<void> =>
    eventually(async () => {
      const body = {
        ...{ apiVersion: type.apiVersion, kind: type.kind, metadata: { namespace, name: service.name } },
        spec: { ports: [{ name: 'probe', port, protocol: 'TCP', targetPort: port }] },
      };
      const { status } = await cluster.send('PATCH', `${collection(type, namespace)}/${service.name}`, {
        ...{ body, contentType: 'application/apply-patch+yaml' },
        query: { fieldManager: 'probe', dryRun: 'All' },
      });
      expect(status >= 400).toBe(wanted);
    });
  await isRefused(true);
  return async () => {
    for (const type of [bindings, policies]) await cluster.delete({ type, name });
    await isRefused(false);
  };
}
