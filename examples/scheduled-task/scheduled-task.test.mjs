import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { scheduledTask } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was', (t) => {
  const manifests = Yaml.stringify(...render(scheduledTask, sample));

  t.assert.fileSnapshot(manifests, join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

test('without a script there is only a CronJob', () => {
  const { script, ...spec } = sample.spec;

  const objects = render(scheduledTask, { ...sample, spec });

  assert.deepEqual(
    objects.map(({ kind }) => kind),
    ['CronJob'],
  );
});
