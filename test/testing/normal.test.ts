import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { SHARED_HASH_PREFIX } from '../../src/contract/names.js';
import { normal } from '../../src/testing/sweep/normal.js';

const cr = { name: 'web', namespace: 'shop', uid: 'uid-of-web' };

/** A Service that two managers have applied to, the first of them its node port. */
function service(nodePort: number): AnyObject {
  const entry = (manager: string, spec: object) => ({
    ...{ manager, operation: 'Apply' },
    fieldsV1: {
      'f:metadata': { 'f:annotations': { [`f:${SHARED_HASH_PREFIX}${manager}`]: {} } },
      'f:spec': spec,
    },
  });
  const port = { 'k:{"port":80,"protocol":"TCP"}': { 'f:port': {}, 'f:nodePort': {} } };
  const metadata = {
    ...{ namespace: 'shop', name: 'web', uid: 'own-uid' },
    managedFields: [entry('ports', { 'f:ports': port }), entry('selector', { 'f:selector': {} })],
  };
  const spec = { clusterIP: '10.0.0.1', ports: [{ port: 80, nodePort }] };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec };
}

test('what one manager has applied is compared, whatever another has', () => {
  expect(normal([service(30_001)], cr)).toMatchObject({
    'Service <name>': { spec: { clusterIP: 'chosen', ports: [{ port: 80, nodePort: 30_001 }] } },
  });
});
