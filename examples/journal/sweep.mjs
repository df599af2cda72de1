// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { journal } from './kind.mjs';

await sweepCommand(journal, async () => {
  const [sample] = await readSamples(journal, new URL('sample.yaml', import.meta.url));
  // Each sample is edited into the next: here to another image, so with another migration.
  return [sample, { ...sample, spec: { image: 'registry.example.com/orders:1.5', replicas: 1 } }];
});
