import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { keepStatus } from '../../src/contract/projections.js';
import { childReadiness, worstReadiness } from '../../src/contract/readiness.js';

function child(kind: string, apiVersion: string, status?: object, generation = 1): AnyObject {
  const metadata = { namespace: 'shop', name: 'web', generation };
  return { apiVersion, kind, metadata, ...(status && { status }) };
}

const deployment = (status?: object, generation = 1): AnyObject =>
  child('Deployment', 'apps/v1', status && { observedGeneration: 1, ...status }, generation);

const condition = (type: string, status: string, reason: string): object => ({
  conditions: [{ type, status, reason, message: 'said so' }],
});

describe('childReadiness', () => {
  it.each([
    ['no status yet', deployment(), 'progressing', 'yet to be seen'],
    [
      'a spec not yet seen',
      deployment({ replicas: 1, updatedReplicas: 1, availableReplicas: 1 }, 2),
      'progressing',
      'yet to be seen',
    ],
    ['all pods', deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 2 }), 'ready', '2 of 2'],
    ['no pods wanted', deployment({}), 'ready', '0 of 0'],
    [
      'pods missing',
      deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 1, unavailableReplicas: 1 }),
      'progressing',
      '1 of 2',
    ],
    [
      'old pods',
      deployment({ replicas: 2, updatedReplicas: 1, availableReplicas: 2 }),
      'progressing',
      '2 of 2',
    ],
    ['pods not even made', deployment({ unavailableReplicas: 1 }), 'progressing', '0 of 1'],
    [
      'a deadline passed',
      deployment(condition('Progressing', 'False', 'ProgressDeadlineExceeded')),
      'stalled',
      'said so',
    ],
    ['pods refused', deployment(condition('ReplicaFailure', 'True', 'FailedCreate')), 'failing', 'said so'],
  ])('judges a Deployment with %s', (_, object, phase, message) => {
    const readiness = childReadiness(object);
    expect(readiness.phase).toBe(phase);
    expect(readiness.message).toContain('Deployment shop/web');
    expect(readiness.message).toContain(message);
  });

  it('counts the pods of a DaemonSet by node', () => {
    const status = {
      observedGeneration: 1,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberAvailable: 2,
    };
    expect(childReadiness(child('DaemonSet', 'apps/v1', status))).toMatchObject({ phase: 'progressing' });
    expect(childReadiness(child('DaemonSet', 'apps/v1', { ...status, numberAvailable: 3 }))).toMatchObject({
      phase: 'ready',
    });
  });

  const all = { replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3 };

  it.each<[string, object, object, string, string]>([
    ['all pods', { replicas: 3 }, all, 'ready', '3 of 3'],
    ['pods that a quota refuses', { replicas: 3 }, {}, 'progressing', '0 of 3'],
    ['one pod made of three', { replicas: 3 }, one(), 'progressing', '1 of 3'],
    ['a pod too many', { replicas: 2 }, all, 'progressing', '3 of 2'],
    ['old pods', { replicas: 3 }, { ...all, updatedReplicas: 1 }, 'progressing', '3 of 3'],
    [
      'old pods below its partition',
      { replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } },
      ...([{ ...all, updatedReplicas: 1 }, 'ready', '3 of 3'] as const),
    ],
    [
      'old pods above its partition',
      { replicas: 3, updateStrategy: { rollingUpdate: { partition: 1 } } },
      ...([{ ...all, updatedReplicas: 1 }, 'progressing', '3 of 3'] as const),
    ],
    [
      'old pods that its user deletes',
      { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      ...([{ ...all, updatedReplicas: 0 }, 'ready', '3 of 3'] as const),
    ],
    ['no pods wanted', { replicas: 0 }, {}, 'ready', '0 of 0'],
  ])('judges a StatefulSet with %s, as it is kept', (_, spec, status, phase, message) => {
    const whole = { ...child('StatefulSet', 'apps/v1', { observedGeneration: 1, ...status }), spec };
    const readiness = childReadiness(keepStatus(whole));
    expect(readiness).toMatchObject({ phase, message: expect.stringContaining(message) as string });
  });

  function one(): object {
    return { replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1 };
  }

  it('judges a ReplicaSet by the pods that it is to have', () => {
    const replicaSet = (status: object): AnyObject =>
      keepStatus({
        ...child('ReplicaSet', 'apps/v1', { observedGeneration: 1, ...status }),
        spec: { replicas: 2 },
      });
    expect(childReadiness(replicaSet({ replicas: 2, availableReplicas: 1 })).phase).toBe('progressing');
    expect(childReadiness(replicaSet({ replicas: 0 })).phase).toBe('progressing');
    expect(childReadiness(replicaSet({ replicas: 2, availableReplicas: 2 })).phase).toBe('ready');
  });

  it.each([
    ['has not begun', {}, 'progressing', 'NotStarted'],
    ['is under way', { startTime: '2026-01-01T00:00:00Z', active: 1 }, 'ready', 'Available'],
    ['is done', condition('Complete', 'True', 'CompletionsReached'), 'ready', 'Available'],
    ['has failed', condition('Failed', 'True', 'BackoffLimitExceeded'), 'stalled', 'BackoffLimitExceeded'],
    ['is suspended', condition('Suspended', 'True', 'JobSuspended'), 'ready', 'Available'],
  ])('judges a Job that %s', (_, status, phase, reason) => {
    expect(childReadiness(child('Job', 'batch/v1', status))).toMatchObject({ phase, reason });
  });

  it('waits for a PersistentVolumeClaim to be bound, and takes a Pod that has succeeded for one that is ready', () => {
    expect(childReadiness(child('PersistentVolumeClaim', 'v1', { phase: 'Pending' })).phase).toBe(
      'progressing',
    );
    expect(childReadiness(child('PersistentVolumeClaim', 'v1', { phase: 'Bound' })).phase).toBe('ready');
    const done = { phase: 'Succeeded', ...condition('Ready', 'False', 'PodCompleted') };
    expect(childReadiness(child('Pod', 'v1', done)).phase).toBe('ready');
    expect(childReadiness(child('Pod', 'v1', {})).phase).toBe('progressing');
  });

  it.each([
    ['of an older spec', { observedGeneration: 1, ...condition('Ready', 'True', 'Fine') }, 'progressing'],
    ['that stalls', condition('Stalled', 'True', 'Invalid'), 'stalled'],
    ['that is under way', condition('Reconciling', 'True', 'RollingOut'), 'progressing'],
  ])('judges anything else %s by the conditions of kstatus', (_, status, phase) => {
    expect(childReadiness(child('AppService', 'kosmos.io/v1', status, 2)).phase).toBe(phase);
  });

  it.each([
    ['without conditions', {}, 'ready', 'Available'],
    ['that is ready', condition('Ready', 'True', 'Fine'), 'ready', 'Available'],
    ['that is not ready', condition('Ready', 'False', 'Broken'), 'failing', 'Broken'],
    ['that is not known', condition('Ready', 'Unknown', 'Starting'), 'progressing', 'RollingOut'],
  ])('judges anything else %s by its Ready condition', (_, status, phase, reason) => {
    expect(childReadiness(child('Certificate', 'cert-manager.io/v1', status))).toMatchObject({
      phase,
      reason,
    });
  });

  it('does not take a Deployment of another group for one that counts pods', () => {
    expect(childReadiness(child('Deployment', 'other.io/v1'))).toMatchObject({ phase: 'ready' });
  });
});

describe('worstReadiness', () => {
  const part = (phase: 'ready' | 'progressing' | 'failing' | 'stalled') => ({
    phase,
    reason: phase,
    message: phase,
  });

  it('is the worst of the parts, whatever their order', () => {
    const all = [part('ready'), part('progressing'), part('failing'), part('stalled')];
    for (const worst of [3, 2, 1]) expect(worstReadiness(all.slice(0, worst + 1))).toEqual(all[worst]);
    expect(worstReadiness(all.toReversed())).toEqual(part('stalled'));
  });

  it('is ready where nothing is wrong, or nothing is there', () => {
    expect(worstReadiness([part('ready')]).phase).toBe('ready');
    expect(worstReadiness([]).phase).toBe('ready');
  });
});
