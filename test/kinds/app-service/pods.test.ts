import { describe, expect, test } from 'vitest';
import type { ObjectOf } from '../../../src/author/kubernetes-types.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { keepPod, podsOf, type PodTrouble } from '../../../src/author/pods.js';

const NAME = 'web-1-x2x7q';
const UID = '0b9f2c1e-5a55-4b7e-9c0e-0a1b2c3d4e5f';
const POD = `${NAME}_shop(${UID})`;

function pod(status: object, metadata: object = {}): AnyObject {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'u', controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: NAME, namespace: 'shop', ownerReferences: [owner], ...metadata },
    spec: {},
    status: { phase: 'Pending', ...status },
  };
}

function waiting(reason: string, message?: string, more: object = {}, name = 'web') {
  return { name, image: 'shop/web:1', ready: false, state: { waiting: { reason, message } }, ...more };
}

function ended(exitCode: number, reason?: string, message?: string) {
  return { restartCount: 3, lastState: { terminated: { exitCode, reason, message } } };
}

/** The trouble that is kept of a pod with these containers. */
function trouble(...containerStatuses: readonly object[]): PodTrouble | undefined {
  return keepPod(pod({ containerStatuses }))?.trouble;
}

function unscheduled(message: string): PodTrouble | undefined {
  const why = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
  return keepPod(pod({ conditions: [why] }))?.trouble;
}

const PULL = 'image "shop/web:1" of container "web" can\'t be pulled';
const NOT_FOUND = 'rpc error: code = NotFound desc = shop/web:1: not found';
const NO_COMMAND = 'exec: "serve": not found in $PATH';
const ROOT = 'container has runAsNonRoot and image will run as root';
const NON_NUMERIC = 'container has runAsNonRoot and image has non-numeric user (app)';
const TAINT = 'node(s) had untolerated taint {a: b}';
const failing = (reason: string, why?: string): [string, string] => [
  reason,
  `container "web" can't be started (${reason})${why ? `: ${why}` : ''}`,
];
const crash = (how: string): [string, string] => ['CrashLoopBackOff', `container "web" ${how}`];

test.each<[of: string, found: PodTrouble | undefined, told: [reason: string, message: string]]>([
  ['an image', trouble(waiting('ErrImagePull', NOT_FOUND)), ['ImagePullBackOff', `${PULL}: ${NOT_FOUND}`]],
  [
    'an image between two tries',
    trouble(waiting('ImagePullBackOff', `Back-off pulling image "shop/web:1": ErrImagePull: ${NOT_FOUND}`)),
    ['ImagePullBackOff', `${PULL}: ${NOT_FOUND}`],
  ],
  [
    'an image between two tries on an older cluster',
    trouble(waiting('ImagePullBackOff', 'Back-off pulling image "shop/web:1"')),
    ['ImagePullBackOff', PULL],
  ],
  [
    'an image from a registry that does not answer',
    trouble(waiting('ErrImagePull', 'read udp 10.1.2.3:39842->10.96.0.10:53: i/o timeout')),
    ['ImagePullBackOff', `${PULL}: read udp 10.96.0.10:53: i/o timeout`],
  ],
  [
    'the end of a pause in a crash loop',
    trouble(
      waiting('CrashLoopBackOff', `back-off 40s restarting container=web pod=${POD}`, ended(1, 'Error')),
    ),
    crash('ends again and again, last with exit code 1 (Error)'),
  ],
  [
    'the end of a pause, without a reason',
    trouble(waiting('CrashLoopBackOff')),
    crash('ends again and again'),
  ],
  [
    'the end of a pause, for a command that is not there',
    trouble(waiting('CrashLoopBackOff', '', ended(128, 'StartError', NO_COMMAND))),
    crash(`can't be started: ${NO_COMMAND}`),
  ],
  [
    'its first start, for a command that is not there',
    trouble(waiting('RunContainerError', NO_COMMAND)),
    failing('RunContainerError', NO_COMMAND),
  ],
  [
    'a further start, for a command that is not there: still the crash loop',
    trouble(waiting('RunContainerError', 'other words', ended(128, 'StartError', NO_COMMAND))),
    crash(`can't be started: ${NO_COMMAND}`),
  ],
  [
    'a Secret',
    trouble(waiting('CreateContainerConfigError', 'secret "db" not found')),
    failing('CreateContainerConfigError', 'secret "db" not found'),
  ],
  [
    'a runtime that says other ids each time',
    trouble(
      waiting(
        'CreateContainerError',
        `back-off 1m20s for name "k8s_web_${NAME}" of ${UID} pod=${POD}, reserved for ${'0a'.repeat(32)}`,
      ),
    ),
    failing('CreateContainerError', 'back-off for name "k8s_web_*" of *, reserved for *'),
  ],
  [
    'another user than root',
    trouble(waiting('CreateContainerConfigError', `${ROOT} (pod: "${POD}", container: web)`)),
    ['ImageRunsAsRoot', 'the image of container "web" runs as root, and runAsNonRoot is set'],
  ],
  [
    'a user with a number',
    trouble(waiting('CreateContainerConfigError', `${NON_NUMERIC} (pod: "${POD}", container: web)`)),
    failing('CreateContainerConfigError', NON_NUMERIC),
  ],
  [
    'a reason that is none',
    trouble(waiting('it is late')),
    ['ContainerWaiting', 'container "web" can\'t be started (ContainerWaiting)'],
  ],
  [
    'a node',
    unscheduled(
      `0/5 nodes are available: 2 ${TAINT}, 3 Insufficient cpu. ` +
        'preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.',
    ),
    ['Unschedulable', `no node takes the pod: Insufficient cpu, ${TAINT}`],
  ],
])('a pod that waits for %s', (_, found, [reason, message]) => {
  expect(found).toEqual({ reason, message });
  expect(JSON.stringify(found)).not.toContain(NAME);
});

const NO_IMAGE = { containerStatuses: [waiting('ErrImagePull')] };
const running = { name: 'web', state: { running: {} }, ...ended(1) };

test.each([
  ['that nobody has seen', pod({ phase: undefined })],
  ['that starts', pod({ containerStatuses: [waiting('ContainerCreating')] })],
  ['that waits for init containers', pod({ containerStatuses: [waiting('PodInitializing')] })],
  ['that runs, though it crashed before', pod({ phase: 'Running', containerStatuses: [running] })],
  ['that was evicted', pod({ phase: 'Failed', ...NO_IMAGE })],
  ['that is going', pod(NO_IMAGE, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
  [
    'that is held back on purpose',
    pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
  ],
])('nothing is kept of a pod %s', (_, of) => {
  expect(keepPod(of)).toBeUndefined();
});

describe('what is kept of a pod in trouble', () => {
  test('is its worst trouble, whatever the order of the containers', () => {
    const containers = [
      waiting('CrashLoopBackOff', '', {}, 'a'),
      waiting('SomethingNew', '', {}, 'b'),
      waiting('ErrImagePull', '', {}, 'd'),
      waiting('ErrImagePull', '', {}, 'c'),
    ];

    expect(trouble(...containers)?.message).toBe('image "shop/web:1" of container "c" can\'t be pulled');
    expect(trouble(...containers.toReversed())).toEqual(trouble(...containers));
  });

  test('holds the digest of an image, and no signature', () => {
    const pulling = `pulling sha256:${'0a'.repeat(32)} from https://cdn.example.com/v2/blob`;
    const { message } = trouble(waiting('ErrImagePull', `${pulling}?X-Signature=abc: 403`))!;

    expect(message).toContain(pulling);
    expect(message).not.toContain('Signature');
  });
});

describe('what is kept of a pod that its node prepares', () => {
  const SINCE = '2026-01-01T00:00:00Z';
  const ready = { type: 'PodReadyToStartContainers', status: 'False' };
  const preparing = {
    conditions: [{ ...ready, lastTransitionTime: SINCE }],
    containerStatuses: [waiting('ContainerCreating')],
  };
  const told = { reason: 'InvalidImageName', message: failing('InvalidImageName')[1] };

  test.each([
    ['since when', preparing, { startingSince: SINCE, controller: 'web-1' }],
    ['nothing once it is prepared', { conditions: [{ ...ready, status: 'True' }] }, undefined],
    ['nothing where it is not said since when', { conditions: [ready] }, undefined],
    ['nothing once it is over', { ...preparing, phase: 'Failed' }, undefined],
    [
      'the trouble where there is one',
      { ...preparing, containerStatuses: [waiting('InvalidImageName')] },
      { trouble: told, controller: 'web-1' },
    ],
  ])('is %s', (_, status, kept) => {
    expect(keepPod(pod(status))).toEqual(kept);
  });
});

test.each(['kosmos.io/v1', 'app.example.com/v1'])(
  'a pod belongs to whom its label of %s names',
  (apiVersion) => {
    const label = `${apiVersion.split('/')[0] ?? ''}/appservice`;
    const { selector, nameOf } = podsOf({ apiVersion, kind: 'AppService' });

    expect(selector).toBe(label);
    expect(nameOf(pod({}, { labels: { [label]: 'web' } }))).toBe('web');
    expect(nameOf(pod({}, { labels: { app: 'web' } }))).toBeUndefined();
  },
);

test('keeps of a pod what an own function returns beside its troubles, and under other names', () => {
  const kind = { apiVersion: 'kosmos.io/v1', kind: 'AppService' };
  const podIP = '10.0.0.1';
  const stuck = pod({ podIP, containerStatuses: [waiting('InvalidImageName')] });
  const { keep } = podsOf(kind, {
    keep: ({ status }: ObjectOf<'v1', 'Pod'>) => ({ ip: status?.podIP, controller: {} }),
  });

  expect(keep(stuck)).toEqual({ ip: podIP, ...keepPod(stuck) });
  expect(keep(pod({ podIP }))).toEqual({ ip: podIP });
  const { keep: few } = podsOf(kind, { keep: () => undefined });
  expect([few(stuck), few(pod({}))]).toEqual([keepPod(stuck), undefined]);
});
