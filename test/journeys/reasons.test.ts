import { beforeAll, describe, expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually } from '../support/cluster.js';
import { writes } from '../support/requests.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey, operator } from './support/operator.js';

const image = 'example.com/web:1';
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });
let apps: Subject;
let restricted: Subject;
let limited: Subject;

beforeAll(async () => {
  apps = await journey(appService, 'reasons');
  restricted = await journey(appService, 'reasons-restricted');
  limited = await journey(appService, 'reasons-limited');
  await cluster.merge(
    { type: namespaces, name: restricted.namespace },
    { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  );
  await cluster.create(quotas, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'small', namespace: limited.namespace },
    spec: { hard: { pods: '1' } },
  });
});

/** Waits for a reason, and for the three standard conditions that go with it. */
async function fares(
  subject: Subject,
  name: string,
  as: readonly [phase: Phase, reason: string],
): Promise<string> {
  const [phase, reason] = as;
  const [ready, reconciling, stalled] = PHASES[phase];
  const { message } = await subject.condition(name, { type: 'Stalled', status: stalled, reason });
  await subject.condition(name, { type: 'Ready', status: ready, reason });
  await subject.condition(name, { type: 'Reconciling', status: reconciling, reason });
  return message;
}

type ConditionStatus = 'True' | 'False' | 'Unknown';
type Phase = 'ready' | 'progressing' | 'failing' | 'stalled';

const PHASES: Readonly<
  Record<Phase, readonly [ready: ConditionStatus, reconciling: ConditionStatus, stalled: ConditionStatus]>
> = {
  ready: ['True', 'False', 'False'],
  progressing: ['Unknown', 'True', 'False'],
  failing: ['False', 'True', 'False'],
  stalled: ['False', 'False', 'True'],
};

describe('pods', () => {
  test.each([
    {
      name: 'runs',
      spec: { size: 2, image },
      as: ['ready', 'Available'],
      says: '2 of 2 replicas are available',
    },
    { name: 'rests', spec: { size: 0, image }, as: ['ready', 'ScaledToZero'], says: 'no replica is left' },
    {
      name: 'waits',
      spec: { size: 1, image: 'sandbox.invalid/never-ready' },
      as: ['progressing', 'RollingOut'],
      says: '0 of 1 replicas are available',
    },
    {
      name: 'late',
      spec: { size: 1, image: 'sandbox.invalid/never-ready', progressDeadlineSeconds: 1 },
      as: ['stalled', 'ProgressDeadlineExceeded'],
      says: '0 of 1 replicas are available',
    },
    {
      name: 'no-image',
      spec: { size: 2, image: 'sandbox.invalid/no-image:1' },
      as: ['failing', 'ImagePullBackOff'],
      says: 'image "sandbox.invalid/no-image:1" of container "no-image" can\'t be pulled: sandbox.invalid/no-image:1: not found',
    },
    {
      name: 'crashes',
      spec: { size: 2, image: 'sandbox.invalid/fail:1' },
      as: ['failing', 'CrashLoopBackOff'],
      says: 'container "crashes" ends again and again, last with exit code 1 (Error)',
    },
    {
      name: 'no-config',
      spec: { size: 1, image: 'sandbox.invalid/no-config:1' },
      as: ['failing', 'CreateContainerConfigError'],
      says: 'secret "missing" not found',
    },
    {
      name: 'root',
      spec: { size: 1, image: 'sandbox.invalid/root:1', securityProfile: 'Restricted' },
      as: ['stalled', 'ImageRunsAsRoot'],
      says: 'say "securityProfile: Baseline" where that is allowed',
    },
    {
      name: 'too-big',
      spec: { size: 1, image, resources: { requests: { cpu: '1000000' } } },
      as: ['failing', 'Unschedulable'],
      says: 'no node takes the pod: Insufficient cpu',
    },
  ] as const)(
    'that cannot start are reported with their reason: $name, $as',
    async ({ name, spec, as, says }) => {
      await apps.create(name, spec);

      // A rollout goes on under one reason, and its message follows.
      await eventually(async () => {
        expect(await fares(apps, name, as)).toContain(says);
      });
    },
  );

  test('in trouble are over with once the image is mended', async () => {
    await apps.create('mended', { size: 1, image: 'sandbox.invalid/no-image:1' });
    await fares(apps, 'mended', ['failing', 'ImagePullBackOff']);

    await apps.edit('mended', { size: 1, image });

    await fares(apps, 'mended', ['ready', 'Available']);
    expect((await apps.get('mended')).status).toMatchObject({
      image,
      selector: 'kosmos.io/appservice=mended',
    });
  });

  test('that stay in trouble cost no request', async () => {
    await apps.create('steady', { size: 3, image: 'sandbox.invalid/fail:1' });
    await fares(apps, 'steady', ['failing', 'CrashLoopBackOff']);
    await operator.settled(apps.namespace);
    const requests = await operator.requestsFromNowOn(apps.namespace);

    await cluster.merge(apps.place('steady'), {
      metadata: { annotations: { 'example.com/touched': 'yes' } },
    });
    await operator.settled(apps.namespace);

    expect(writes(await requests())).toEqual([]);
  });

  test('that the namespace refuses tell the line to add, and adding it helps', async () => {
    await restricted.create('web', { size: 1, image });
    const message = await fares(restricted, 'web', ['stalled', 'PodSecurityViolation']);
    expect(message).toContain('add "securityProfile: Restricted" to the spec');
    expect(message).toContain('runAsNonRoot');

    await restricted.edit('web', { size: 1, image, securityProfile: 'Restricted' });

    await fares(restricted, 'web', ['ready', 'Available']);
  });

  test('that a quota refuses', async () => {
    await limited.create('web', { size: 2, image });

    expect(await fares(limited, 'web', ['failing', 'QuotaExceeded'])).toContain('exceeded quota: small');
  });
});

describe('objects', () => {
  test('a policy that refuses, and then no longer has to', async () => {
    await apps.create('refused', { size: 51, image });
    expect(await fares(apps, 'refused', ['stalled', 'PolicyDenied'])).toContain('spec.size');
    await apps.condition('refused', { type: 'Accepted', status: 'False', reason: 'PolicyDenied' });

    await apps.edit('refused', { size: 1, image });

    await fares(apps, 'refused', ['ready', 'Available']);
    const { status } = await apps.get('refused');
    expect(status?.conditions?.map(({ type }) => type)).not.toContain('Accepted');
  });
});
