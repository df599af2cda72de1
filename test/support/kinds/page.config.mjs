// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Page', description: 'A ConfigMap of the settings of its operator.' },
  spec: /** @type {const} */ ({ type: 'object', properties: { text: { type: 'string', default: '' } } }),
  status: /** @type {const} */ ({ url: { type: 'string' } }),
});

const settingsSchema = /** @type {const} */ ({
  type: 'object',
  required: ['domain'],
  properties: {
    domain: { type: 'string', minLength: 3 },
    proxy: {
      ...{ type: 'object', default: {} },
      properties: { image: { type: 'string', default: 'nginx:1' } },
    },
  },
});

class Page extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { settingsSchema: typeof settingsSchema }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { text }, settings: { domain, proxy } }) {
    super(scope, id);
    new ApiObject(this, 'Data', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { text, host: `${name}.${domain}`, image: proxy.image },
    });
  }
}

const page = defineKind({
  ...{ crd, construct: Page, settingsSchema },
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status: ({ cr, settings: { domain } }) => ({ fields: { url: `https://${cr.metadata.name}.${domain}` } }),
});

export default { kinds: [page] };
