import { resourceType } from '../../../src/contract/resource.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

const definitions = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});
export const referenceGrants = resourceType({
  apiVersion: 'gateway.networking.k8s.io/v1beta1',
  kind: 'ReferenceGrant',
});

const string = { type: 'string' };
const members = (...names: string[]): object => ({
  type: 'array',
  items: { type: 'object', properties: Object.fromEntries(names.map((name) => [name, string])) },
});

/**
 * ReferenceGrant as the Gateway API defines it, without its limits.
 * @see https://gateway-api.sigs.k8s.io/reference/spec/#referencegrant
 */
const referenceGrantCrd = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  metadata: {
    name: 'referencegrants.gateway.networking.k8s.io',
    annotations: {
      // Without it, the API server refuses definitions of this group.
      'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/2997',
    },
  },
  spec: {
    group: 'gateway.networking.k8s.io',
    names: { kind: 'ReferenceGrant', plural: 'referencegrants', singular: 'referencegrant' },
    scope: 'Namespaced',
    versions: [
      {
        ...{ name: 'v1beta1', served: true, storage: true },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  from: members('group', 'kind', 'namespace'),
                  to: members('group', 'kind', 'name'),
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** Makes ReferenceGrants known, unless the real ones are there already. */
export async function installReferenceGrants(cluster: Cluster): Promise<void> {
  const place = { type: definitions, name: referenceGrantCrd.metadata.name };
  if (!(await cluster.find(place))) await cluster.apply(definitions, referenceGrantCrd, 'test');
  await eventually(() => cluster.list(referenceGrants, 'default'));
}

/** Permits in one namespace that StreamIngresses of another lead to Services. */
export async function grantReference(
  cluster: Cluster,
  {
    name = 'grant',
    inside,
    from = {},
    to = {},
  }: { name?: string; inside: string; from?: object; to?: object },
): Promise<void> {
  const { apiVersion, kind } = referenceGrants;
  await cluster.create(referenceGrants, {
    ...{ apiVersion, kind, metadata: { namespace: inside, name } },
    spec: {
      from: [{ group: 'nginx-stream.jeffthecoder.xyz', kind: 'StreamIngress', ...from }],
      to: [{ group: '', kind: 'Service', ...to }],
    },
  });
}
