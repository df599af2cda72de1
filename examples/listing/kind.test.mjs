import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { listing } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, with its entry in the namespace of the catalog', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(listing, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    { serializers: [(text) => text] },
  );
});
