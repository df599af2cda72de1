// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind } from 'reconstruct';

/**
 * Renders the objects that its spec holds, word for word.
 * @typedef {{ objects: import('cdk8s').ApiObjectProps[] }} BundleSpec
 */
class Bundle extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('reconstruct').CustomResourceProps<BundleSpec>} props
   */
  constructor(scope, id, { spec }) {
    super(scope, id);
    for (const [index, object] of spec.objects.entries()) new ApiObject(this, String(index), object);
  }
}

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export const bundle = defineKind({
  crd: {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'bundles.test.example.com' },
    spec: {
      group: 'test.example.com',
      names: { kind: 'Bundle', listKind: 'BundleList', plural: 'bundles', singular: 'bundle' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  required: ['objects'],
                  properties: { objects: { type: 'array', items: anything } },
                },
                status: anything,
              },
            },
          },
        },
      ],
    },
  },
  construct: Bundle,
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'v1', kind: 'Secret' },
    { apiVersion: 'v1', kind: 'Service', recreate: true },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'batch/v1', kind: 'Job', recreate: true },
  ],
});

export default { kinds: [bundle] };
