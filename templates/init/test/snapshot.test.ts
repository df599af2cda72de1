import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { kind } from '../src/kind.ts';

const project = join(import.meta.dirname, '..');
const [sample] = Yaml.load(join(project, 'samples/gizmo.yaml'));

test('the sample renders to the snapshot', (t) => {
  const manifests = Yaml.stringify(...render(kind, sample));

  t.assert.fileSnapshot(manifests, join(project, 'test/snapshots/gizmo.yaml'), {
    serializers: [(text) => text],
  });
});

test('a field that the schema does not have is refused, with its path', () => {
  const mistaken = { ...sample, spec: { ...sample.spec, colour: 'blue' } };

  assert.throws(() => render(kind, mistaken), /spec\.colour: unknown field/);
});
