// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Stamp',
    description: 'A ConfigMap whose data stay as they were created.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: { first: { type: 'string', default: 'a' }, last: { type: 'string', default: 'a' } },
  }),
});

class Stamp extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, {}>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { first, last } }) {
    super(scope, id);
    const data = new ApiObject(this, 'Data', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { last } } },
      data: { first },
    });
    new ApiObject(this, 'Service', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, labels: { last } } },
      spec: { ports: [{ port: 80 }] },
    }).addDependency(data);
  }
}

const stamp = defineKind({
  ...{ crd, construct: Stamp },
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap', createOnly: ['.data'] },
    { apiVersion: 'v1', kind: 'Service' },
  ],
});

export default { kinds: [stamp] };
