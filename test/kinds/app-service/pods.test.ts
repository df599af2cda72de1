import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { keepPod, podsOf } from '../../../src/kinds/app-service/pods.js';

const NAME = 'web-1-x2x7q';
const POD = `${NAME}_shop(0b9f2c1e-5a55-4b7e-9c0e-0a1b2c3d4e5f)`;

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

function prepared(status: string) {
  return { type: 'PodReadyToStartContainers', status };
}

function ended(exitCode: number, reason?: string, message?: string) {
  return { restartCount: 3, lastState: { terminated: { exitCode, reason, message } } };
}

/** The trouble that is kept of a pod with these containers. */
function trouble(...containerStatuses: readonly object[]) {
  return keepPod(pod({ containerStatuses }))?.trouble;
}

describe('of a pod that waits for', () => {
  test.each([
    {
      title: 'an image during a try',
      of: trouble(waiting('ErrImagePull', 'rpc error: code = NotFound desc = shop/web:1: not found')),
      reason: 'ImagePullBackOff',
      message:
        'image "shop/web:1" of container "web" can\'t be pulled: rpc error: code = NotFound desc = shop/web:1: not found',
    },
    {
      title: 'an image between two tries',
      of: trouble(
        waiting(
          'ImagePullBackOff',
          'Back-off pulling image "shop/web:1": ErrImagePull: rpc error: code = NotFound desc = shop/web:1: not found',
        ),
      ),
      reason: 'ImagePullBackOff',
      message:
        'image "shop/web:1" of container "web" can\'t be pulled: rpc error: code = NotFound desc = shop/web:1: not found',
    },
    {
      title: 'an image between two tries on an older cluster',
      of: trouble(waiting('ImagePullBackOff', 'Back-off pulling image "shop/web:1"')),
      reason: 'ImagePullBackOff',
      message: 'image "shop/web:1" of container "web" can\'t be pulled',
    },
    {
      title: 'an image from a registry that does not answer',
      of: trouble(
        waiting(
          'ErrImagePull',
          'dial tcp: lookup shop on 10.96.0.10:53: read udp 10.1.2.3:39842->10.96.0.10:53: i/o timeout',
        ),
      ),
      reason: 'ImagePullBackOff',
      message:
        'image "shop/web:1" of container "web" can\'t be pulled: dial tcp: lookup shop on 10.96.0.10:53: ' +
        'read udp 10.96.0.10:53: i/o timeout',
    },
    {
      title: 'an image with a wrong name',
      of: trouble(waiting('InvalidImageName', 'couldn\'t parse image name "a b": invalid reference format')),
      reason: 'InvalidImageName',
      message:
        'container "web" can\'t be started (InvalidImageName): couldn\'t parse image name "a b": invalid reference format',
    },
    {
      title: 'the end of a pause in a crash loop',
      of: trouble(
        waiting(
          'CrashLoopBackOff',
          `back-off 40s restarting failed container=web pod=${POD}`,
          ended(1, 'Error'),
        ),
      ),
      reason: 'CrashLoopBackOff',
      message: 'container "web" ends again and again, last with exit code 1 (Error)',
    },
    {
      title: 'the end of a pause after too much memory',
      of: trouble(waiting('CrashLoopBackOff', 'back-off', ended(137, 'OOMKilled'))),
      reason: 'CrashLoopBackOff',
      message: 'container "web" ends again and again, last with exit code 137 (OOMKilled)',
    },
    {
      title: 'the end of a pause, and nobody knows why',
      of: trouble(waiting('CrashLoopBackOff')),
      reason: 'CrashLoopBackOff',
      message: 'container "web" ends again and again',
    },
    {
      title: 'the end of a pause, for a command that is not there',
      of: trouble(
        waiting('CrashLoopBackOff', '', ended(128, 'StartError', 'exec: "serve": not found in $PATH')),
      ),
      reason: 'CrashLoopBackOff',
      message: 'container "web" can\'t be started: exec: "serve": not found in $PATH',
    },
    {
      title: 'its first start, for a command that is not there',
      of: trouble(waiting('RunContainerError', 'exec: "serve": not found in $PATH')),
      reason: 'RunContainerError',
      message: 'container "web" can\'t be started (RunContainerError): exec: "serve": not found in $PATH',
    },
    {
      title: 'a further start, for a command that is not there: still the crash loop',
      of: trouble(
        waiting('RunContainerError', 'other words', ended(128, 'StartError', 'exec: "serve": not found')),
      ),
      reason: 'CrashLoopBackOff',
      message: 'container "web" can\'t be started: exec: "serve": not found',
    },
    {
      title: 'a Secret',
      of: trouble(waiting('CreateContainerConfigError', 'secret "db" not found')),
      reason: 'CreateContainerConfigError',
      message: 'container "web" can\'t be started (CreateContainerConfigError): secret "db" not found',
    },
    {
      title: 'a runtime that says other ids each time',
      of: trouble(
        waiting(
          'CreateContainerError',
          `back-off 1m20s for name "k8s_web_${NAME}" of 0b9f2c1e-5a55-4b7e-9c0e-0a1b2c3d4e5f pod=${POD}, ` +
            `reserved for ${'0a'.repeat(32)}`,
        ),
      ),
      reason: 'CreateContainerError',
      message:
        'container "web" can\'t be started (CreateContainerError): back-off for name "k8s_web_*" of *, reserved for *',
    },
    {
      title: 'another user than root',
      of: trouble(
        waiting(
          'CreateContainerConfigError',
          `container has runAsNonRoot and image will run as root (pod: "${POD}", container: web)`,
        ),
      ),
      reason: 'ImageRunsAsRoot',
      message: 'the image of container "web" runs as root, and runAsNonRoot is set',
    },
    {
      title: 'a user with a number',
      of: trouble(
        waiting(
          'CreateContainerConfigError',
          'container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root ' +
            `(pod: "${POD}", container: web)`,
        ),
      ),
      reason: 'CreateContainerConfigError',
      message:
        'container "web" can\'t be started (CreateContainerConfigError): container has runAsNonRoot and image has ' +
        'non-numeric user (app), cannot verify user is non-root',
    },
    {
      title: 'a reason that is none',
      of: trouble(waiting('it is late')),
      reason: 'ContainerWaiting',
      message: 'container "web" can\'t be started (ContainerWaiting)',
    },
    {
      title: 'a node',
      of: keepPod(
        pod({
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              reason: 'Unschedulable',
              message:
                '0/5 nodes are available: 2 node(s) had untolerated taint {a: b}, 3 Insufficient cpu. ' +
                'preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.',
            },
          ],
        }),
      )?.trouble,
      reason: 'Unschedulable',
      message: 'no node takes the pod: Insufficient cpu, node(s) had untolerated taint {a: b}',
    },
  ])('$title: $reason', ({ of, reason, message }) => {
    expect(of).toEqual({ reason, message });
    expect(JSON.stringify(of)).not.toContain(NAME);
  });
});

describe('nothing is kept of a pod', () => {
  test.each([
    { title: 'that nobody has seen', of: pod({ phase: undefined }) },
    { title: 'that starts', of: pod({ containerStatuses: [waiting('ContainerCreating')] }) },
    { title: 'that waits for init containers', of: pod({ containerStatuses: [waiting('PodInitializing')] }) },
    {
      title: 'that runs, though it crashed before',
      of: pod({
        phase: 'Running',
        containerStatuses: [{ name: 'web', state: { running: {} }, ...ended(1) }],
      }),
    },
    { title: 'that was evicted', of: pod({ phase: 'Failed', containerStatuses: [waiting('ErrImagePull')] }) },
    {
      title: 'that is going',
      of: pod(
        { containerStatuses: [waiting('ErrImagePull')] },
        { deletionTimestamp: '2026-01-01T00:00:00Z' },
      ),
    },
    {
      title: 'that is held back on purpose',
      of: pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
    },
  ])('$title', ({ of }) => {
    expect(keepPod(of)).toBeUndefined();
  });
});

describe('what is kept of a pod in trouble', () => {
  test('is the trouble and the ReplicaSet', () => {
    expect(keepPod(pod({ containerStatuses: [waiting('InvalidImageName')] }))).toEqual({
      trouble: {
        reason: 'InvalidImageName',
        message: 'container "web" can\'t be started (InvalidImageName)',
      },
      replicaSet: 'web-1',
    });
  });

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
    const digest = `sha256:${'0a'.repeat(32)}`;
    const message = `pulling ${digest} from https://cdn.example.com/v2/blob?X-Signature=abc: 403`;

    expect(trouble(waiting('ErrImagePull', message))?.message).toContain(
      `pulling ${digest} from https://cdn.example.com/v2/blob`,
    );
    expect(trouble(waiting('ErrImagePull', message))?.message).not.toContain('Signature');
  });
});

describe('what is kept of a pod that its node prepares', () => {
  const SINCE = '2026-01-01T00:00:00Z';
  const preparing = {
    conditions: [
      { type: 'PodReadyToStartContainers', status: 'False', lastTransitionTime: SINCE },
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2025-12-31T23:59:59Z' },
    ],
    containerStatuses: [waiting('ContainerCreating')],
  };

  test('is since when', () => {
    expect(keepPod(pod(preparing))).toEqual({ startingSince: SINCE, replicaSet: 'web-1' });
  });

  test.each([
    { title: 'nothing once it is prepared', status: { conditions: [prepared('True')] }, kept: undefined },
    {
      title: 'nothing where nobody says since when',
      status: { conditions: [prepared('False')] },
      kept: undefined,
    },
    { title: 'nothing once it is over', status: { ...preparing, phase: 'Failed' }, kept: undefined },
    {
      title: 'the trouble where there is one',
      status: { ...preparing, containerStatuses: [waiting('InvalidImageName')] },
      kept: {
        trouble: expect.objectContaining({ reason: 'InvalidImageName' }) as unknown,
        replicaSet: 'web-1',
      },
    },
  ])('is $title', ({ status, kept }) => {
    expect(keepPod(pod(status))).toEqual(kept);
  });
});

describe('a pod belongs to the custom resource', () => {
  test.each(['kosmos.io/v1', 'app.example.com/v1'])('that its label of %s names', (apiVersion) => {
    const label = `${apiVersion.split('/')[0] ?? ''}/appservice`;
    const { selector, nameOf } = podsOf({ apiVersion, kind: 'AppService' });

    expect(selector).toBe(label);
    expect(nameOf(pod({}, { labels: { [label]: 'web' } }))).toBe('web');
    expect(nameOf(pod({}, { labels: { app: 'web' } }))).toBeUndefined();
  });
});
