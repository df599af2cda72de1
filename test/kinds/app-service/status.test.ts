import { describe, expect, test } from 'vitest';
import { standardConditions } from '../../../src/contract/conditions.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { appServiceStatus } from '../../../src/kinds/app-service/status.js';

const PROGRESSING = {
  type: 'Progressing',
  status: 'True',
  reason: 'ReplicaSetUpdated',
  message: 'is progressing',
};
const OVERDUE = {
  type: 'Progressing',
  status: 'False',
  reason: 'ProgressDeadlineExceeded',
  message: 'ReplicaSet "web-1" has timed out progressing.',
};
const QUOTA = {
  type: 'ReplicaFailure',
  status: 'True',
  reason: 'FailedCreate',
  message: 'pods "web-1" is forbidden: exceeded quota: small',
};

/** The report on an AppService of a size whose Deployment has a status; the generation is 2 and observed. */
function report(size: number, status?: object, generation = 2) {
  const deployment: AnyObject = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop', generation },
    ...(status && { status: { observedGeneration: 2, ...status } }),
  };
  const service: AnyObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    status: { loadBalancer: {} },
  };
  return appServiceStatus({
    cr: {
      apiVersion: 'kosmos.io/v1',
      kind: 'AppService',
      metadata: { name: 'web', namespace: 'shop', generation: 7 },
      spec: { size, image: 'nginx:1.27' },
    },
    children: [service, deployment],
    now: new Date('2026-01-01T00:00:00Z'),
  });
}

function counts(replicas: number, updated: number, available: number) {
  return {
    replicas,
    updatedReplicas: updated,
    readyReplicas: available,
    availableReplicas: available,
    unavailableReplicas: replicas - available,
  };
}

describe('readiness', () => {
  test.each([
    {
      title: 'a Deployment that nobody has reported on',
      of: report(3),
      phase: 'progressing',
      reason: 'Pending',
      message: "The Deployment's controller has yet to report on it",
    },
    {
      title: 'a status from before the latest change',
      of: report(3, counts(3, 3, 3), 3),
      phase: 'progressing',
      reason: 'RollingOut',
      message: "The Deployment's controller has yet to see the latest change",
    },
    {
      title: 'a deadline exceeded before the latest change',
      of: report(3, { ...counts(3, 1, 2), conditions: [OVERDUE] }, 3),
      phase: 'progressing',
      reason: 'RollingOut',
      message: "The Deployment's controller has yet to see the latest change",
    },
    {
      title: 'replicas that are not updated yet',
      of: report(3, { ...counts(4, 1, 3), conditions: [PROGRESSING] }),
      phase: 'progressing',
      reason: 'RollingOut',
      message: '1 of 3 replicas run the present spec',
    },
    {
      title: 'replicas of an earlier spec that remain',
      of: report(3, counts(4, 3, 3)),
      phase: 'progressing',
      reason: 'RollingOut',
      message: 'Replicas of an earlier spec still to go: 1',
    },
    {
      title: 'replicas too many',
      of: report(1, counts(3, 3, 3)),
      phase: 'progressing',
      reason: 'RollingOut',
      message: 'Surplus replicas still to go: 2',
    },
    {
      title: 'replicas that are not available yet',
      of: report(3, counts(3, 3, 2)),
      phase: 'progressing',
      reason: 'RollingOut',
      message: '2 of 3 replicas are available',
    },
    {
      title: 'all replicas updated and available',
      of: report(3, counts(3, 3, 3)),
      phase: 'ready',
      reason: 'Available',
      message: '3 of 3 replicas are available',
    },
    {
      title: 'a failure that left nothing missing',
      of: report(3, { ...counts(3, 3, 3), conditions: [QUOTA] }),
      phase: 'ready',
      reason: 'Available',
      message: '3 of 3 replicas are available',
    },
    {
      title: 'size 0 and nothing left',
      of: report(0, {}),
      phase: 'ready',
      reason: 'ScaledToZero',
      message: 'The size is 0, and no replica is left',
    },
    {
      title: 'size 0 and a replica left',
      of: report(0, counts(1, 1, 1)),
      phase: 'progressing',
      reason: 'RollingOut',
      message: 'Surplus replicas still to go: 1',
    },
    {
      title: 'a deadline exceeded',
      of: report(3, { ...counts(4, 1, 3), conditions: [OVERDUE] }),
      phase: 'stalled',
      reason: 'ProgressDeadlineExceeded',
      message: 'ReplicaSet "web-1" has timed out progressing; 1 of 3 replicas run the present spec',
    },
    {
      title: 'replicas that cannot be created',
      of: report(3, { ...counts(1, 1, 1), conditions: [PROGRESSING, QUOTA] }),
      phase: 'failing',
      reason: 'ReplicaFailure',
      message: '1 of 3 replicas run the present spec; pods "web-1" is forbidden: exceeded quota: small',
    },
    {
      title: 'replicas that could not be created before the deadline',
      of: report(3, { ...counts(1, 1, 1), conditions: [OVERDUE, QUOTA] }),
      phase: 'stalled',
      reason: 'ProgressDeadlineExceeded',
      message:
        'ReplicaSet "web-1" has timed out progressing; 1 of 3 replicas run the present spec; ' +
        'pods "web-1" is forbidden: exceeded quota: small',
    },
  ])('$title: $phase, $reason', ({ of: { readiness }, phase, reason, message }) => {
    expect(readiness).toEqual({ phase, reason, message });
    const status = Object.fromEntries(standardConditions(readiness).map((c) => [c.type, c.status]));
    expect(status.Reconciling === 'True' && status.Stalled === 'True').toBe(false);
  });

  test('a Deployment that is gone is pending', () => {
    const { readiness, fields, conditions } = appServiceStatus({
      cr: {
        apiVersion: 'kosmos.io/v1',
        kind: 'AppService',
        metadata: { name: 'web' },
        spec: { size: 1, image: 'a' },
      },
      children: [],
      now: new Date(0),
    });

    expect(readiness.reason).toBe('Pending');
    expect({ fields, conditions }).toEqual({ fields: undefined, conditions: undefined });
  });
});

describe('fields', () => {
  test('counters are copied, and those that are 0 on the wire are 0', () => {
    const { fields } = report(2, { replicas: 2, updatedReplicas: 2, unavailableReplicas: 2 });

    expect(fields).toEqual({
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 0,
      availableReplicas: 0,
      unavailableReplicas: 2,
    });
  });

  test('counters that only some clusters keep are copied where they are', () => {
    const { fields } = report(1, { ...counts(1, 1, 1), terminatingReplicas: 0, collisionCount: 2 });

    expect(fields).toMatchObject({ terminatingReplicas: 0, collisionCount: 2 });
  });

  test("the Deployment's generation is not the custom resource's", () => {
    expect(report(1, counts(1, 1, 1)).fields).not.toHaveProperty('observedGeneration');
  });
});

describe('conditions', () => {
  test("are the Deployment's, in one order, without its times", () => {
    // GIVEN
    const times = { lastUpdateTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const available = {
      type: 'Available',
      status: 'True',
      reason: 'MinimumReplicasAvailable',
      message: 'enough',
    };
    const own = { type: 'SomebodysOwn', status: 'True', reason: 'X', message: '' };

    // WHEN
    const { conditions } = report(1, {
      ...counts(1, 1, 1),
      conditions: [QUOTA, PROGRESSING, own, available].map((condition) => ({ ...condition, ...times })),
    });

    // THEN
    expect(conditions).toEqual([available, PROGRESSING, QUOTA]);
  });

  test('have a reason and a message where the Deployment gives none', () => {
    const { conditions } = report(1, { conditions: [{ type: 'Available', status: 'Unknown' }] });

    expect(conditions).toEqual([{ type: 'Available', status: 'Unknown', reason: 'Available', message: '' }]);
  });
});
