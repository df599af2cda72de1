// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Gate',
    description: 'A Service, and a ConfigMap that has its address.',
  },
  spec: /** @type {const} */ ({ type: 'object', properties: { swings: { type: 'boolean' } } }),
});

const children = /** @type {const} */ ([
  { apiVersion: 'v1', kind: 'Service' },
  {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    keep: ({ data }) => ({ data }),
  },
]);

/** With `swings`, the ConfigMap says the contrary of what it said. */
class Gate extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: any }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { swings }, observed }) {
    super(scope, id);
    new ApiObject(this, 'Service', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
    });
    const service = observed.find(({ kind }) => kind === 'Service');
    const before = observed.find(({ kind }) => kind === 'ConfigMap');
    const address = service?.status?.loadBalancer?.ingress?.[0]?.ip ?? 'pending';
    const side = swings ? { side: before?.data?.side === 'left' ? 'right' : 'left' } : {};
    const data = { address, ...side };
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

export const gate = defineKind({
  ...{ crd, children: /** @type {any} */ (children), observes: true },
  construct: /** @type {any} */ (Gate),
});

export default { kinds: [gate] };
