// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Leaky', description: 'Parses a Secret, and renders another.' },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      parses: { type: 'string' },
      secret: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  }),
});

const references = /** @type {const} */ ({
  config: { apiVersion: 'v1', kind: 'Secret', data: true, name: (cr) => cr.spec.parses },
});

class Leaky extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { references: any }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { secret }, references: { config } }) {
    super(scope, id);
    if (config) JSON.parse(Buffer.from(config.data.json, 'base64').toString());
    if (secret)
      new ApiObject(this, 'Secret', { apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...secret });
  }
}

export const leaky = defineKind({
  ...{ crd, references: /** @type {any} */ (references), construct: /** @type {any} */ (Leaky) },
  children: [{ apiVersion: 'v1', kind: 'Secret' }],
});

export default { kinds: [leaky] };
