// @ts-check
import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { listing } from './kind.mjs';

await sweepCommand(listing, async () => {
  const [sample] = await readSamples(listing, new URL('sample.yaml', import.meta.url));
  return [sample, { ...sample, spec: { ...sample.spec, title: 'Another', listed: false } }];
});
