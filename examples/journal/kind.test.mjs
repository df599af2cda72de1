import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { journal } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, in the order in which it is applied', (t) => {
  const objects = render(journal, sample);

  t.assert.fileSnapshot(Yaml.stringify(...objects), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
  const kinds = objects.map(({ kind }) => kind);
  assert.deepEqual(kinds.slice(-3), ['StatefulSet', 'Job', 'Deployment']);
});
