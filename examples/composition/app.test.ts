import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { render } from 'cdk8s-reconstruct/testing';
import { cache } from './cache.ts';
import { app } from './kind.ts';
import { product } from './product.ts';

const folder = import.meta.dirname;
const read = (file: string): AnyObject => (Yaml.load(join(folder, file)) as [AnyObject])[0];
const sample = read('sample.yaml');

for (const [kind, file] of [
  [app, 'sample.yaml'],
  [product, 'product.yaml'],
] as const)
  test(`${file} is rendered as it was`, (t: TestContext) => {
    const objects = render(kind, read(file));

    t.assert.fileSnapshot(Yaml.stringify(...objects), join(folder, '__snapshots__', file), {
      serializers: [(text) => text as string],
    });
  });

const cached = (name: string) =>
  render(cache, { apiVersion: 'apps.example.com/v1', kind: 'Cache', metadata: { name }, spec: {} });

test('a name that CloudNativePG or a Service would refuse is refused', () => {
  const named = { ...sample, metadata: { name: '9lives' } };

  assert.throws(() => render(app, named), /with a letter first/);
  assert.throws(() => cached('9lives'), /with a letter first/);
});

test('the objects of a chart have the name of each custom resource, and its images are as they were', () => {
  const names = ['one', 'two'].map((name) =>
    cached(name).map(({ kind, metadata }) => `${kind} ${metadata.name}`),
  );

  assert.deepEqual(names, [
    ['Service one-cache', 'StatefulSet one-cache'],
    ['Service two-cache', 'StatefulSet two-cache'],
  ]);
  const left = JSON.stringify(cached('one')).match(/[^"]*release-name[^"]*/g);
  assert.deepEqual(left, ['registry.example.com/release-name/valkey:8.1']);
});
