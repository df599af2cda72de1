// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'addresses.example.com',
  kind: 'PublicAddress',
  description: 'A load balancer for an application, and a ConfigMap with its address.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['app'],
    properties: {
      app: { type: 'string', minLength: 1, description: 'What its Pods have as label app.' },
      port: {
        ...{ type: 'integer', format: 'int32', minimum: 1, maximum: 65535, default: 443 },
        description: 'Port of the Pods and of the load balancer.',
      },
    },
  }),
});

const children = /** @type {const} */ ([
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: 'v1', kind: 'ConfigMap' },
]);
/** @typedef {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: typeof children }>} Props */

class PublicAddress extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {Props} props
   */
  constructor(scope, id, { metadata: { name }, spec: { app, port }, observed }) {
    super(scope, id);
    const metadata = { name };
    new ApiObject(this, 'Service', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { type: 'LoadBalancer', selector: { app }, ports: [{ port }] },
    });
    // There is neither Service nor status at first.
    const service = observed.find((child) => child.kind === 'Service');
    const [entry] = service?.status?.loadBalancer?.ingress ?? [];
    const address = entry?.hostname ?? entry?.ip ?? 'pending';
    new ApiObject(this, 'Address', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { address } });
  }
}

export const publicAddress = defineKind({ crd, children, observes: true, construct: PublicAddress });
