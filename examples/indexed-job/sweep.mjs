// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { indexedJob } from './kind.mjs';

await sweepCommand(indexedJob, async () => readSamples(indexedJob, new URL('sample.yaml', import.meta.url)), {
  // Its Pods have to end first.
  waits: () => true,
  // Pods that run already go on.
  notWalked: ['parallelism'],
});
