import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { webApp } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, in another namespace', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(webApp, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text) => text] },
  );
});

const places = (metadata, spec) =>
  render(webApp, { ...sample, metadata, spec }).map(
    (object) => `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`,
  );

test('in its own namespace its objects have its name, and it has those that are enabled', () => {
  const metadata = { namespace: 'team-a', name: 'shop' };
  assert.deepEqual(places(metadata, {}), ['Deployment team-a/shop', 'Service team-a/shop']);
  assert.deepEqual(places(metadata, { service: { enabled: false } }), ['Deployment team-a/shop']);
});

test('elsewhere no two have a name in common', () => {
  const spec = { namespace: 'shared' };
  const [[first], [second]] = [
    places({ namespace: 'a', name: 'b-c' }, spec),
    places({ namespace: 'a-b', name: 'c' }, spec),
  ];
  assert.match(first, /^Deployment shared\/a-b-c-[0-9a-f]{8}$/);
  assert.match(second, /^Deployment shared\/a-b-c-[0-9a-f]{8}$/);
  assert.notEqual(first, second);
});
