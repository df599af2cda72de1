import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { ring } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was', (t) => {
  t.assert.fileSnapshot(Yaml.stringify(...render(ring, sample)), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

const member = (index, isCurrent, status = 'True') => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `cache-${index}`, namespace: 'default' } },
  ...{ isCurrent, status: { conditions: [{ type: 'Ready', status }] } },
});
const rendered = (observed) => render(ring, sample, { observed }).map(({ metadata }) => metadata.name);
const all = ['cache-0', 'cache-1', 'cache-2'];

test('an outdated member is left out while the others are ready, and no second one', () => {
  assert.deepEqual(rendered([member(0, true), member(1, true), member(2, true)]), all);
  assert.deepEqual(rendered([member(0, true), member(1, false), member(2, false)]), ['cache-0', 'cache-2']);
  assert.deepEqual(rendered([member(0, true), member(2, false)]), all);
  assert.deepEqual(rendered([member(0, true, 'False'), member(1, true), member(2, false)]), all);
  assert.deepEqual(rendered([member(0, false), member(1, true), member(2, false, 'False')]), [
    'cache-0',
    'cache-1',
  ]);
});
