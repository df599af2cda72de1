import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { describe, expect, test } from 'vitest';
import type { Reader } from '../../src/contract/controller.js';
import { defineCrd } from '../../src/contract/define-crd.js';
import { defineKind } from '../../src/contract/define-kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { render } from '../../src/synth/render.js';
import type { PropsOf } from '../../src/contract/typed-crd.js';
import { handOverReplicas, keepReplicas } from '../../src/contract/hand-over.js';

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

const crd = defineCrd({
  group: 'web.example.com',
  kind: 'Guestbook',
  description: 'As the page on kinds has it.',
  spec: {
    type: 'object',
    properties: { replicas: { type: 'integer', default: 1 }, maxReplicas: { type: 'integer' } },
  },
});

class Guestbook extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    new ApiObject(this, 'Deployment', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: { replicas: spec.maxReplicas === undefined ? spec.replicas : undefined },
    });
  }
}

/** What the compiler holds: no cast is needed. */
const guestbook = defineKind({
  crd,
  construct: Guestbook,
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment', keep: keepReplicas },
    { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
  ],
  handOver: ({ cr, children }) =>
    cr.spec.maxReplicas === undefined ? [] : handOverReplicas({ cr, children, start: cr.spec.replicas }),
});

test('in a kind, replicas pass when the construct leaves them out, and not before', () => {
  const [controller] = guestbook.controllers({ render });
  const stepsFor = (spec: object) => {
    const owned = { ...cr, metadata: { ...cr.metadata, uid: 'cr' }, spec };
    const children = [{ ...kept(7, [OURS]), kind: 'Deployment' }];
    const reader: Partial<Reader> = {
      get: () => owned,
      controlledBy: ({ kind }) => children.filter((child) => child.kind === kind),
    };
    const { apply } = controller!.reconcile('shop/web', reader as Reader, new Date(0));
    return apply.map(({ object, fieldManager }) => [fieldManager, object.spec]);
  };

  expect(stepsFor({ replicas: 3, maxReplicas: 9 })).toEqual([
    [HOLDER, { replicas: 7 }],
    [OURS, expect.not.objectContaining({ replicas: expect.anything() as unknown })],
  ]);
  expect(stepsFor({ replicas: 3 })).toEqual([[OURS, { replicas: 3 }]]);
});

describe('what is kept', () => {
  test('is the number, and whose word it is', () => {
    expect(kept(4, [OURS, 'kubectl']).replicas).toEqual({ value: 4, managers: [OURS, 'kubectl'] });
  });

  test('is little of an object that says little', () => {
    expect(keepReplicas({ ...cr, metadata: { name: 'web' } })).toEqual({ replicas: { managers: [] } });
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

  test('that are nobody’s are those of a new object, which begins as is said, or with the default', () => {
    expect(handOverReplicas({ cr, children: [kept(1, [])], start: 3 })).toEqual(held(3, VERSION));
    expect(handOverReplicas({ cr, children: [kept(1, [])], start: 0 })).toEqual(held(0, VERSION));
    expect(handOverReplicas({ cr, children: [kept(1, [])] })).toEqual([]);
  });

  test('that are nobody’s and not the default are the autoscaler’s, whose first word leaves no owner', () => {
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
