import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { render } from 'cdk8s-reconstruct/testing';
import { rabbitmq } from './kind.ts';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml')) as [AnyObject];

test('the sample is rendered as it was', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(rabbitmq, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text: string) => text] },
  );
});

test('a single server has nothing to rebalance, and without storage no claim', () => {
  const kinds = render(rabbitmq, { ...sample, spec: { persistence: { storageGi: 0 } } }).map(
    ({ kind }) => kind,
  );
  assert.ok(!kinds.includes('Job') && !kinds.includes('PersistentVolumeClaim'));
});

test('after each rollout another Job rebalances, as a Job has its image for good', () => {
  const jobOf = (image: string) =>
    render(rabbitmq, { ...sample, spec: { replicas: 3, image } }).find(({ kind }) => kind === 'Job');
  assert.notEqual(jobOf('one')?.metadata.name, jobOf('two')?.metadata.name);
});
