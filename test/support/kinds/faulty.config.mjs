// @ts-check
import { randomUUID } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

/**
 * Renders a ConfigMap, and has bugs.
 * @typedef {{ bug?: 'construct' | 'status' | 'clock', free?: object }} FaultySpec
 */
class Faulty extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').CustomResourceProps<FaultySpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
    if (spec.bug === 'construct') throw new TypeError('the construct has a bug');
    const data = spec.bug === 'clock' ? { at: randomUUID() } : {};
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

/**
 * @param {import('cdk8s-reconstruct').StatusInput<FaultySpec, { seen?: boolean }>} input
 * @returns {import('cdk8s-reconstruct').StatusReport<{ seen?: boolean }>}
 */
function status({ cr: { spec } }) {
  if (spec.bug === 'status') throw new TypeError('the status function has a bug');
  return { readiness: { phase: 'ready', reason: 'Made', message: 'It is made' }, fields: { seen: true } };
}

export const faulty = defineKind({
  crd: defineCrd({
    group: 'test.example.com',
    kind: 'Faulty',
    description: 'A ConfigMap, with bugs.',
    plural: 'faulties',
    spec: {
      type: 'object',
      properties: {
        bug: { type: 'string' },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
    status: { seen: { type: 'boolean' } },
  }),
  construct: Faulty,
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status,
});

export default { kinds: [faulty] };
