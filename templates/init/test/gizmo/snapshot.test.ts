import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { readSamples, render } from 'cdk8s-reconstruct/testing';
import { kind } from '../../src/gizmo/kind.ts';

const [sample] = await readSamples(kind, new URL('../../samples/gizmo.yaml', import.meta.url));

test('the sample renders to the snapshot; "npm run snapshots" records an intended change', (t) => {
  const manifests = Yaml.stringify(...render(kind, sample));
  const snapshot = join(import.meta.dirname, 'snapshot.yaml');
  // The first run records it.
  if (!existsSync(snapshot)) writeFileSync(snapshot, manifests);

  t.assert.fileSnapshot(manifests, snapshot, { serializers: [(text) => text] });
});

test('a field that the schema does not have is refused, with its path', () => {
  const mistaken = { ...sample, spec: { ...sample.spec, colour: 'blue' } };

  assert.throws(() => render(kind, mistaken), /spec\.colour: unknown field/);
});
