import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { indexedJob } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, two Pods at first', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(indexedJob, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text) => text] },
  );
});

test('the next Pod follows one that has succeeded, and none once all have', () => {
  const namesAt = (/** @type {object} */ status, /** @type {string[]} */ phases) => {
    const observed = phases.map((phase, index) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `batch-${index}` } },
      status: { phase },
    }));
    return render(indexedJob, sample, { observed, status }).map(({ metadata: { name } }) => name);
  };

  assert.deepEqual(namesAt({}, ['Succeeded', 'Running']), ['batch-0', 'batch-1', 'batch-2']);
  assert.deepEqual(namesAt({ complete: true }, ['Succeeded']), ['batch-0']);
});
