import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podHistory } from './kind.mjs';

const [controller] = podHistory.controllers({ render: () => [] });
const [, pods] = controller.watches;

/** @returns names of the Pods that are deleted, and the message of the status */
function planned(spec, ...objects) {
  const cr = {
    ...{ apiVersion: 'pods.example.com/v1', kind: 'PodHistory', spec },
    metadata: { name: 'failed' },
  };
  const kept = objects.flatMap((object) => pods.keep(object) ?? []);
  const reader = { mappedTo: ({ kind }) => (kind === 'Pod' ? kept : [cr]) };
  const plan = controller.reconcile('default', reader, new Date(0));
  const [{ status }] = plan.conclude([]).status;
  return [plan.steps.map(({ object }) => object.metadata.name), status.conditions[0].message];
}

const pod = (name, phase, labels = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', status: { phase } },
  metadata: { name, namespace: 'default', labels, creationTimestamp: `2026-01-01T00:00:0${name.at(-1)}Z` },
});

test('the oldest are deleted, and none that runs or has other labels', () => {
  const all = [
    pod('a1', 'Failed'),
    pod('a3', 'Failed'),
    pod('a2', 'Failed', { app: 'shop' }),
    pod('b1', 'Running'),
  ];

  assert.deepEqual(planned({ phase: 'Failed', keep: 1 }, ...all), [
    ['a2', 'a1'],
    '3 Pods with the phase Failed are left',
  ]);
  assert.deepEqual(planned({ phase: 'Failed', keep: 0, labels: { app: 'shop' } }, ...all)[0], ['a2']);
  assert.deepEqual(planned({ phase: 'Failed', keep: 3 }, ...all)[0], []);
});
