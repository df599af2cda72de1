// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { nap } from './kind.mjs';

const labels = { app: 'web' };
const container = { name: 'web', image: 'registry.k8s.io/pause:3.10.1' };

await sweepCommand(nap, async () => readSamples(nap, new URL('sample.yaml', import.meta.url)), {
  surroundings: ({ namespace }) => ({
    objects: [
      {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace } },
        spec: {
          ...{ replicas: 2, selector: { matchLabels: labels } },
          template: { metadata: { labels }, spec: { containers: [container] } },
        },
      },
    ],
  }),
  notWalked: ['deployment'],
});
