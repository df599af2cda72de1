import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { database } from './kinds.ts';

await sweepCommand(database, async () => {
  const [shop] = await readSamples(database, new URL('sample.yaml', import.meta.url));
  return [shop, { ...shop, spec: {} }];
});
