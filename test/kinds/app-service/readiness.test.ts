import { describe, expect, test } from 'vitest';
import { standardConditions } from '../../../src/author/status.js';
import { condition, counts, failedCreate, OVERDUE, PROGRESSING, QUOTA, report } from './report.js';

type Given = Parameters<typeof report>[0];

const VIOLATIONS = 'seccompProfile (container "web" must set securityContext.seccompProfile.type)';
const RESTRICTED = failedCreate(`violates PodSecurity "restricted:latest": ${VIOLATIONS}`);
const BASELINE = failedCreate('violates PodSecurity "baseline:v1.34": hostPort (uses hostPort 80)');
const ROOT = {
  reason: 'ImageRunsAsRoot',
  message: 'the image of container "web" runs as root, and runAsNonRoot is set',
};
const PULL = { reason: 'ImagePullBackOff', message: 'image "a" of container "web" can\'t be pulled' };
const CRASH = { reason: 'CrashLoopBackOff', message: 'container "web" ends again and again' };
const QUOTA_TEXT = 'exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';
const NONE = counts(3, 3, 0);

const since = (generation: number, status: object): Given => ({ status, generation });
const sized = (size: number, status: object): Given => ({ spec: { size }, status });
/** With an autoscaler, and these replicas in the Deployment's spec. */
const scaled = (replicas: number, status: object, size = 3): Given => ({
  ...{ spec: { autoscaling: { maxReplicas: 9 }, size }, status, kept: { spec: { replicas } } },
});
const missing = (status: object, ...conditions: object[]): Given => ({ status: { ...status, conditions } });
const pods = (status: object, ...troubles: object[]): Given => ({
  ...{ status, pods: troubles.map((trouble) => ({ trouble })) },
});
const outdated = { trouble: CRASH, controller: 'web-0' };
const restricted = { securityProfile: 'Restricted' } as const;
const after = (status: object): object => ({ ...status, conditions: [OVERDUE] });
const under = (status: object): object => ({ ...status, conditions: [PROGRESSING] });
const HELD = condition('Progressing', 'Unknown', 'DeploymentPaused', 'Deployment is paused');
const other = { conditions: [condition('Progressing', 'True', 'Other', 'in other words')] };
const UNREPORTED = 'progressing Pending: ... yet to report on it';
const UNSEEN = 'progressing RollingOut: ... yet to see the latest change';
const READY = 'ready Available: 3 of 3 replicas are available';
const SURPLUS = 'progressing RollingOut: Surplus replicas still to go:';
const WEBHOOK = 'stalled PodSecurityViolation: ... such as an admission webhook';
const ROLLING = '1 of 3 replicas run the present spec';

test.each<[of: string, given: Given, verdict: string]>([
  ['a Deployment that is not there', {}, UNREPORTED],
  ['one that is not reported on', { status: { observedGeneration: undefined } }, UNREPORTED],
  ['a status of an earlier generation', since(3, counts(3, 3, 3)), UNSEEN],
  ['a deadline of an earlier generation', since(3, { conditions: [OVERDUE] }), UNSEEN],
  ['replicas to update', sized(3, counts(4, 1, 3)), `progressing RollingOut: ${ROLLING}`],
  ['outdated ones', sized(3, counts(4, 3, 3)), 'progressing RollingOut: Replicas of an earlier spec ... : 1'],
  ['surplus ones', sized(1, counts(3, 3, 3)), `${SURPLUS} 2`],
  ['unavailable ones', sized(3, counts(3, 3, 2)), 'progressing RollingOut: 2 of 3 replicas are available'],
  ['all there', sized(3, counts(3, 3, 3)), READY],
  ['all there in spite of a quota', missing(counts(3, 3, 3), QUOTA), READY],
  ['all there in spite of a crash', pods(counts(3, 3, 3), CRASH), READY],
  ['size 0', sized(0, {}), 'ready ScaledToZero: The size is 0, and no replica is left'],
  ['size 0 and one left', sized(0, counts(1, 1, 1)), `${SURPLUS} 1`],
  ['more by the autoscaler', scaled(5, counts(5, 5, 5)), 'ready Available: 5 of 5 replicas'],
  ['more on the way', scaled(5, counts(5, 5, 4)), 'progressing RollingOut: 4 of 5 replicas are available'],
  ['size 0 with an autoscaler', scaled(1, counts(1, 1, 1), 0), 'ready Available: 1 of 1 replicas'],
  ['0 by hand', scaled(0, {}), 'ready ScaledToZero: The Deployment is scaled to 0, and no replica is left'],
  ['5 by hand', { status: counts(5, 5, 5), kept: { spec: { replicas: 5 } } }, `${SURPLUS} 2`],
  [
    'a deadline exceeded',
    missing(counts(4, 1, 3), OVERDUE),
    `stalled ProgressDeadlineExceeded: ReplicaSet "web-1" has timed out progressing; ${ROLLING}`,
  ],
  [
    'a rollout that is paused, beside a pod in trouble',
    pods({ ...counts(3, 1, 3), conditions: [HELD] }, CRASH),
    `stalled DeploymentPaused: ... resume it with "kubectl rollout resume deployment/web --namespace shop"; ... ${CRASH.message}`,
  ],
  ['a pause without a rollout', missing(counts(3, 3, 2), HELD), 'progressing RollingOut: 2 of 3 replicas'],
  ['a quota', missing(counts(1, 1, 1), QUOTA), `failing QuotaExceeded: ${ROLLING}; ${QUOTA_TEXT}`],
  [
    'a quota until after the deadline',
    missing(counts(1, 1, 1), OVERDUE, QUOTA),
    `stalled ProgressDeadlineExceeded: ... ${QUOTA_TEXT}`,
  ],
  [
    'another refusal',
    missing(counts(0, 0, 0), failedCreate('not on a Friday.')),
    'failing ReplicaFailure: 0 of 3 replicas run the present spec; not on a Friday',
  ],
  [
    'Pod Security, also after the deadline',
    missing(counts(0, 0, 0), OVERDUE, RESTRICTED),
    `stalled PodSecurityViolation: ... "restricted", and the pods don't meet it: ${VIOLATIONS}; add "securityProfile: Restricted" to the spec`,
  ],
  ['Pod Security in spite of the profile', { spec: restricted, ...missing({}, RESTRICTED) }, WEBHOOK],
  ['Pod Security at a level that no AppService breaks', missing({}, BASELINE), WEBHOOK],
  [
    'an image that runs as root under Restricted',
    { spec: restricted, ...pods(NONE, ROOT) },
    `stalled ImageRunsAsRoot: 0 of 3 replicas are available; ${ROOT.message}; ... as in "USER 65532", or say "securityProfile: Baseline"`,
  ],
  [
    'an image that runs as root elsewhere, after the deadline',
    pods(after(NONE), PULL, ROOT),
    'stalled ImageRunsAsRoot: ... as in "USER 65532"; image "a"',
  ],
  [
    'an image that cannot be pulled',
    pods(NONE, PULL, PULL),
    `failing ImagePullBackOff: 0 of 3 replicas are available; ${PULL.message}`,
  ],
  ['the same too late', pods(after(NONE), PULL), `stalled ProgressDeadlineExceeded: ... ${PULL.message}`],
  [
    'several troubles: the worst first',
    pods(NONE, CRASH, PULL),
    `failing ImagePullBackOff: ... ${PULL.message}; ${CRASH.message}`,
  ],
  [
    'a quota beside pods in trouble',
    pods({ ...counts(1, 1, 0), conditions: [QUOTA] }, CRASH),
    `failing QuotaExceeded: ... ${CRASH.message}`,
  ],
  [
    'pods of an earlier spec in trouble: over soon',
    { status: under(counts(4, 1, 0)), pods: [outdated] },
    `progressing RollingOut: ${ROLLING}`,
  ],
  [
    'the same beside those of the present spec',
    { status: under(counts(4, 1, 0)), pods: [{ ...outdated, trouble: PULL }, { trouble: CRASH }] },
    `failing CrashLoopBackOff: ${ROLLING}; ${CRASH.message}`,
  ],
  [
    'pods in trouble where no ReplicaSet is named',
    { status: { ...NONE, ...other }, pods: [outdated] },
    `failing CrashLoopBackOff: ... ${CRASH.message}`,
  ],
])('%s', (_, given, verdict) => {
  const readiness = report(given).readiness!;
  const text = `${readiness.phase} ${readiness.reason}: ${readiness.message}`;
  for (const part of verdict.split('... ')) expect(text).toContain(part.trim());
  // By the rules of kstatus: never under way and stuck at once, and ready only where neither holds.
  const is = Object.fromEntries(standardConditions(readiness).map(({ type, status }) => [type, status]));
  expect(is.Reconciling === 'True' && is.Stalled === 'True').toBe(false);
  expect(is.Ready === 'True').toBe(is.Reconciling === 'False' && is.Stalled === 'False');
});

test('no more than three troubles are named, and the order of the pods makes no difference', () => {
  const troubles = ['A', 'B', 'C', 'D'].map((reason) => ({ reason, message: `because of ${reason}` }));

  const { readiness } = report(pods(NONE, ...troubles));

  expect(readiness?.message).toBe('0 of 3 replicas are available; because of A; because of B; because of C');
  expect(report(pods(NONE, ...troubles.toReversed())).readiness).toEqual(readiness);
});

test('the name of the pod that could not be made makes no difference', () => {
  const [one, same] = ['web-1-aaaaa', 'web-1-bbbbb'].map((name) =>
    report(missing(NONE, failedCreate('exceeded quota: small', name))),
  );

  expect(one?.readiness).toEqual(same?.readiness);
});

describe('a pod that its node prepares', () => {
  const START = Date.UTC(2026, 0, 1);
  const at = (seconds: number): Date => new Date(START + seconds * 1_000);
  const pod = (second: number, more: object = {}) => ({
    startingSince: at(second).toISOString().replace('.000Z', 'Z'),
    ...more,
  });
  const look =
    'see the events of the pods for the reason: kubectl describe pods --namespace shop --selector kosmos.io/appservice=web';
  const waits = (what: string): string =>
    `0 of 3 replicas are available; a pod has been waiting for more than 10 s for ${what} or, on nodes before Kubernetes 1.36, its image; `;
  const of = (given: Given = {}, seconds = 10, progress = PROGRESSING) => {
    const status = { ...NONE, conditions: [progress] };
    const { readiness, requeueAt } = report({ pods: [pod(0)], status, now: at(seconds), ...given });
    return { ...readiness, requeueAt };
  };

  test('is on its way for ten seconds, and waits for its sandbox from then on, where nothing is mounted', () => {
    expect(of({}, 9)).toMatchObject({ phase: 'progressing', reason: 'RollingOut', requeueAt: at(10) });
    expect(of()).toEqual({
      ...{ phase: 'progressing', reason: 'WaitingForSandbox', requeueAt: undefined },
      message: `${waits('its sandbox')}${look}`,
    });
  });

  test('waits for its volumes, where something is mounted, and what has to be there is named', () => {
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
    expect(of({ spec: { files, serviceAccountName: 'shop' } })).toMatchObject({
      reason: 'WaitingForVolumes',
      message:
        `${waits('its volumes, its sandbox')}these have to be there, with the keys that are asked for: ` +
        `ConfigMap "settings", PersistentVolumeClaim "data", Secret "tls", ServiceAccount "shop"; ${look}`,
    });
    expect(of({ spec: { files } }).message).toContain('ServiceAccount "default"');
  });

  test('counts only if it is of the present spec, and after what keeps others from running', () => {
    const older = { pods: [pod(0, { controller: 'web-0' })] };
    expect(of(older)).toMatchObject({ reason: 'RollingOut', requeueAt: undefined });
    const beside = of({ pods: [pod(0), { trouble: PULL }] });
    expect(beside).toMatchObject({ phase: 'failing', reason: 'ImagePullBackOff' });
    expect(beside.message).toMatch(/can't be pulled; a pod has been waiting/);
    const late = of({}, 10, OVERDUE);
    expect(late).toMatchObject({ phase: 'stalled', reason: 'ProgressDeadlineExceeded' });
    expect(late.message).toContain(look);
  });

  test('counts only if it is the Deployment’s, also where that names no ReplicaSet', () => {
    for (const controller of [undefined, 'other-1'])
      expect(
        of({ pods: [{ trouble: PULL, controller }] }, 10, { ...PROGRESSING, message: 'paused' }).reason,
      ).toBe('RollingOut');
  });

  test('is looked at when the first of several has waited for so long', () => {
    expect(of({ pods: [pod(3), pod(1), pod(2)] }).requeueAt).toEqual(at(11));
    // What is told already needs no other look.
    expect(of({ pods: [pod(3), pod(0)] })).toMatchObject({
      ...{ reason: 'WaitingForSandbox', requeueAt: undefined },
    });
    expect(of({ pods: [] }).requeueAt).toBeUndefined();
  });
});
