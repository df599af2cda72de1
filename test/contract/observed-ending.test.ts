import { expect, test } from 'vitest';
import { renderObserving } from '../../src/render/settling.js';

test('a child that is being deleted is observed until it is gone, also over a second rendering', () => {
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name: 'a', namespace: 'x', deletionTimestamp: '2026-01-01T00:00:00Z' },
  };
  const cr = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a', namespace: 'x' }, spec: {} };
  // The last rendering left it out.
  const { observed } = renderObserving(
    cr as never,
    { controlled: [pod], own: [pod], last: new Set(), types: [] },
    () => [] as never,
  );
  expect(observed).toEqual([pod]);
});
