import { describe, expect, test } from 'vitest';
import { finishOf, keepJob } from '../../../src/kinds/job-watcher/job.js';
import { at, liveJob, START } from './fixtures.js';

const ended = (type: string, status = 'True') => ({ type, status, lastTransitionTime: at(5) });

describe('finished', () => {
  test.each([
    [[ended('Complete')], 'completed', 5],
    [[ended('Failed')], 'failed', 5],
    [[ended('Suspended'), ended('Complete')], 'completed', 5],
  ])('%j: %s', (conditions, outcome, seconds) => {
    // Pods that failed before a retry, or one that succeeded, say nothing.
    expect(finishOf({ succeeded: 1, failed: 1, conditions })).toEqual({
      ...{ outcome, at: START + seconds * 1000 },
    });
  });

  test.each([
    ...[ended('SuccessCriteriaMet'), ended('FailureTarget'), ended('Complete', 'False')].map((one) => ({
      conditions: [one],
    })),
    ...[{ conditions: [] }, { succeeded: 1, completionTime: at(1) }, { failed: 3 }, undefined],
  ])('not finished: %j', (status) => {
    expect(finishOf(status)).toBeUndefined();
  });

  test.each([[[ended('Complete'), ended('Failed')]], [[{ type: 'Complete', status: 'True' }]]])(
    'unclear, so never deleted: %j',
    (conditions) => {
      expect(finishOf({ conditions })).toBe('unclear');
    },
  );
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
    const labels = { app: 'a', 'controller-uid': 'pi', 'job-name': 'pi' };
    const live = liveJob({
      ended: 'Failed',
      spec: {
        template: { spec: { containers: [{ args: ['x'.repeat(1_000_000)] }] } },
        ttlSecondsAfterFinished: 0,
      },
      metadata: {
        labels,
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(200_000),
          'batch.my.github.com/ttl-after-failed': '5s',
          'helm.sh/hook': 'post-install',
        },
        ownerReferences: [
          { ...controller, controller: false, uid: 'c0' },
          { ...controller, blockOwnerDeletion: true },
        ],
        ...{ managedFields: [{}], creationTimestamp: at(0) },
      },
    });

    expect(keepJob(live)).toEqual({
      ...{ apiVersion: 'batch/v1', kind: 'Job' },
      metadata: {
        ...{ name: 'pi', namespace: 'default', uid: 'pi', resourceVersion: '1' },
        ...{ labels, ownerReferences: [controller] },
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
    expect(keepJob(liveJob({ metadata }))?.tracked).toBe(tracked);
  });

  test.each([
    [100, true],
    [101, false],
  ])('%i labels: kept %s', (count, isKept) => {
    const labels = Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, '']));
    expect(keepJob(liveJob({ metadata: { labels } })) !== undefined).toBe(isKept);
  });

  test.each<[Record<string, string>, unknown]>([
    [{}, undefined],
    [{ keep: 'true', 'ttl-after-failed': 'x' }, 'keep'],
    [{ keep: 'false' }, undefined],
    [{ keep: 'yes' }, 'invalid'],
    [{ keep: '' }, 'invalid'],
    [
      { 'ttl-after-completed': '1h', 'ttl-after-failed': '0s' },
      { completed: 3600, failed: 0 },
    ],
    [{ 'ttl-after-completed': '1d' }, 'invalid'],
    [{ 'ttl-after-completed': '-1s' }, 'invalid'],
    [{ 'ttl-after-completed': '1h', 'ttl-after-failed': '' }, 'invalid'],
  ])('annotations %j: %j', (given, overrides) => {
    const entries = Object.entries(given).map(([key, value]) => [`batch.my.github.com/${key}`, value]);
    const metadata = { annotations: Object.fromEntries(entries) as Record<string, string> };

    expect(keepJob(liveJob({ metadata }))?.overrides).toEqual(overrides);
  });
});
