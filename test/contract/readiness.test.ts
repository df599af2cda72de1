import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
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
