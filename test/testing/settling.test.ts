import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { causes } from '../../src/testing/checks.js';

const ours = { manager: 'web-controller', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:paused': {} } } };
const theirs = { manager: 'kubectl-edit', operation: 'Update', fieldsV1: { 'f:spec': { 'f:paused': {} } } };
const unrelated = { manager: 'other', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } };

function deployment(spec: object, managedFields: readonly object[] = []): AnyObject {
  const annotations = { 'reconstruct.kosmos.io/applied-hash': JSON.stringify(spec) };
  const metadata = { namespace: 'shop', name: 'web', annotations, managedFields };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec };
}

/** What is said of an apply of a spec, which the server keeps as another one. */
function said({
  last,
  sent,
  kept = sent,
  was = kept,
}: Record<'sent', object> & Partial<Record<'last' | 'kept' | 'was', object>>) {
  const applies = (spec: object) =>
    new Map([
      [
        'web',
        { manager: 'web-controller', sent: deployment(spec), kept: deployment(kept, [ours, unrelated]) },
      ],
    ]);
  return causes(applies(sent), applies(last ?? sent), [deployment(was, [theirs, unrelated])]);
}

test.each([
  [
    'a render that differs each time',
    { last: { paused: false }, sent: { paused: true } },
    'spec.paused is true instead of false: the render differs from the last one',
  ],
  [
    'a field that another manager changes',
    { sent: { paused: true }, was: { paused: false, replicas: 2 } },
    'spec.paused is false instead of true: changed by kubectl-edit',
  ],
  [
    'an empty list that the server drops',
    { sent: { containers: [{ name: 'a', env: [] }] }, kept: { containers: [{ image: 'x', name: 'a' }] } },
    'spec.containers.0.env is absent instead of []: dropped by the server because it is empty',
  ],
  [
    'a field that the server drops',
    { sent: { paused: true }, kept: { replicas: 1 } },
    'spec.paused is absent instead of true: dropped by the server',
  ],
  [
    'a quantity that the server writes in another way',
    { sent: { cpu: '1000m' }, kept: { cpu: '1' } },
    'spec.cpu is "1" instead of "1000m": normalised by the server',
  ],
  [
    'an apply that changes no value',
    { sent: { paused: true } },
    'no field differs, but what managedFields record',
  ],
])('of %s, object, field, both values and the cause are reported', (_what, states, cause) => {
  expect(said(states)).toBe(`; Deployment shop/web: ${cause}`);
});
