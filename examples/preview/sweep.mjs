// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { preview } from './kind.mjs';

await sweepCommand(preview, async () => readSamples(preview, new URL('sample.yaml', import.meta.url)), {
  // It counts from the creation, so another one has more time left.
  notWalked: ['ttlSeconds'],
});
