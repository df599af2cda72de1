// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'listings.example.com',
  kind: 'Listing',
  description: 'An application, and its entry in the catalog, which is in a namespace of its own.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['image', 'title'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'Image of the application.' },
      title: { type: 'string', minLength: 1, maxLength: 100, description: 'Title in the catalog.' },
      listed: { type: 'boolean', default: true, description: 'Whether it is in the catalog.' },
    },
  }),
});

class Listing extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { metadata: { name, namespace = 'default' }, spec: { image, title, listed } }) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const containers = [{ name: 'app', image, imagePullPolicy: 'IfNotPresent' }];
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    });
    if (!listed) return;
    new ApiObject(this, 'Entry', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      // Its namespace is part of the name: no user takes the name of another.
      metadata: { name: `${namespace}.${name}`, namespace: 'catalog' },
      data: { title, namespace, name },
    });
  }
}

export const listing = defineKind({
  ...{ crd, construct: Listing },
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'ConfigMap', namespaces: ['catalog'] },
  ],
});
