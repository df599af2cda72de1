// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Account',
    description: 'A ConfigMap beside a Secret with a connection string.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      host: { type: 'string', default: 'db' },
      broken: { type: 'boolean' },
      template: { type: 'object', default: {}, additionalProperties: { type: 'string' } },
    },
  }),
});

class Account extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {any} props
   */
  constructor(scope, id, { metadata: { name }, generated }) {
    super(scope, id);
    const data = { ...checksumAnnotations({ generated }), uri: generated.keys.uri.key };
    new ApiObject(this, 'Config', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: { checksum: data['checksum/generated'], key: data.uri },
    });
  }
}

export const account = defineKind({
  ...{ crd, construct: /** @type {any} */ (Account), children: [{ apiVersion: 'v1', kind: 'ConfigMap' }] },
  generated: {
    password: { length: 24 },
    uri: {
      text: ({ cr, values }) => {
        if (/** @type {any} */ (cr.spec).broken) throw new Error(`can't use ${values.password}`);
        return `postgres://app:${values.password}@${/** @type {any} */ (cr.spec).host}`;
      },
    },
    pgpass: { text: ({ values }) => `# ${values.uri}` },
    template: {
      texts: ({ cr, values }) =>
        Object.fromEntries(
          Object.entries(/** @type {any} */ (cr.spec).template).map(([key, text]) => [
            key,
            text.replaceAll('PASSWORD', values.password),
          ]),
        ),
    },
  },
});

export default { kinds: [account] };
