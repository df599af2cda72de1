import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { publicAddress } from './kind.mjs';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml'));

test('the sample is rendered as it was, without an address yet', (t) => {
  t.assert.fileSnapshot(
    Yaml.stringify(...render(publicAddress, sample)),
    join(folder, '__snapshots__/sample.yaml'),
    {
      serializers: [(text) => text],
    },
  );
});

test('the address of the load balancer is rendered, as a name where it has one', () => {
  const addressBy = (/** @type {object} */ entry) => {
    const status = { loadBalancer: { ingress: [entry] } };
    const observed = [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop' }, status }];
    return render(publicAddress, sample, { observed }).find(({ kind }) => kind === 'ConfigMap')?.data;
  };

  assert.deepEqual(addressBy({ ip: '192.0.2.1' }), { address: '192.0.2.1' });
  assert.deepEqual(addressBy({ ip: '192.0.2.1', hostname: 'lb.example.com' }), { address: 'lb.example.com' });
});
