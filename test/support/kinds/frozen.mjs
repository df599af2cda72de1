// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Frozen', description: 'A Deployment that stays as it was created.' },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      image: { type: 'string', default: 'example.com/app:1' },
      tier: { type: 'string', default: 'x' },
      /** Size of a claim for each Pod of a StatefulSet beside it. */
      claim: { type: 'string' },
      /** Size of another one, which its container mounts. */
      logs: { type: 'string' },
    },
  }),
});

class Frozen extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: readonly [{ apiVersion: 'apps/v1', kind: 'Deployment', createOnly: readonly string[] }] }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { image, tier, claim, logs }, observed }) {
    super(scope, id);
    const pod = (/** @type {string} */ app) => ({
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: 'app', image }] } },
    });
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels: { tier } } },
      spec: { replicas: 1, ...pod(name) },
    });
    const seen = observed.map(
      ({ kind, metadata, isCurrent }) => `${kind} ${isCurrent} ${metadata.labels?.tier}`,
    );
    new ApiObject(this, 'Seen', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { seen: seen.filter((text) => text.startsWith('Deployment')).join() },
    });
    if (!claim) return;
    const claims = Object.entries({ data: claim, ...(logs && { logs }) });
    const { selector, template } = pod(`${name}-set`);
    const volumeMounts = claims.map(([each]) => ({ name: each, mountPath: `/${each}` }));
    new ApiObject(this, 'StatefulSet', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name } },
      spec: {
        ...{ replicas: 1, serviceName: name, selector },
        template: { ...template, spec: { containers: [{ name: 'app', image, volumeMounts }] } },
        volumeClaimTemplates: claims.map(([each, storage]) => ({
          metadata: { name: each },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
        })),
      },
    });
  }
}

/** @param {readonly string[]} [createOnly] */
export const frozen = (createOnly) =>
  defineKind({
    ...{ crd, construct: /** @type {any} */ (Frozen), observes: true },
    children: [
      { apiVersion: 'apps/v1', kind: 'Deployment', ...(createOnly && { createOnly }) },
      { apiVersion: 'apps/v1', kind: 'StatefulSet', recreate: 'orphan' },
      { apiVersion: 'v1', kind: 'ConfigMap' },
    ],
  });
