import { expect, test } from 'vitest';
import { visible } from '../../../src/engine/preview/dry-run.js';
import { anObject, CONFIG_MAP, ownedBy } from '../support/builders.js';

test('what the API server, kubectl and we keep for ourselves is not shown', () => {
  const annotations = {
    note: 'hers',
    'reconstruct.kosmos.io/applied-hash': 'x',
    'applied-hash.reconstruct.kosmos.io/widget-controller': 'x',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
  };
  const meta = { uid: 'u', resourceVersion: '7', generation: 3, managedFields: [{}], annotations };
  const live = anObject(
    CONFIG_MAP,
    'web',
    { ...meta, ownerReferences: [ownedBy('web')] },
    { status: { phase: 'x' } },
  );
  const { blockOwnerDeletion, ...owner } = ownedBy('web');

  expect(blockOwnerDeletion).toBe(true);
  expect(visible(live)).toEqual(
    anObject(CONFIG_MAP, 'web', { annotations: { note: 'hers' }, ownerReferences: [owner] }),
  );
});
