import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { database, role } from './kinds.mjs';

const folder = import.meta.dirname;
const [api, shop] = Yaml.load(join(folder, 'sample.yaml'));
const sqlOf = ([job]) => job?.spec.template.spec.containers[0].args.at(-1);

test('the sample is rendered as it was', (t) => {
  const all = [...render(role, api, { references: [shop] }), ...render(database, shop)];
  t.assert.fileSnapshot(Yaml.stringify(...all), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text],
  });
});

test('a role waits for its database, and is dropped on deletion, unless that has gone', () => {
  const made = { ...shop, status: { owner: 'shop-owner' } };
  assert.match(sqlOf(render(role, api, { references: [made] })), /^CREATE ROLE/);
  assert.deepEqual(render(role, api, { references: [{ ...shop, status: {} }] }), []);
  assert.match(sqlOf(render(role, api, { references: [made], deleted: true })), /^DROP ROLE/);
  assert.deepEqual(render(role, api, { deleted: true }), []);
});

test('a database is dropped where its spec says so, on the server of the settings', () => {
  const settings = { database: { host: 'db.example.com' } };
  const [job] = render(database, shop, { deleted: true, settings });
  assert.ok(job.spec.template.spec.containers[0].args.includes('db.example.com'));
  assert.deepEqual(render(database, { ...shop, spec: { name: 'shop' } }, { deleted: true }), []);
});
