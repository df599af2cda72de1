// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const ttlSeconds = /** @type {const} */ ({ type: 'integer', format: 'int32', minimum: 1, default: 86_400 });
const crd = defineCrd({
  ...{ group: 'previews.example.com', kind: 'Preview', scope: 'Cluster' },
  description: 'A namespace with an application, which are removed once their time is over.',
  spec: /** @type {const} */ ({
    ...{ type: 'object', required: ['image'] },
    properties: { image: { type: 'string', minLength: 1 }, ttlSeconds },
  }),
  status: /** @type {const} */ ({ expiresAt: { type: 'string' }, expired: { type: 'boolean' } }),
  columns: [{ name: 'Expires', type: 'string', jsonPath: '.status.expiresAt' }],
});
const namespaces = { apiVersion: 'v1', kind: 'Namespace', namespaced: false };

class Preview extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { remembers: true }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { image }, status: { expired } }) {
    super(scope, id);
    if (expired) return;
    const [labels, namespace] = [selectorLabels(crd, name), `preview-${name}`];
    const containers = [{ name: 'app', image, imagePullPolicy: 'IfNotPresent' }];
    new ApiObject(this, 'Namespace', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    new ApiObject(this, 'App', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'app', namespace } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    });
  }
}

export const preview = defineKind({
  ...{ crd, construct: Preview, remembers: true },
  children: [namespaces, { apiVersion: 'apps/v1', kind: 'Deployment' }],
  status: ({ cr: { metadata, spec }, now }) => {
    const end = new Date(Date.parse(metadata.creationTimestamp ?? '') + spec.ttlSeconds * 1_000);
    const fields = { expiresAt: end.toISOString(), expired: end <= now };
    if (end > now) return { fields, requeueAt: end };
    return { fields, readiness: { phase: 'ready', reason: 'Expired', message: 'Its time is over' } };
  },
});
