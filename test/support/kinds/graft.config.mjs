// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string' });
const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Graft', description: 'Values in a ConfigMap of others, anywhere.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['name', 'value'],
    properties: { namespace: text, name: text, value: text, second: text },
  }),
});

class Graft extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { metadata, spec: { namespace = metadata.namespace, name, value, second } }) {
    super(scope, id);
    const place = { name, ...(namespace !== undefined && { namespace }) };
    const data = { value, second };
    new ApiObject(this, 'C', { apiVersion: 'v1', kind: 'ConfigMap', metadata: place, data });
  }
}

export const graft = defineKind({
  ...{ crd, construct: Graft, children: [] },
  contributes: [
    { apiVersion: 'v1', kind: 'ConfigMap', takes: ['.data.value', '.data.second'], namespaces: '*' },
    { apiVersion: 'v1', kind: 'Service', namespaces: '*' },
  ],
});

export default { kinds: [graft] };
