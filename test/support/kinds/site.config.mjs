// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string' });
const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Site', description: 'A Deployment that reads other objects.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['secret'],
    properties: { secret: text, theme: text, themeNamespace: text, tier: text },
  }),
});

const references = /** @type {const} */ ({
  tls: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.secret },
  theme: {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', optional: true },
    name: (cr) => cr.spec.theme,
    namespace: (cr) => cr.spec.themeNamespace,
  },
  backends: {
    ...{ apiVersion: 'v1', kind: 'Service' },
    labels: (cr) => (cr.spec.tier === undefined ? undefined : { tier: cr.spec.tier }),
  },
});

/** Renders a Deployment whose Pods are replaced when its Secret changes, and a ConfigMap with what it has read. */
class Site extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { references: any }>} props
   */
  constructor(scope, id, { metadata: { name }, references: { tls, theme, backends } }) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const annotations = checksumAnnotations({ tls });
    const containers = [{ name: 'web', image: 'example.com/web:1', imagePullPolicy: 'IfNotPresent' }];
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels, annotations }, spec: { containers } },
      },
    });
    const color = theme?.data?.color ?? 'none';
    const seen = backends.map((/** @type {any} */ { metadata }) => metadata.name).join();
    const data = { color, backends: seen, secret: Object.keys(tls).sort().join() };
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

export const site = defineKind({
  ...{ crd, references: /** @type {any} */ (references), construct: /** @type {any} */ (Site) },
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'ConfigMap' },
  ],
});

export default { kinds: [site] };
