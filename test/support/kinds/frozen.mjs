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
    },
  }),
});

class Frozen extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: readonly [{ apiVersion: 'apps/v1', kind: 'Deployment', createOnly: readonly string[] }] }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { image, tier, claim }, observed }) {
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
    if (claim)
      new ApiObject(this, 'StatefulSet', {
        ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name } },
        spec: {
          ...{ replicas: 1, serviceName: name, ...pod(`${name}-set`) },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: claim } } },
            },
          ],
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
