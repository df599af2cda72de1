// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { cluster } from './kind.mjs';

await sweepCommand(
  cluster,
  async () => {
    const [sample] = await readSamples(cluster, new URL('sample.yaml', import.meta.url));
    // A Pod that is deleted comes back before another instance is elected.
    return [1, 2].map((instances) => ({ ...sample, spec: { instances, failoverDelay: 600 } }));
  },
  {
    // Serials are never used again, and another instance may be the primary.
    keepsEarlier: () => true,
  },
);
