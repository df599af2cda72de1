import { describe, expect, test } from 'vitest';
import { finishOf, keepJob } from '../../../src/kinds/job-watcher/job.js';
import { at, liveJob, START } from './fixtures.js';

const condition = (type: string, status = 'True', lastTransitionTime: unknown = at(5)) => ({
  ...{ type, status, lastTransitionTime },
});

describe('finished', () => {
  test.each([
    [[condition('Complete')], { outcome: 'completed', at: START + 5000 }],
    [[condition('Failed')], { outcome: 'failed', at: START + 5000 }],
    [[condition('Suspended'), condition('Complete')], { outcome: 'completed', at: START + 5000 }],
    [
      [condition('Complete', 'True', '2026-01-01T01:00:05+01:00')],
      { outcome: 'completed', at: START + 5000 },
    ],
    // Never before its time.
    [[condition('Complete', 'True', '2026-01-01T00:00:05.1Z')], { outcome: 'completed', at: START + 6000 }],
  ])('%j: %j', (conditions, finish) => {
    expect(finishOf({ conditions })).toEqual(finish);
  });

  test.each([
    { conditions: [condition('SuccessCriteriaMet')] },
    { conditions: [condition('FailureTarget')] },
    { conditions: [condition('Complete', 'False')] },
    { conditions: [condition('Complete', 'Unknown')] },
    { conditions: [] },
    { conditions: [null] },
    { conditions: 'Complete' },
    { succeeded: 1, completionTime: at(1) },
    { failed: 3 },
    null,
    undefined,
  ])('not finished: %j', (status) => {
    expect(finishOf(status)).toBeUndefined();
  });

  test.each([
    [[condition('Complete'), condition('Failed')]],
    [[{ type: 'Complete', status: 'True' }]],
    [[condition('Complete', 'True', '')]],
    [[condition('Complete', 'True', 'yesterday')]],
    [[condition('Complete', 'True', '2026-01-01')]],
    [[condition('Complete', 'True', '2026-13-01T00:00:00Z')]],
    [[condition('Complete', 'True', 1767225605)]],
  ])('unclear, so never deleted: %j', (conditions) => {
    expect(finishOf({ conditions })).toBe('unclear');
  });
});

describe('what is kept of a Job', () => {
  test('is enough to judge and to delete it, and nothing of its template', () => {
    const controller = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      name: 'nightly',
      uid: 'c1',
      controller: true,
    };
    const live = liveJob({
      ended: 'Failed',
      spec: { template: { spec: { containers: [{ image: 'a' }] } }, ttlSecondsAfterFinished: 0 },
      metadata: {
        labels: { app: 'a', 'controller-uid': 'pi', 'job-name': 'pi' },
        annotations: {
          other: 'x',
          'batch.my.github.com/ttl-after-failed': '5s',
          'helm.sh/hook': 'post-install',
        },
        ownerReferences: [
          { ...controller, controller: false, uid: 'c0' },
          { ...controller, blockOwnerDeletion: true },
        ],
        managedFields: [{}],
        creationTimestamp: at(0),
      },
    });

    expect(keepJob(live)).toEqual({
      ...{ apiVersion: 'batch/v1', kind: 'Job' },
      metadata: {
        ...{ name: 'pi', namespace: 'default', uid: 'pi', resourceVersion: '1' },
        labels: { app: 'a', 'controller-uid': 'pi', 'job-name': 'pi' },
        ownerReferences: [controller],
      },
      finish: { outcome: 'failed', at: START },
      ...{ nativeTtl: true, tracked: true, overrides: { failed: 5 } },
    });
  });

  test.each([
    [{ annotations: { 'argocd.argoproj.io/tracking-id': 'a' } }, true],
    [{ annotations: { 'argocd.argoproj.io/hook': 'PostSync' } }, true],
    [{ labels: { 'kustomize.toolkit.fluxcd.io/name': 'a' } }, true],
    [{ labels: { 'helm.toolkit.fluxcd.io/name': 'a' } }, true],
    [{ annotations: { 'meta.helm.sh/release-name': 'a' } }, true],
    [{ annotations: { 'helm.sh/hook': 'test' } }, true],
    [{ labels: { 'app.kubernetes.io/instance': 'a' }, annotations: { 'example.com/hook': 'a' } }, undefined],
  ])('%j: tracked %s', (metadata, tracked) => {
    expect(keepJob(liveJob({ metadata })).tracked).toBe(tracked);
  });

  const prefix = 'batch.my.github.com/';
  test.each<[Record<string, string>, unknown]>([
    [{}, undefined],
    [{ keep: 'true' }, 'keep'],
    [{ keep: 'true', 'ttl-after-failed': 'x' }, 'keep'],
    [{ keep: 'false' }, undefined],
    [{ keep: 'yes' }, 'invalid'],
    [{ keep: '' }, 'invalid'],
    [{ 'ttl-after-completed': '1h' }, { completed: 3600 }],
    [
      { 'ttl-after-completed': '1h', 'ttl-after-failed': '0s', keep: 'false' },
      { completed: 3600, failed: 0 },
    ],
    [{ 'ttl-after-completed': '1d' }, 'invalid'],
    [{ 'ttl-after-completed': '-1s' }, 'invalid'],
    [{ 'ttl-after-completed': '1h', 'ttl-after-failed': '' }, 'invalid'],
  ])('annotations %j: %j', (given, overrides) => {
    const annotations = Object.fromEntries(
      Object.entries(given).map(([key, value]) => [prefix + key, value]),
    );

    expect(keepJob(liveJob({ metadata: { annotations } })).overrides).toEqual(overrides);
  });
});
