// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string' });
const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Release',
    description: 'A Deployment that waits for its migration.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['version'],
    properties: { version: text, extra: { type: 'boolean' } },
  }),
});

/** Renders a ConfigMap, before a Job, before a Deployment; with `extra`, another ConfigMap that waits for nothing. */
class Release extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { version, extra = false } }) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const containers = [{ name: 'web', image: `example.com/web:${version}` }];
    const config = new ApiObject(this, 'Config', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { version },
    });
    const job = new ApiObject(this, 'Migration', {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } },
      spec: { suspend: true, template: { spec: { containers, restartPolicy: 'Never' } } },
    });
    const deployment = new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
    job.addDependency(config);
    deployment.addDependency(job);
    if (extra)
      new ApiObject(this, 'Extra', {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-extra` } },
      });
  }
}

export const release = defineKind({
  ...{ crd, construct: Release },
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'batch/v1', kind: 'Job', recreate: true },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ],
});

export default { kinds: [release] };
