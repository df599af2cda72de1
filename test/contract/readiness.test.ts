import { expect, it } from 'vitest';
import type { Phase } from '../../src/contract/conditions.js';
import type { AnyObject } from '../../src/contract/object.js';
import { keepStatus } from '../../src/values/projections.js';
import { childReadiness, dependencyReadiness, worstReadiness } from '../../src/values/readiness.js';

const METADATA = { namespace: 'shop', name: 'web', generation: 1 };

/** As it is kept of one that the API server sent. */
function child(type: string, status: object, spec: object = {}, metadata: object = {}): AnyObject {
  const [kind = '', apiVersion = ''] = type.split(' of ');
  return keepStatus({ apiVersion, kind, metadata: { ...METADATA, ...metadata }, spec, status });
}

const condition = (type: string, status: string, reason: string): object => ({
  conditions: [{ type, status, reason, message: 'said so' }],
});

const pods = (made: number, updated = made, available = updated): object => ({
  ...{ observedGeneration: 1, replicas: made, updatedReplicas: updated, availableReplicas: available },
});
const nodes = { observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3 };
const partition = (size: number): object => ({
  replicas: 3,
  updateStrategy: { rollingUpdate: { partition: size } },
});
const PASSED = condition('Progressing', 'False', 'ProgressDeadlineExceeded');
const REFUSED = condition('ReplicaFailure', 'True', 'FailedCreate');
const REFUSED_FOR_GOOD = {
  conditions: [
    { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'violates PodSecurity "x"' },
  ],
};
const PAUSED = condition('Progressing', 'Unknown', 'DeploymentPaused') as { conditions: object[] };
const RESUME = 'resume it with "kubectl rollout resume deployment/web --namespace shop"';
const PAUSED_AT_FIRST = {
  conditions: [
    ...PAUSED.conditions,
    { type: 'Available', status: 'False', reason: 'MinimumReplicasUnavailable', message: 'said so' },
  ],
};

it.each<[type: string, status: object, phase: Phase, message: string, spec?: object]>([
  ['Deployment of apps/v1', {}, 'progressing', 'yet to be seen'],
  ['Deployment of apps/v1', pods(2), 'ready', '2 of 2'],
  ['Deployment of apps/v1', pods(0), 'ready', '0 of 0'],
  ['Deployment of apps/v1', { ...pods(2, 2, 1), unavailableReplicas: 1 }, 'progressing', '1 of 2'],
  ['Deployment of apps/v1', pods(2, 1, 2), 'progressing', 'old pods still to go: 1'],
  ['Deployment of apps/v1', pods(4, 3, 4), 'progressing', 'old pods still to go: 1'],
  [
    'Deployment of apps/v1',
    { ...pods(4, 1, 3), unavailableReplicas: 1 },
    'progressing',
    'old pods still to go: 3',
  ],
  ['Deployment of apps/v1', { ...pods(0), unavailableReplicas: 1 }, 'progressing', '0 of 1'],
  ['Deployment of apps/v1', { ...pods(0), ...PASSED }, 'stalled', 'said so'],
  ['Deployment of apps/v1', { ...pods(0), ...REFUSED }, 'failing', 'said so'],
  ['Deployment of apps/v1', { ...pods(2, 0, 2), ...PAUSED }, 'stalled', RESUME],
  ['Deployment of apps/v1', { ...pods(2), ...PAUSED }, 'ready', '2 of 2'],
  ['Deployment of apps/v1', { ...pods(2, 2, 1), ...PAUSED }, 'progressing', '1 of 2'],
  ['Deployment of apps/v1', { ...pods(0), ...PAUSED_AT_FIRST }, 'stalled', RESUME],
  ['Deployment of apps/v1', { ...pods(0), ...REFUSED_FOR_GOOD }, 'stalled', 'violates PodSecurity'],
  ['Deployment of other.io/v1', {}, 'ready', 'is applied'],
  ['DaemonSet of apps/v1', { ...nodes, numberAvailable: 2 }, 'progressing', '2 of 3'],
  ['DaemonSet of apps/v1', { ...nodes, numberAvailable: 3 }, 'ready', '3 of 3'],
  [
    'DaemonSet of apps/v1',
    { ...nodes, numberAvailable: 3, updatedNumberScheduled: 1 },
    'progressing',
    '1 of 3 pods are updated',
  ],
  [
    'DaemonSet of apps/v1',
    { ...nodes, numberAvailable: 3, updatedNumberScheduled: 0 },
    'ready',
    '3 of 3',
    { updateStrategy: { type: 'OnDelete' } },
  ],
  ['StatefulSet of apps/v1', pods(3), 'ready', '3 of 3', { replicas: 3 }],
  ['StatefulSet of apps/v1', { observedGeneration: 1 }, 'progressing', '0 of 3', { replicas: 3 }],
  ['StatefulSet of apps/v1', pods(3), 'progressing', 'surplus pods still to go: 1', { replicas: 2 }],
  ['StatefulSet of apps/v1', pods(1), 'progressing', '1 of 3 pods are available', { replicas: 3 }],
  ['StatefulSet of apps/v1', pods(3, 1, 3), 'progressing', '1 of 3 pods are updated', { replicas: 3 }],
  ['StatefulSet of apps/v1', pods(3, 1, 3), 'ready', '3 of 3', partition(2)],
  ['StatefulSet of apps/v1', pods(3, 1, 3), 'progressing', '1 of 2 pods are updated', partition(1)],
  [
    'StatefulSet of apps/v1',
    pods(3, 0, 3),
    'ready',
    '3 of 3',
    { replicas: 3, updateStrategy: { type: 'OnDelete' } },
  ],
  ['ReplicaSet of apps/v1', pods(2, 0, 1), 'progressing', '1 of 2', { replicas: 2 }],
  ['ReplicaSet of apps/v1', pods(0), 'progressing', '0 of 2', { replicas: 2 }],
  ['ReplicaSet of apps/v1', pods(2, 0, 2), 'ready', '2 of 2', { replicas: 2 }],
  ['Job of batch/v1', {}, 'progressing', 'has yet to begin'],
  ['Job of batch/v1', { startTime: '2026-01-01T00:00:00Z' }, 'ready', 'is applied'],
  ['Job of batch/v1', condition('Complete', 'True', 'CompletionsReached'), 'ready', 'is applied'],
  ['Job of batch/v1', condition('Failed', 'True', 'BackoffLimitExceeded'), 'stalled', 'said so'],
  ['Job of batch/v1', condition('Suspended', 'True', 'JobSuspended'), 'ready', 'is applied'],
  ['PersistentVolumeClaim of v1', { phase: 'Pending' }, 'progressing', 'is Pending'],
  ['PersistentVolumeClaim of v1', { phase: 'Bound' }, 'ready', 'is applied'],
  ['Pod of v1', { phase: 'Succeeded', ...condition('Ready', 'False', 'PodCompleted') }, 'ready', 'succeeded'],
  ['Pod of v1', {}, 'progressing', 'yet to be seen'],
  ['Pod of v1', { phase: 'Pending' }, 'progressing', 'has yet to be scheduled'],
  [
    'Pod of v1',
    { phase: 'Pending', ...condition('PodScheduled', 'False', 'Unschedulable') },
    'progressing',
    'said so',
  ],
  [
    'Pod of v1',
    { phase: 'Pending', ...condition('Ready', 'False', 'ContainersNotReady') },
    'failing',
    'said so',
  ],
  ['AppService of kosmos.io/v1', condition('Stalled', 'True', 'Invalid'), 'stalled', 'said so'],
  ['AppService of kosmos.io/v1', condition('Reconciling', 'True', 'RollingOut'), 'progressing', 'said so'],
  ['Certificate of cert-manager.io/v1', {}, 'ready', 'is applied'],
  ['Certificate of cert-manager.io/v1', condition('Ready', 'True', 'Fine'), 'ready', 'is applied'],
  ['Certificate of cert-manager.io/v1', condition('Ready', 'False', 'Broken'), 'failing', 'said so'],
  ['Certificate of cert-manager.io/v1', condition('Ready', 'Unknown', 'Starting'), 'progressing', 'said so'],
])('%s with the status %j is %s: %s', (type, status, phase, message, spec) => {
  const readiness = childReadiness(child(type, status, spec));

  expect(readiness).toMatchObject({ phase, message: expect.stringContaining(message) as string });
});

it.each(['Deployment of apps/v1', 'AppService of kosmos.io/v1'])(
  '%s of an older spec is progressing',
  (type) => {
    const status = { ...pods(1), ...condition('Ready', 'True', 'Fine') };

    expect(childReadiness(child(type, status, {}, { generation: 2 })).message).toContain(
      'has yet to be seen',
    );
  },
);

it('a claim that is bound only with its first consumer holds that back no more than any other', () => {
  const claim = (phase: string) => dependencyReadiness(child('PersistentVolumeClaim of v1', { phase })).phase;
  expect([claim('Pending'), claim('Bound'), claim('Lost')]).toEqual(['ready', 'ready', 'progressing']);
});

it.each<[conditions: unknown, reason: string]>([
  [{}, 'Available'],
  ['x', 'Available'],
  [null, 'Available'],
  [[null, 5, { type: 'Ready', status: 'True', message: 5 }], 'Available'],
  [[{ type: 'ReplicaFailure', status: 'True', reason: 5, message: 5 }], 'ReplicaFailure'],
  [[{ type: 'Ready', status: 'False', reason: 'no words, please', message: 'a' }], 'NotReady'],
])('the conditions of another kind may be anything: %j', (conditions, reason) => {
  const any = child('Thing of other.io/v1', { conditions });
  expect(childReadiness(any).reason).toBe(reason);
  expect(typeof dependencyReadiness(any).message).toBe('string');
});

it('the worst of the parts counts, whatever their order', () => {
  const all = (['ready', 'progressing', 'failing', 'stalled'] as const).map((phase) => ({
    ...{ phase, reason: phase, message: phase },
  }));

  for (const worst of [3, 2, 1]) expect(worstReadiness(all.slice(0, worst + 1))).toEqual(all[worst]);
  expect(worstReadiness(all.toReversed())).toEqual(all[3]);
  expect(worstReadiness([]).phase).toBe('ready');
});

it.each<[state: string, status: object, phase: Phase]>([
  ['without a status', {}, 'progressing'],
  [
    'ready in an earlier generation',
    { conditions: [{ type: 'Ready', status: 'True', observedGeneration: 0 }] },
    'progressing',
  ],
  ['ready', { conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1 }] }, 'ready'],
  ['seen, without conditions', { observedGeneration: 1 }, 'ready'],
])('of a dependency that is a custom resource %s', (_, status, phase) => {
  expect(dependencyReadiness(child('Certificate of cert-manager.io/v1', status)).phase).toBe(phase);
});

it('a dependency that is a suspended Job names what resumes it', () => {
  const job = child('Job of batch/v1', condition('Suspended', 'True', 'JobSuspended'));
  expect(dependencyReadiness(job)).toMatchObject({
    phase: 'progressing',
    message: expect.stringContaining('spec.suspend') as string,
  });
});
