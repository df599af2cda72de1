// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { ring } from './kind.mjs';

await sweepCommand(ring, async () => {
  const [sample] = await readSamples(ring, new URL('sample.yaml', import.meta.url));
  return [sample, { ...sample, spec: { ...sample.spec, members: 2 } }];
});
