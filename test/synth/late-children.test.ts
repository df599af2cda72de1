import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { renderObserving } from '../../src/render/settling.js';

const claim = (name: string): AnyObject => ({
  ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { namespace: 'shop', name } },
});
const cr = {
  apiVersion: 'x.example.com/v1',
  kind: 'X',
  metadata: { namespace: 'shop', name: 'x' },
  spec: {},
};

test('what was applied and is seen late, after a start with an old list, is observed, not pruned unseen', () => {
  const own = [claim('one'), claim('two')];
  const { observed } = renderObserving(
    cr,
    {
      ...{ controlled: own, own, types: [] },
      // Of a rendering for which the list had the first alone.
      last: new Set(['PersistentVolumeClaim shop/one']),
    },
    // Such as a cluster of databases: it keeps those that it sees.
    (found) => found.map(({ metadata }) => claim(metadata.name)),
  );
  expect(observed.map(({ metadata }) => metadata.name)).toEqual(['one', 'two']);
});

test('what is being deleted is observed until it is gone, also where the last rendering left it out', () => {
  const gone = claim('one');
  const own = [{ ...gone, metadata: { ...gone.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }];
  const { observed } = renderObserving(cr, { controlled: own, own, types: [], last: new Set() }, () => []);
  expect(observed).toEqual(own);
});
