// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Site',
    description: 'A ConfigMap beside a Secret with a certificate.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: { hosts: { type: 'array', items: { type: 'string' }, default: ['web.test'] } },
  }),
});

class Site extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {any} props
   */
  constructor(scope, id, { metadata: { name }, generated }) {
    super(scope, id);
    const { key } = generated.keys['ca.crt'];
    new ApiObject(this, 'Config', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { checksum: checksumAnnotations({ generated })['checksum/generated'], key },
    });
  }
}

export const site = defineKind({
  ...{ crd, construct: /** @type {any} */ (Site), children: [{ apiVersion: 'v1', kind: 'ConfigMap' }] },
  generated: { password: {}, tls: { dnsNames: ({ spec }) => /** @type {any} */ (spec).hosts, days: 30 } },
  generatedSecretName: (name) => `${name}-tls`,
});

export default { kinds: [site] };
