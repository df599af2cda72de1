import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { preview } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(preview, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text) => text] },
  );
});

test('once it has expired, nothing is left of it', () => {
  assert.deepEqual(render(preview, sample, { status: { expired: true } }), []);
});
