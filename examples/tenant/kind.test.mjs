import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { tenant } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));
const [database] = Yaml.load(join(folder, 'database.yaml'));

/** @param {object} secret */
const made = (secret) => render(tenant, sample, { references: [secret] });

test('the sample is rendered as it was', (t) => {
  t.assert.fileSnapshot(Yaml.stringify(...made(database)), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

test('another URL of the database replaces the Pods, and stands nowhere', () => {
  // The checksum of a Secret is keyed by its UID, which only one in a cluster has.
  const stored = { ...database, metadata: { ...database.metadata, uid: '0b5e' } };
  const moved = { ...stored, stringData: { DATABASE_URL: 'postgres://elsewhere' } };
  const template = (/** @type {any[]} */ objects) =>
    objects.find(({ kind }) => kind === 'Deployment').spec.template;

  assert.notDeepEqual(template(made(moved)), template(made(stored)));
  assert.ok(!JSON.stringify(made(moved)).includes('elsewhere'));
});

test('a missing Secret is said', () => {
  assert.throws(() => render(tenant, sample), /Secret orders-database .*isn't there/);
});
