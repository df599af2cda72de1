import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSamples, render } from 'cdk8s-reconstruct/testing';
import { team } from './team.ts';

test('a Team is a namespace, and its members may read Pods in it', async () => {
  const [sample] = await readSamples(team, new URL('sample.yaml', import.meta.url));
  const [namespace, role, binding] = render(team, sample);

  assert.equal(namespace?.metadata.name, 'shop');
  assert.deepEqual(
    [role, binding].map((object) => object?.metadata.namespace),
    ['shop', 'shop'],
  );
  assert.deepEqual(binding?.subjects, [
    { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' },
  ]);
});
