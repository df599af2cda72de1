import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { cluster } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was: the first instance alone', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(cluster, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text) => text] },
  );
});

const claim = (serial, metadata = {}) => ({
  ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  metadata: {
    name: `pg-${serial}`,
    annotations: { 'postgresql.example.com/initialized': 'true' },
    ...metadata,
  },
});
const job = (name) => ({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } });
const pod = (serial, { isCurrent = true, isReady = true } = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `pg-${serial}` }, isCurrent },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
});
const instance = (serial, options) => [claim(serial), pod(serial, options)];
const rendered = (observed, status, spec = {}) =>
  render(cluster, { ...sample, spec: { ...sample.spec, ...spec } }, { observed, status })
    .filter(({ kind }) => kind === 'Job' || kind === 'Pod')
    .map(({ metadata }) => `${metadata.name} ${metadata.labels.role ?? 'Job'}`)
    .sort();
const healthy = { currentPrimary: 'pg-1', latestGeneratedNode: 3 };
const [one, two, three] = ['pg-1 primary', 'pg-2 replica', 'pg-3 replica'];
const all = [instance(1), instance(2), instance(3)].flat();

test('instances join one at a time, once all are ready', () => {
  const status = { currentPrimary: 'pg-1', latestGeneratedNode: 1 };
  assert.deepEqual(rendered(instance(1), status), [one, 'pg-2 replica', 'pg-2-join Job']);
  assert.deepEqual(rendered(instance(1, { isReady: false }), status), [one]);
});

test('data is initialized once: a Job that is there goes on, and none is for a claim that says so', () => {
  const claimed = claim(1, { annotations: {} });
  const begun = ['pg-1 replica', 'pg-1-init Job'];
  for (const observed of [[], [claimed], [claimed, job('pg-1-init')], [job('pg-1-init')]])
    assert.deepEqual(rendered(observed, {}), begun);
  // Not before the claim says that its data is there.
  assert.deepEqual(rendered([claimed, job('pg-1-init'), pod(1, { isReady: false })], {}), begun);
  assert.deepEqual(rendered([claimed, pod(1, { isReady: false })], {}), ['pg-1 replica']);
  assert.deepEqual(rendered([claim(1)], {}), ['pg-1 replica']);
  assert.throws(() => rendered([], { latestGeneratedNode: 1 }), /No claim is left/);
});

test('an instance whose claim is deleted is lost, and the next serial joins', () => {
  const going = claim(3, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  const left = [...instance(1), ...instance(2)];
  assert.deepEqual(rendered([...left, going, pod(3)], healthy), [one, two, 'pg-4 replica', 'pg-4-join Job']);
});

test('one instance is removed at a time, and never the primary', () => {
  const status = { ...healthy, currentPrimary: 'pg-3' };
  const [first, last] = ['pg-1 replica', 'pg-3 primary'];
  assert.deepEqual(rendered(all, status, { instances: 1 }), [first, last]);
  assert.deepEqual(rendered([...instance(1), ...instance(3)], status, { instances: 1 }), [last]);
});

test('Pods of another image are replaced one at a time, the primary last', () => {
  const old = { isCurrent: false };
  assert.deepEqual(rendered([...instance(1, old), ...instance(2, old), ...instance(3)], healthy), [
    one,
    three,
  ]);
  assert.deepEqual(rendered([...instance(1, old), ...instance(2), ...instance(3)], healthy), [two, three]);
  const down = [...instance(1, old), ...instance(2, { isReady: false }), ...instance(3, old)];
  assert.deepEqual(rendered(down, healthy), [one, two, three]);
});
