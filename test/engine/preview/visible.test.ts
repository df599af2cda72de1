import { expect, test } from 'vitest';
import { visible, withoutPicks } from '../../../src/engine/preview/dry-run.js';
import { anObject, CONFIG_MAP, ownedBy, SERVICE } from '../support/builders.js';

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

test('node ports and addresses that the API server would pick are left out, and others are not', () => {
  const service = (spec: object) => anObject(SERVICE, 'web', {}, { spec });
  const before = service({ clusterIP: '10.0.0.1', ports: [{ name: 'a', port: 80, nodePort: 30_001 }] });
  const wanted = service({
    ports: [
      { name: 'a', port: 80 },
      { name: 'b', port: 81 },
      { name: 'c', port: 82, nodePort: 30_002 },
    ],
  });
  const after = service({
    clusterIP: '10.0.0.1',
    healthCheckNodePort: 31_000,
    ports: [
      { name: 'a', port: 80, nodePort: 30_001 },
      { name: 'b', port: 81, nodePort: 31_234 },
      { name: 'c', port: 82, nodePort: 30_002 },
    ],
  });

  expect(withoutPicks(after, before, wanted)).toEqual(
    service({
      clusterIP: '10.0.0.1',
      ports: [
        { name: 'a', port: 80, nodePort: 30_001 },
        { name: 'b', port: 81 },
        { name: 'c', port: 82, nodePort: 30_002 },
      ],
    }),
  );
  const map = anObject(CONFIG_MAP, 'web', {}, { spec: { ports: [{ nodePort: 1 }] } });
  expect(withoutPicks(map, undefined, map)).toBe(map);
});
