import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Yaml } from 'cdk8s';
import { readSamples, render } from 'cdk8s-reconstruct/testing';
import { kind } from './kind.ts';

test('the sample is rendered as it was', async (t: TestContext) => {
  const [sample] = await readSamples(kind, new URL('sample.yaml', import.meta.url));
  const objects = Yaml.stringify(...render(kind, sample));

  t.assert.fileSnapshot(objects, join(import.meta.dirname, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text as string],
  });
});
