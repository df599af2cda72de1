import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { handOverReplicas, keepReplicas } from '../../src/author/hand-over.js';

const IDENTITY = { namespace: 'shop', name: 'web', uid: 'uid' };
const VERSION = { resourceVersion: '7' };
const OURS = 'guestbook-controller';
const HOLDER = 'guestbook-replicas';

const cr = {
  apiVersion: 'web.example.com/v1',
  kind: 'Guestbook',
  metadata: { namespace: 'shop', name: 'web' },
};

/** As it is kept of one that the API server sent. */
function kept(replicas: number | undefined, managers: readonly string[], metadata: object = {}): AnyObject {
  const managedFields = [
    ...managers.map((manager) => ({ manager, fieldsV1: { 'f:spec': { 'f:replicas': {} } } })),
    { manager: OURS, fieldsV1: { 'f:spec': { 'f:selector': {} } } },
    { manager: 'kube-controller-manager', fieldsV1: { 'f:status': { 'f:replicas': {} } } },
  ];
  const type = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  const sent = { ...type, metadata: { ...IDENTITY, managedFields }, spec: { replicas } };
  return { ...type, metadata: { ...IDENTITY, ...VERSION, ...metadata }, ...keepReplicas(sent) };
}

describe('what is kept', () => {
  test('is the number, and whose word it is', () => {
    expect(kept(4, [OURS, 'kubectl']).replicas).toEqual({ value: 4, managers: [OURS, 'kubectl'] });
  });

  test('is of thousands of managers a few', () => {
    const many = [OURS, ...Array.from({ length: 5_000 }, (_, index) => `made-up-${index}`)];
    expect(kept(4, many).replicas).toEqual({ value: 4, managers: many.slice(0, 10) });
  });
});

describe('replicas', () => {
  const held = (replicas: number, version: object = {}) => [
    {
      object: {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { ...IDENTITY, ...version },
        spec: { replicas },
      },
      fieldManager: HOLDER,
    },
  ];

  test('that are ours are handed over as they are, whatever new ones begin with', () => {
    expect(handOverReplicas({ cr, children: [kept(7, [OURS])], start: 3 })).toEqual(held(7));
    expect(handOverReplicas({ cr, children: [kept(0, [OURS])] })).toEqual(held(0));
  });

  test('without an owner are those of a new object, which begins as is said, or with the default', () => {
    expect(handOverReplicas({ cr, children: [kept(1, [])], start: 3 })).toEqual(held(3, VERSION));
    expect(handOverReplicas({ cr, children: [kept(1, [])], start: 0 })).toEqual(held(0, VERSION));
    expect(handOverReplicas({ cr, children: [kept(1, [])] })).toEqual([]);
  });

  test('without an owner and not the default are the autoscaler’s, whose first word leaves no owner', () => {
    expect(handOverReplicas({ cr, children: [kept(6, [])], start: 3 })).toEqual(held(6, VERSION));
    expect(handOverReplicas({ cr, children: [kept(0, [])], start: 3 })).toEqual(held(0, VERSION));
    expect(handOverReplicas({ cr, children: [kept(6, [])] })).toEqual([]);
  });

  test.each([
    ['ours still, and held already', [OURS, HOLDER]],
    ['held', [HOLDER]],
    ["the autoscaler's", ['kube-controller-manager']],
    ["ours and the autoscaler's", [OURS, 'kube-controller-manager']],
  ])('that are %s stay as they are', (_, managers) => {
    expect(handOverReplicas({ cr, children: [kept(7, managers)], start: 3 })).toEqual([]);
  });

  test('of every child that keeps them are handed over, and of no other, nor of one that goes', () => {
    const other = { apiVersion: 'v1', kind: 'Service', metadata: IDENTITY };
    const going = kept(5, [OURS], { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const children = [other, kept(2, [OURS]), going, kept(4, [OURS])];

    expect(handOverReplicas({ cr, children })).toEqual([...held(2), ...held(4)]);
  });
});
