import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { servicePerPod } from './controller.mjs';

const folder = import.meta.dirname;
const [database] = Yaml.load(join(folder, 'database.yaml'));

test('the StatefulSet of the sample gets these Services', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(servicePerPod, database)),
    join(folder, '__snapshots__/database.yaml'),
    { serializers: [(text) => text] },
  );
});
