import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { render } from 'cdk8s-reconstruct/testing';
import { database, role } from './kinds.ts';

const folder = import.meta.dirname;
const [api, shop] = Yaml.load(join(folder, 'sample.yaml')) as [AnyObject, AnyObject];
const sqlOf = ([job]: readonly AnyObject[]) => JSON.stringify(job?.spec);

test('the sample is rendered as it was', (t) => {
  const all = [...render(role, api, { references: [shop] }), ...render(database, shop)];
  t.assert.fileSnapshot(Yaml.stringify(...all), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text: string) => text],
  });
});

test('a role waits for its database, and is dropped on deletion, with what it owns where that is there', () => {
  const made = { ...shop, status: { owner: 'shop-owner' } };
  assert.match(sqlOf(render(role, api, { references: [made] })), /CREATE ROLE/);
  assert.deepEqual(render(role, api, { references: [{ ...shop, status: {} }] }), []);
  assert.match(sqlOf(render(role, api, { references: [made], deleted: true })), /REASSIGN.*DROP ROLE/);
  assert.doesNotMatch(sqlOf(render(role, api, { deleted: true })), /REASSIGN/);
});

test('a database is dropped where its spec says so, on the server of the settings', () => {
  const settings = { database: { host: 'db.example.com' } };
  assert.match(sqlOf(render(database, shop, { deleted: true, settings })), /db.example.com.*DROP DATABASE/);
  assert.deepEqual(render(database, { ...shop, spec: {} }, { deleted: true }), []);
});
