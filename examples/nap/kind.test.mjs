import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { nap } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, to the fields alone', (t) => {
  t.assert.fileSnapshot(Yaml.stringify(...render(nap, sample)), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

test('awake, it says nothing of the replicas', () => {
  const [deployment] = render(nap, { ...sample, spec: { ...sample.spec, awake: true } });
  assert.equal(deployment.spec, undefined);
});
