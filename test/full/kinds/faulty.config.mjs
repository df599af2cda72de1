// @ts-check
import { randomUUID } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind } from 'reconstruct';

/**
 * Renders a ConfigMap, and has bugs.
 * @typedef {{ bug?: 'construct' | 'status' | 'clock' }} FaultySpec
 */
class Faulty extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('reconstruct').CustomResourceProps<FaultySpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
    if (spec.bug === 'construct') throw new TypeError('the construct has a bug');
    const data = spec.bug === 'clock' ? { at: randomUUID() } : {};
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

/**
 * @param {import('reconstruct').StatusInput<FaultySpec, { seen?: boolean }>} input
 * @returns {import('reconstruct').StatusReport<{ seen?: boolean }>}
 */
function status({ cr: { spec } }) {
  if (spec.bug === 'status') throw new TypeError('the status function has a bug');
  return { readiness: { phase: 'ready', reason: 'Made', message: 'It is made' }, fields: { seen: true } };
}

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export const faulty = defineKind({
  crd: {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'faulties.test.example.com' },
    spec: {
      group: 'test.example.com',
      names: { kind: 'Faulty', plural: 'faulties', singular: 'faulty' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } },
        },
      ],
    },
  },
  construct: Faulty,
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status,
});

export default { kinds: [faulty] };
