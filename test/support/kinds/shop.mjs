// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Shop',
    description: 'A Deployment, as one build of its kind makes it.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      ...{ text: { type: 'string', default: 'hello' }, theme: { type: 'string' } },
      size: { type: 'integer', default: 0 },
      fragile: { type: 'boolean', description: 'Whether the pods of a new build find no node.' },
    },
  }),
});

const references = /** @satisfies {import('cdk8s-reconstruct').References<typeof crd>} */ (
  /** @type {const} */ ({
    theme: { apiVersion: 'v1', kind: 'ConfigMap', name: (cr) => cr.spec.theme, optional: true },
  })
);

/**
 * Makes a build of the kind.
 * @param {{ image: string, extra: string, isNew?: boolean }} build image of the Deployment, and name of a ConfigMap beside it
 */
export function shopOf({ image, extra, isNew = false }) {
  class Shop extends Construct {
    /**
     * @param {Construct} scope
     * @param {string} id
     * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { references: typeof references }>} props
     */
    constructor(scope, id, { metadata: { name }, spec: { text, size, fragile }, references: { theme } }) {
      super(scope, id);
      const labels = { app: name };
      const env = [{ name: 'COLOR', value: theme?.data?.color ?? 'none' }];
      const nodeSelector = fragile && isNew ? { 'example.com/absent': 'yes' } : {};
      new ApiObject(this, 'Web', {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
        spec: {
          replicas: size,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { nodeSelector, containers: [{ name: 'web', image, env }] },
          },
        },
      });
      new ApiObject(this, 'Text', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name },
        data: { text },
      });
      new ApiObject(this, 'Extra', {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-${extra}` }, data: { extra } },
      });
    }
  }
  return defineKind({
    ...{ crd, construct: Shop, references },
    children: [
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      { apiVersion: 'v1', kind: 'ConfigMap' },
    ],
  });
}
