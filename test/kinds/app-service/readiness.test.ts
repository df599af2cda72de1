import { describe, expect, test } from 'vitest';
import { standardConditions } from '../../../src/contract/conditions.js';
import { condition, counts, failedCreate, OVERDUE, PROGRESSING, QUOTA, report } from './report.js';

const VIOLATIONS =
  'allowPrivilegeEscalation != false (container "web" must set securityContext.allowPrivilegeEscalation=false), ' +
  'seccompProfile (pod or container "web" must set securityContext.seccompProfile.type)';
const RESTRICTED = failedCreate(`violates PodSecurity "restricted:latest": ${VIOLATIONS}`);
const BASELINE = failedCreate(
  'violates PodSecurity "baseline:v1.34": hostPort (container "web" uses hostPort 80)',
);
const ROOT = {
  reason: 'ImageRunsAsRoot',
  message: 'the image of container "web" runs as root, and runAsNonRoot is set',
};
const PULL = { reason: 'ImagePullBackOff', message: 'image "a" of container "web" can\'t be pulled' };
const CRASH = { reason: 'CrashLoopBackOff', message: 'container "web" ends again and again' };
const NONE = counts(3, 3, 0);
const autoscaling = { maxReplicas: 9 };

describe('a rollout', () => {
  test.each([
    {
      title: 'a Deployment that is not there',
      of: report({}),
      expected: ['progressing', 'Pending', "The Deployment's controller has yet to report on it"],
    },
    {
      title: 'a Deployment that nobody has reported on',
      of: report({ status: { observedGeneration: undefined } }),
      expected: ['progressing', 'Pending', "The Deployment's controller has yet to report on it"],
    },
    {
      title: 'a status from before the latest change',
      of: report({ status: counts(3, 3, 3), generation: 3 }),
      expected: ['progressing', 'RollingOut', "The Deployment's controller has yet to see the latest change"],
    },
    {
      title: 'a deadline exceeded before the latest change',
      of: report({ status: { ...counts(3, 1, 2), conditions: [OVERDUE] }, generation: 3 }),
      expected: ['progressing', 'RollingOut', "The Deployment's controller has yet to see the latest change"],
    },
    {
      title: 'replicas that are not updated yet',
      of: report({ status: { ...counts(4, 1, 3), conditions: [PROGRESSING] } }),
      expected: ['progressing', 'RollingOut', '1 of 3 replicas run the present spec'],
    },
    {
      title: 'replicas of an earlier spec that remain',
      of: report({ status: counts(4, 3, 3) }),
      expected: ['progressing', 'RollingOut', 'Replicas of an earlier spec still to go: 1'],
    },
    {
      title: 'replicas too many',
      of: report({ spec: { size: 1 }, status: counts(3, 3, 3) }),
      expected: ['progressing', 'RollingOut', 'Surplus replicas still to go: 2'],
    },
    {
      title: 'replicas that are not available yet',
      of: report({ status: counts(3, 3, 2) }),
      expected: ['progressing', 'RollingOut', '2 of 3 replicas are available'],
    },
    {
      title: 'all replicas updated and available',
      of: report({ status: counts(3, 3, 3) }),
      expected: ['ready', 'Available', '3 of 3 replicas are available'],
    },
    {
      title: 'a failure and a pod in trouble that left nothing missing',
      of: report({ status: { ...counts(3, 3, 3), conditions: [QUOTA] }, pods: [{ trouble: CRASH }] }),
      expected: ['ready', 'Available', '3 of 3 replicas are available'],
    },
    {
      title: 'size 0 and nothing left',
      of: report({ spec: { size: 0 }, status: {} }),
      expected: ['ready', 'ScaledToZero', 'The size is 0, and no replica is left'],
    },
    {
      title: 'size 0 and a replica left',
      of: report({ spec: { size: 0 }, status: counts(1, 1, 1) }),
      expected: ['progressing', 'RollingOut', 'Surplus replicas still to go: 1'],
    },
  ])('$title: $expected', ({ of: { readiness }, expected }) => {
    expectReadiness(readiness, expected);
  });
});

describe('with autoscaling, what is wanted is what the Deployment is scaled to', () => {
  test.each([
    {
      title: 'more than the size, and all there',
      of: report({ spec: { autoscaling }, status: counts(5, 5, 5), kept: { spec: { replicas: 5 } } }),
      expected: ['ready', 'Available', '5 of 5 replicas are available'],
    },
    {
      title: 'more than the size, and on the way',
      of: report({ spec: { autoscaling }, status: counts(5, 5, 4), kept: { spec: { replicas: 5 } } }),
      expected: ['progressing', 'RollingOut', '4 of 5 replicas are available'],
    },
    {
      title: 'a size of 0 where the autoscaler has begun',
      of: report({
        spec: { autoscaling, size: 0 },
        status: counts(1, 1, 1),
        kept: { spec: { replicas: 1 } },
      }),
      expected: ['ready', 'Available', '1 of 1 replicas are available'],
    },
    {
      title: 'scaled to 0 by hand',
      of: report({ spec: { autoscaling }, status: {}, kept: { spec: { replicas: 0 } } }),
      expected: [
        'ready',
        'ScaledToZero',
        'The Deployment is scaled to 0, and no replica is left; its autoscaling rests until it is scaled up',
      ],
    },
    {
      title: 'without autoscaling, the size counts whatever the Deployment is scaled to',
      of: report({ status: counts(5, 5, 5), kept: { spec: { replicas: 5 } } }),
      expected: ['progressing', 'RollingOut', 'Surplus replicas still to go: 2'],
    },
  ])('$title: $expected', ({ of: { readiness }, expected }) => {
    expectReadiness(readiness, expected);
  });
});

describe('replicas that are missing for a reason', () => {
  test.each([
    {
      title: 'a deadline exceeded',
      of: report({ status: { ...counts(4, 1, 3), conditions: [OVERDUE] } }),
      expected: [
        'stalled',
        'ProgressDeadlineExceeded',
        'ReplicaSet "web-1" has timed out progressing; 1 of 3 replicas run the present spec',
      ],
    },
    {
      title: 'a quota',
      of: report({ status: { ...counts(1, 1, 1), conditions: [PROGRESSING, QUOTA] } }),
      expected: [
        'failing',
        'QuotaExceeded',
        '1 of 3 replicas run the present spec; ' +
          'exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1',
      ],
    },
    {
      title: 'a quota until after the deadline',
      of: report({ status: { ...counts(1, 1, 1), conditions: [OVERDUE, QUOTA] } }),
      expected: [
        'stalled',
        'ProgressDeadlineExceeded',
        'ReplicaSet "web-1" has timed out progressing; 1 of 3 replicas run the present spec; ' +
          'exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1',
      ],
    },
    {
      title: 'another refusal',
      of: report({ status: { ...counts(0, 0, 0), conditions: [failedCreate('not on a Friday.')] } }),
      expected: ['failing', 'ReplicaFailure', '0 of 3 replicas run the present spec; not on a Friday'],
    },
    {
      title: 'Pod Security',
      of: report({ status: { ...counts(0, 0, 0), conditions: [RESTRICTED] } }),
      expected: [
        'stalled',
        'PodSecurityViolation',
        '0 of 3 replicas run the present spec; the namespace enforces the Pod Security Standard "restricted", ' +
          `and the pods don't meet it: ${VIOLATIONS}; add "securityProfile: Restricted" to the spec`,
      ],
    },
    {
      title: 'Pod Security until after the deadline',
      of: report({ status: { ...counts(0, 0, 0), conditions: [OVERDUE, RESTRICTED] } }),
      expected: [
        'stalled',
        'PodSecurityViolation',
        expect.stringContaining('add "securityProfile: Restricted"'),
      ],
    },
    {
      title: 'Pod Security in spite of the profile',
      of: report({
        spec: { securityProfile: 'Restricted' },
        status: { ...counts(0, 0, 0), conditions: [RESTRICTED] },
      }),
      expected: ['stalled', 'PodSecurityViolation', expect.stringContaining('such as an admission webhook')],
    },
    {
      title: 'Pod Security at a level that no AppService breaks',
      of: report({ status: { ...counts(0, 0, 0), conditions: [BASELINE] } }),
      expected: ['stalled', 'PodSecurityViolation', expect.stringContaining('such as an admission webhook')],
    },
    {
      title: 'an image that runs as root under Restricted',
      of: report({ spec: { securityProfile: 'Restricted' }, status: NONE, pods: [{ trouble: ROOT }] }),
      expected: [
        'stalled',
        'ImageRunsAsRoot',
        `0 of 3 replicas are available; ${ROOT.message}; use an image with a numeric USER other than 0, ` +
          'as in "USER 65532", or say "securityProfile: Baseline" where that is allowed',
      ],
    },
    {
      title: 'an image that runs as root where somebody else forbids it, after the deadline',
      of: report({
        status: { ...NONE, conditions: [OVERDUE] },
        pods: [{ trouble: PULL }, { trouble: ROOT }],
      }),
      expected: ['stalled', 'ImageRunsAsRoot', expect.not.stringContaining('Baseline')],
    },
    {
      title: 'an image that cannot be pulled',
      of: report({ status: NONE, pods: [{ trouble: PULL }, { trouble: PULL }] }),
      expected: ['failing', 'ImagePullBackOff', `0 of 3 replicas are available; ${PULL.message}`],
    },
    {
      title: 'an image that cannot be pulled until after the deadline',
      of: report({ status: { ...NONE, conditions: [OVERDUE] }, pods: [{ trouble: PULL }] }),
      expected: ['stalled', 'ProgressDeadlineExceeded', expect.stringContaining(PULL.message)],
    },
    {
      title: 'several troubles: the worst first',
      of: report({ status: NONE, pods: [{ trouble: CRASH }, { trouble: PULL }] }),
      expected: [
        'failing',
        'ImagePullBackOff',
        `0 of 3 replicas are available; ${PULL.message}; ${CRASH.message}`,
      ],
    },
    {
      title: 'a quota beside pods in trouble',
      of: report({ status: { ...counts(1, 1, 0), conditions: [QUOTA] }, pods: [{ trouble: CRASH }] }),
      expected: ['failing', 'QuotaExceeded', expect.stringContaining(CRASH.message)],
    },
    {
      title: 'pods of an earlier spec in trouble: over soon',
      of: report({
        status: { ...counts(4, 1, 0), conditions: [PROGRESSING] },
        pods: [{ trouble: CRASH, replicaSet: 'web-0' }],
      }),
      expected: ['progressing', 'RollingOut', '1 of 3 replicas run the present spec'],
    },
    {
      title: 'pods of the present spec in trouble beside those of an earlier one',
      of: report({
        status: { ...counts(4, 1, 0), conditions: [PROGRESSING] },
        pods: [
          { trouble: PULL, replicaSet: 'web-0' },
          { trouble: CRASH, replicaSet: 'web-1' },
        ],
      }),
      expected: ['failing', 'CrashLoopBackOff', `1 of 3 replicas run the present spec; ${CRASH.message}`],
    },
    {
      title: 'pods in trouble where no ReplicaSet is named',
      of: report({
        status: { ...NONE, conditions: [condition('Progressing', 'True', 'Other', 'in other words')] },
        pods: [{ trouble: CRASH, replicaSet: 'web-0' }],
      }),
      expected: ['failing', 'CrashLoopBackOff', `0 of 3 replicas are available; ${CRASH.message}`],
    },
  ])('$title: $expected', ({ of: { readiness }, expected }) => {
    expectReadiness(readiness, expected);
  });

  test('no more than three troubles are told of', () => {
    const pods = ['A', 'B', 'C', 'D'].map((reason) => ({
      trouble: { reason, message: `because of ${reason}` },
    }));

    expect(report({ status: NONE, pods }).readiness?.message).toBe(
      '0 of 3 replicas are available; because of A; because of B; because of C',
    );
  });

  test('the order of the pods makes no difference', () => {
    const pods = [PULL, CRASH, ROOT, { ...CRASH, message: 'another' }].map((trouble) => ({ trouble }));

    expect(report({ status: NONE, pods: pods.toReversed() })).toEqual(report({ status: NONE, pods }));
  });

  test('the name of the pod that could not be made makes no difference', () => {
    const with_ = (pod: string) =>
      report({ status: { ...NONE, conditions: [failedCreate('exceeded quota: small', pod)] } }).readiness;

    expect(with_('web-1-aaaaa')).toEqual(with_('web-1-bbbbb'));
  });
});

/** By the rules of kstatus: never under way and stuck at once, and ready only where neither holds. */
function expectReadiness(
  readiness: ReturnType<typeof report>['readiness'],
  [phase, reason, message]: readonly unknown[],
): void {
  expect(readiness).toEqual({ phase, reason, message });
  const is = Object.fromEntries(standardConditions(readiness!).map(({ type, status }) => [type, status]));
  expect(is.Reconciling === 'True' && is.Stalled === 'True').toBe(false);
  expect(is.Ready === 'True').toBe(is.Reconciling === 'False' && is.Stalled === 'False');
}
