import { describe, expect, test } from 'vitest';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { counts, OVERDUE, PROGRESSING, report } from './report.js';

const START = Date.UTC(2026, 0, 1);
const at = (seconds: number): Date => new Date(START + seconds * 1_000);

/** A pod that its node has been preparing since this second. */
const pod = (second: number, more: object = {}) => ({
  startingSince: at(second).toISOString().replace('.000Z', 'Z'),
  ...more,
});

interface Given {
  readonly spec?: Partial<AppServiceSpec>;
  readonly pods?: readonly object[];
  readonly seconds?: number;
  readonly condition?: object;
}

function told({ spec, pods = [pod(0)], seconds = 10, condition = PROGRESSING }: Given) {
  const status = { ...counts(3, 3, 0), conditions: [condition] };
  const { readiness, requeueAt } = report({
    ...{ status, pods, now: at(seconds) },
    ...(spec && { spec }),
  });
  return { ...readiness, requeueAt };
}

const LOOK =
  'see the events of the pods for the reason: kubectl describe pods --namespace shop --selector kosmos.io/appservice=web';

describe('a pod that its node prepares', () => {
  test('is on its way for ten seconds, after which it is looked at again', () => {
    expect(told({ seconds: 9 })).toEqual({
      ...{ phase: 'progressing', reason: 'RollingOut', message: '0 of 3 replicas are available' },
      requeueAt: at(10),
    });
  });

  test('waits for its sandbox from then on, where nothing is mounted', () => {
    expect(told({})).toEqual({
      ...{ phase: 'progressing', reason: 'WaitingForSandbox', requeueAt: undefined },
      message:
        '0 of 3 replicas are available; a pod has been waiting for more than 10 s for its sandbox or, ' +
        'on nodes before Kubernetes 1.36, its image; ' +
        LOOK,
    });
  });

  test('waits for its volumes from then on, and what has to be there is named', () => {
    const files = [
      { path: '/z', configMap: { name: 'settings' } },
      { path: '/a', configMap: { name: 'settings', items: [{ key: 'a', path: 'a' }] } },
      { path: '/b', configMap: { name: 'extra', optional: true } },
      { path: '/c', secret: { name: 'tls' } },
      { path: '/d', secret: { name: 'spare', optional: true } },
      { path: '/e', persistentVolumeClaim: { claimName: 'data' } },
      { path: '/f', emptyDir: {} },
      { path: '/g', token: {} },
    ];
    expect(told({ spec: { files, serviceAccountName: 'shop' } })).toMatchObject({
      reason: 'WaitingForVolumes',
      message:
        '0 of 3 replicas are available; ' +
        'a pod has been waiting for more than 10 s for its volumes, its sandbox or, on nodes before Kubernetes 1.36, its image; ' +
        'these have to be there, with the keys that are asked for: ' +
        `ConfigMap "settings", PersistentVolumeClaim "data", Secret "tls", ServiceAccount "shop"; ${LOOK}`,
    });
    const token = [{ path: '/f', token: {} }];
    expect(told({ spec: { files: token } }).message).toContain('ServiceAccount "default"');
  });

  test('counts only if it is of the present spec', () => {
    const pods = [pod(0, { replicaSet: 'web-0' })];
    expect(told({ pods })).toMatchObject({ reason: 'RollingOut', requeueAt: undefined });
  });

  test('is told after what keeps others from running', () => {
    const trouble = { reason: 'ImagePullBackOff', message: 'image "a" can\'t be pulled' };
    const { phase, reason, message } = told({ pods: [pod(0), { trouble }] });
    expect([phase, reason]).toEqual(['failing', 'ImagePullBackOff']);
    expect(message).toMatch(/can't be pulled; a pod has been waiting for more than 10 s for its sandbox/);
  });

  test('is told with the deadline', () => {
    const { phase, reason, message } = told({ condition: OVERDUE });
    expect([phase, reason]).toEqual(['stalled', 'ProgressDeadlineExceeded']);
    expect(message).toContain(LOOK);
  });
});

test('the first of several pods decides when to look again', () => {
  expect(told({ pods: [pod(3), pod(1), pod(2)] })).toMatchObject({ requeueAt: at(11) });
  // What is told already needs no other look.
  expect(told({ pods: [pod(3), pod(0)] })).toMatchObject({
    reason: 'WaitingForSandbox',
    requeueAt: undefined,
  });
  expect(told({ pods: [] }).requeueAt).toBeUndefined();
});
