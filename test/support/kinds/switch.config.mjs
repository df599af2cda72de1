// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string' });
const texts = /** @type {const} */ ({ type: 'object', additionalProperties: text });
const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Switch', description: 'Selector of a Service of others.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['service'],
    properties: {
      service: text,
      /** @default - the Service has its own */
      selector: texts,
      /** Of a NetworkPolicy that has the name of the Service. */
      peers: texts,
      /** Of a ConfigMap that has it, too. */
      data: texts,
    },
  }),
});

class Switch extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { spec: { service: name, selector, peers, data } }) {
    super(scope, id);
    const metadata = { name };
    if (selector)
      new ApiObject(this, 'Service', { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector } });
    if (data) new ApiObject(this, 'ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    if (peers)
      new ApiObject(this, 'NetworkPolicy', {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata },
        spec: { podSelector: { matchLabels: peers } },
      });
  }
}

export default {
  kinds: [
    defineKind({
      ...{ crd, construct: Switch, children: [] },
      contributes: [
        { apiVersion: 'v1', kind: 'Service', takes: ['.spec.selector'] },
        { apiVersion: 'v1', kind: 'ConfigMap', takes: ['.data'] },
        { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', takes: ['.spec.podSelector'] },
      ],
    }),
  ],
};
