// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

/**
 * Renders the objects that its spec holds, word for word.
 * @typedef {{ objects: import('cdk8s').ApiObjectProps[] }} BundleSpec
 */
class Bundle extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').CustomResourceProps<BundleSpec>} props
   */
  constructor(scope, id, { spec }) {
    super(scope, id);
    for (const [index, object] of spec.objects.entries()) new ApiObject(this, String(index), object);
  }
}

class Secretless extends Bundle {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').CustomResourceProps<BundleSpec>} props
   */
  constructor(scope, id, { spec, ...props }) {
    super(scope, id, { ...props, spec: { objects: spec.objects.filter(({ kind }) => kind !== 'Secret') } });
  }
}

/** @type {import('cdk8s-reconstruct').StructuralSchema} */
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/**
 * Returns a kind that renders what its spec holds; after an upgrade, no Secrets any more.
 * @param {{ upgraded?: boolean }} [options]
 */
export function bundleKind({ upgraded = false } = {}) {
  const secret = { apiVersion: 'v1', kind: 'Secret' };
  return defineKind({
    crd: defineCrd({
      group: 'test.example.com',
      kind: 'Bundle',
      description: 'Objects, word for word.',
      spec: {
        type: 'object',
        required: ['objects'],
        properties: { objects: { type: 'array', items: anything } },
      },
    }),
    construct: upgraded ? Secretless : Bundle,
    children: [
      { apiVersion: 'v1', kind: 'ConfigMap' },
      ...(upgraded ? [] : [secret]),
      { apiVersion: 'v1', kind: 'Service', recreate: true },
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      { apiVersion: 'apps/v1', kind: 'StatefulSet' },
      { apiVersion: 'batch/v1', kind: 'Job', recreate: true },
    ],
    formerChildren: upgraded ? [secret] : [],
  });
}
