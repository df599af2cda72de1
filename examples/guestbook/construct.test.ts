import { test } from 'node:test';
import { readSamples, render } from 'cdk8s-reconstruct/testing';
import { kind } from './kind.ts';

test('the sample renders to the snapshot', async (t) => {
  const [sample] = await readSamples(kind, new URL('sample.yaml', import.meta.url));

  t.assert.snapshot(render(kind, sample));
});
