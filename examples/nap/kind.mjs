// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'sleep.example.com',
  kind: 'Nap',
  description: 'Has a Deployment of others sleep; it wakes up as it was when the nap ends.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['deployment'],
    properties: {
      deployment: { type: 'string', minLength: 1, description: 'Name of the Deployment.' },
      awake: { type: 'boolean', default: false, description: 'Whether it works all the same.' },
      reason: { type: 'string', description: 'Why, as an annotation of the Deployment.' },
    },
  }),
});

class Nap extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { spec: { deployment, awake, reason } }) {
    super(scope, id);
    if (awake && reason === undefined) return;
    const annotations = { ...(reason !== undefined && { 'sleep.example.com/reason': reason }) };
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: deployment, annotations } },
      ...(!awake && { spec: { replicas: 0 } }),
    });
  }
}

export const nap = defineKind({
  ...{ crd, construct: Nap, children: [] },
  contributes: [{ apiVersion: 'apps/v1', kind: 'Deployment', takes: ['.spec.replicas'] }],
});
