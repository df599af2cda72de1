import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { render } from 'cdk8s-reconstruct/testing';
import { app } from './kind.ts';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml')) as [AnyObject];

test('the sample is rendered as it was', (t: TestContext) => {
  const objects = render(app, sample);

  t.assert.fileSnapshot(Yaml.stringify(...objects), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text as string],
  });
});

test('a name that CloudNativePG would refuse is refused', () => {
  const named = { ...sample, metadata: { name: '9lives' } };

  assert.throws(() => render(app, named), /with a letter first/);
});
