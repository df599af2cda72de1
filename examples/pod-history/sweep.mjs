// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { podHistory } from './kind.mjs';

await sweepCommand(
  podHistory,
  async () => {
    const [sample] = await readSamples(podHistory, new URL('sample.yaml', import.meta.url));
    return [sample, { ...sample, spec: { phase: 'Succeeded', keep: 0 } }];
  },
  {
    // Pods that others have left, which it deletes.
    surroundings: ({ namespace, round }) => ({
      objects: ['Failed', 'Succeeded'].flatMap((phase) =>
        ['1', '2', '3'].map((name) => ({
          ...{ apiVersion: 'v1', kind: 'Pod' },
          metadata: { name: `${phase.toLowerCase()}-${round}-${name}`, namespace, labels: { app: 'shop' } },
          spec: {
            containers: [{ name: 'job', image: 'registry.k8s.io/pause:3.10.1' }],
            restartPolicy: 'Never',
            // The nodes of the sandbox would run it again.
            schedulerName: 'none',
          },
          status: { phase },
        })),
      ),
    }),
  },
);
