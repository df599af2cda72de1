import { describe, expect, test } from 'vitest';
import {
  factsOf,
  isPodOf,
  lastEvents,
  podSelector,
  verdictByChildren,
  verdictOf,
} from '../../../src/cli/tree/model.js';
import type { ChildStatus } from '../../../src/cli/tree/model.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';
import { anObject, DEPLOYMENT, ownedBy, SERVICE, widget } from '../../engine/support/builders.js';

const POD = { apiVersion: 'v1', kind: 'Pod' };
const replicaSet = (name: string) => ({ ...ownedBy(name), apiVersion: 'apps/v1', kind: 'ReplicaSet' });

const childrenOf = (phases: readonly ChildStatus['phase'][]) =>
  phases.map((phase): ChildStatus => ({
    ...{ apiVersion: 'v1', kind: 'Service', name: phase, uid: phase, phase, message: '', pods: [] },
  }));

function cr(status: object, generation = 2): AnyObject {
  return widget('web', { generation }, status);
}

describe('the verdict', () => {
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: `${type}Reason`,
    message: 'm',
  });

  test.each([
    [['Ready True', 'Stalled False'], 'Ready', 'ReadyReason'],
    [['Ready False', 'Reconciling True'], 'Reconciling', 'ReconcilingReason'],
    [['Ready False', 'Stalled True', 'Reconciling True'], 'Stalled', 'StalledReason'],
    [['Ready Unknown'], 'Reconciling', 'ReadyReason'],
    [[], 'Unknown', 'NotSeen'],
  ])('of %j is %s', (given, word, reason) => {
    const conditions = given.map((each) => condition(...(each.split(' ') as [string, string])));
    const verdict = verdictOf(cr({ observedGeneration: 2, conditions }));
    expect(verdict).toMatchObject({ word, reason, current: true });
  });

  test('is not of the present generation until that was observed', () => {
    const conditions = [condition('Ready', 'True')];
    expect(verdictOf(cr({ observedGeneration: 1, conditions })).current).toBe(false);
    expect(verdictOf(cr({ conditions })).current).toBe(false);
  });
});

describe('the verdict by the children', () => {
  const unknown = { word: 'Unknown', reason: 'NotSeen', message: '', current: false } as const;

  test.each([
    [['ready', 'ready'], 'Ready'],
    [['ready', 'progressing'], 'Reconciling'],
    [['ready', 'failing'], 'Reconciling'],
    [['progressing', 'stalled'], 'Stalled'],
  ] as const)('of %j is %s', (phases, word) => {
    const verdict = verdictByChildren({ verdict: unknown, children: childrenOf(phases) });
    expect(verdict).toMatchObject({ word, reason: 'ByChildren' });
  });

  test('is none without children, with unseen ones, and where a controller has reported', () => {
    const children = childrenOf(['ready']);
    const unseen = [{ plural: 'services', forbidden: true }];
    expect(verdictByChildren({ verdict: unknown, children: [] })).toBeUndefined();
    expect(verdictByChildren({ verdict: unknown, children, unseen })).toBeUndefined();
    expect(verdictByChildren({ verdict: { ...unknown, word: 'Ready' }, children })).toBeUndefined();
  });
});

describe('facts', () => {
  test('are the other conditions, with the reason where they do not hold; of warnings, where they do', () => {
    const conditions = [
      { type: 'Ready', status: 'True', reason: 'a', message: 'a' },
      { type: 'Progressing', status: 'True', reason: 'a', message: 'a' },
      { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'held' },
      { type: 'Programmed', status: 'False', reason: 'Pending', message: 'not yet' },
      { type: 'Overlapping', status: 'False', reason: 'None', message: 'none' },
      { type: 'ClockSkewed', status: 'True', reason: 'Skewed', message: 'by an hour' },
      { type: 'Waiting', status: 'True', reason: 'WaitingForDependency', message: 'Job a waits' },
      { type: 'Rotated', status: 'True', reason: 'ValuesMade', message: 'spring' },
      { type: 'UpdatePending', status: 'True', reason: 'RollsPods', message: 'Build 0a1b2c3d: web rolls' },
    ];
    expect(factsOf(cr({ conditions }))).toEqual([
      { name: 'Accepted', text: 'True' },
      { name: 'Programmed', text: 'False (Pending: not yet)' },
      { name: 'ClockSkewed', text: 'True (Skewed: by an hour)' },
      { name: 'Waiting', text: 'True (WaitingForDependency: Job a waits)' },
      { name: 'Rotated', text: 'True (ValuesMade: spring)' },
      { name: 'UpdatePending', text: 'True (RollsPods: Build 0a1b2c3d: web rolls)' },
    ]);
  });

  test('of a kind without children are the printer columns of its status, too', () => {
    const status = { lastRun: { matched: 9, deleted: 0 }, nextDeletion: '2026-01-01T00:05:00Z' };
    expect(factsOf({ ...cr(status), ...jobWatcher.type }, jobWatcher.crd)).toEqual([
      { name: 'Matched', text: '9' },
      { name: 'Deleted', text: '0' },
      { name: 'Next', text: '2026-01-01T00:05:00Z' },
    ]);
    const addresses = ['10.0.0.1', 'db.example.com'];
    expect(factsOf({ ...cr({ addresses }), ...streamIngress.type }, streamIngress.crd)).toEqual([
      { name: 'Address', text: '10.0.0.1, db.example.com' },
    ]);
  });
});

describe('a status of another form', () => {
  test.each([
    null,
    'fine',
    { conditions: null },
    { conditions: 'none' },
    { conditions: [null, 7, { type: 'Ready', status: true, message: {} }, { type: 'Other', reason: null }] },
  ])('%j is read as far as it goes', (status) => {
    const odd = { ...cr({}), status } as unknown as AnyObject;
    expect(typeof verdictOf(odd).message).toBe('string');
    expect(factsOf(odd, jobWatcher.crd).every(({ text }) => typeof text === 'string')).toBe(true);
  });
});

describe('a pod', () => {
  const labels = { 'pod-template-hash': '5f' };
  const ofWeb = anObject(POD, 'web-5f-a', { ownerReferences: [replicaSet('web-5f')], labels });
  const web = anObject(DEPLOYMENT, 'web', { uid: 'uid-web' });

  test("belongs to the Deployment whose ReplicaSet has made it, and to no namesake's", () => {
    expect(isPodOf(web, ofWeb)).toBe(true);
    expect(isPodOf(anObject(SERVICE, 'web'), ofWeb)).toBe(false);
    expect(isPodOf(anObject(DEPLOYMENT, 'we'), ofWeb)).toBe(false);
    expect(isPodOf(web, anObject(POD, 'web-5f-b', { labels }))).toBe(false);
    const set = anObject({ apiVersion: 'apps/v1', kind: 'StatefulSet' }, 'db', { uid: 'uid-db' });
    expect(isPodOf(set, anObject(POD, 'db-0', { ownerReferences: [ownedBy('db')] }))).toBe(true);
  });

  test('is found by the label of the custom resource where it bears it, else by the selector', () => {
    const own = 'kosmos.io/appservice=web';
    const with_ = (matchLabels: object) => ({ ...web, spec: { selector: { matchLabels } } });
    expect(podSelector(with_({ 'kosmos.io/appservice': 'web' }), own)).toBe('kosmos.io/appservice=web');
    expect(podSelector(with_({ app: 'x', tier: 'y' }), own)).toBe('app=x,tier=y');
    expect(
      podSelector(anObject(SERVICE, 'web', {}, { spec: { selector: { app: 'x' } } }), own),
    ).toBeUndefined();
  });
});

test('events are sorted by what they matter: warnings, those of the custom resource, the rest', () => {
  const event = (reason: string, type: string, uid: string, second: number): AnyObject =>
    anObject(
      { apiVersion: 'events.k8s.io/v1', kind: 'Event' },
      reason.toLowerCase(),
      {},
      {
        ...{ reason, type, regarding: { kind: 'Any', name: uid, uid } },
        eventTime: `2026-01-01T00:00:0${second}.000000Z`,
      },
    );
  const events = [
    ...[event('Pulled', 'Normal', 'pod', 9), event('Created', 'Normal', 'pod', 8)],
    ...[event('Started', 'Normal', 'pod', 7), event('Planned', 'Normal', 'cr', 3)],
    ...[event('Applied', 'Normal', 'cr', 4), event('Failed', 'Warning', 'pod', 1)],
  ];
  const child = childrenOf(['ready']).map((each) => ({ ...each, uid: 'pod' }));
  const found = lastEvents('cr', child, events);
  expect(found.map(({ reason }) => reason)).toEqual(['Failed', 'Applied', 'Planned', 'Pulled', 'Created']);
});
