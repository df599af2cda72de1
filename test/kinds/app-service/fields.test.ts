import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { volumeName } from '../../../src/kinds/app-service/construct.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec, FileMount } from '../../../src/kinds/app-service/spec.js';
import { render as renderKind } from '../../../src/render/renderer.js';
import { containerOf, refusal, render } from './render.js';

/** What every case is added to. */
const BASE: AppServiceSpec = {
  ...{ size: 3, image: 'nginx:1.27' },
  ports: [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'http', port: 80, targetPort: 8080 },
    { name: 'metrics', port: 9090 },
  ],
  resources: { requests: { cpu: '100m', memory: '64Mi' } },
};

const metric = { metric: { name: 'requests' }, target: { type: 'AverageValue', averageValue: '100' } };

/** Each field beyond the tutorial's, with a value that says much. */
const FIELDS = {
  envFrom: [
    { configMapRef: { name: 'settings' } },
    { prefix: 'DB_', secretRef: { name: 'db', optional: true } },
  ],
  command: ['/bin/web'],
  args: ['--port', '8080'],
  workingDir: '/srv',
  imagePullPolicy: 'Always',
  imagePullSecrets: [{ name: 'registry' }],
  serviceAccountName: 'shop',
  automountServiceAccountToken: true,
  probes: {
    readiness: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 5 },
    liveness: { tcpSocket: { port: 8080 } },
    startup: { exec: { command: ['/bin/true'] }, failureThreshold: 30 },
  },
  autoscaling: {
    ...{ minReplicas: 2, maxReplicas: 10, cpu: 80, memory: 70 },
    metrics: [{ type: 'Pods', pods: metric }],
    behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
  },
  securityProfile: 'Restricted',
  route: {
    hostnames: ['shop.example.com'],
    parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
    ...{ path: '/api', port: 9090 },
  },
  disruption: { maxUnavailable: '25%' },
  topologySpread: {},
  files: [
    { path: '/etc/web', configMap: { name: 'web', items: [{ key: 'a', path: 'b' }], defaultMode: 256 } },
    { path: '/etc/secret', secret: { name: 'web', optional: true } },
    { path: '/cache', emptyDir: { sizeLimit: '1Gi' } },
    { path: '/data', persistentVolumeClaim: { claimName: 'data' }, readOnly: false },
    { path: '/var/run/token', token: { audience: 'vault', expirationSeconds: 600 } },
  ],
  service: {
    ...{ type: 'LoadBalancer', sessionAffinity: 'ClientIP' },
    ...{ externalTrafficPolicy: 'Local', trafficDistribution: 'PreferClose' },
  },
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  minReadySeconds: 5,
  progressDeadlineSeconds: 120,
  terminationGracePeriodSeconds: 0,
  preStop: { sleep: { seconds: 5 } },
} as const satisfies Partial<AppServiceSpec>;

/** Every value of the output by its path, which begins with the kind. */
function leavesOf(objects: readonly AnyObject[]): Map<string, string> {
  const leaves = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    const inner = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    if (inner.length === 0) leaves.set(path, JSON.stringify(value));
    for (const [key, child] of inner) walk(child, `${path}.${key}`);
  };
  for (const object of objects) walk(object, object.kind);
  return leaves;
}

test('there is a case for every field that the tutorial lacks', () => {
  const { properties } = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.spec!;
  const known = new Set(['size', 'image', 'ports', 'resources', 'envs']);

  expect(Object.keys(FIELDS).sort()).toEqual(
    Object.keys(properties!)
      .filter((field) => !known.has(field))
      .sort(),
  );
});

test('each field renders what it says, and nothing else', async () => {
  const before = leavesOf(render(BASE).objects);
  const changes = Object.entries(FIELDS).map(([field, value]) => {
    const after = leavesOf(render({ ...BASE, [field]: value }).objects);
    const lines = [...new Set([...before.keys(), ...after.keys()])]
      .filter((path) => before.get(path) !== after.get(path) && !/\.(apiVersion|kind|labels\..*)$/.test(path))
      .map((path) => `  ${path}: ${after.get(path) ?? 'absent'}\n`);
    return `${field}\n${lines.join('')}`;
  });

  await expect(changes.join('')).toMatchFileSnapshot('__snapshots__/fields.txt');
});

test('a field that says nothing renders nothing', () => {
  const silent = {
    ...{ envFrom: [], command: [], args: [], imagePullSecrets: [], files: [], probes: {}, service: {} },
    topologySpread: { constraints: [] },
  };

  expect(render({ ...BASE, ...silent }).yaml).toBe(render(BASE).yaml);
});

const podOf = (spec: Partial<AppServiceSpec>) => render({ ...BASE, ...spec }).deployment.spec!.template.spec!;

describe('securityProfile', () => {
  test('Baseline lets an image run as root', () => {
    const pod = podOf({ securityProfile: 'Baseline' });

    expect(Object.keys(pod)).toEqual(['automountServiceAccountToken', 'containers', 'securityContext']);
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(pod.securityContext).toEqual({ seccompProfile: { type: 'RuntimeDefault' } });
    expect(pod.containers[0]).not.toHaveProperty('securityContext');
  });

  test.each(['Baseline', 'Restricted'] as const)(
    '%s mounts the token where it is asked for',
    (securityProfile) => {
      const pod = podOf({ securityProfile, automountServiceAccountToken: true });
      expect(pod.automountServiceAccountToken).toBe(true);
    },
  );
});

test.each([
  [0, undefined, false],
  [1, undefined, false],
  [2, undefined, true],
  [0, { maxReplicas: 2 }, true],
  [1, { maxReplicas: 2 }, true],
  [5, { maxReplicas: 1 }, false],
])('size %i with autoscaling %j: a budget is %s', (size, autoscaling, wanted) => {
  const { objects } = render({ ...BASE, size, disruption: {}, ...(autoscaling && { autoscaling }) });

  expect(objects.some(({ kind }) => kind === 'PodDisruptionBudget')).toBe(wanted);
});

test('constraints of topologySpread are as given, with our selector where there is none', () => {
  const rack = { maxSkew: 2, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' };
  const own = { ...rack, labelSelector: { matchLabels: { tier: 'web' } } };

  expect(podOf({ topologySpread: { constraints: [rack, own] } }).topologySpreadConstraints).toEqual([
    { ...rack, labelSelector: { matchLabels: { 'kosmos.io/appservice': 'web' } } },
    own,
  ]);
});

const NOT_TCP = 'is not the number of a port of protocol TCP in spec.ports, which has';
test.each([
  [53, BASE.ports, `spec.route.port: 53 ${NOT_TCP} 80, 9090; give one of them, or add 53`],
  [80, undefined, `spec.route.port: 80 ${NOT_TCP} none; add one, or remove the route`],
  [
    undefined,
    undefined,
    'spec.route: leads to the first port of protocol TCP, and spec.ports has none; add one',
  ],
])('a route to port %j is refused', (port, ports, message) => {
  const route = { parentRefs: [{ name: 'public' }], ...(port !== undefined && { port }) };
  const error = refusal({ size: 3, image: 'nginx', ...(ports && { ports }), route });

  expect(error.reason).toBe('RoutePortNotFound');
  expect(error.message).toContain(message);
  expect(error.path.slice(0, 2)).toEqual(['spec', 'route']);
});

describe('files', () => {
  const configMap = (path: string): FileMount => ({ path, configMap: { name: 'settings' } });

  test('keep their volumes in whatever order they stand, and when others come and go', () => {
    const files = [configMap('/b'), configMap('/a/c'), configMap('/a')];
    const [alone] = podOf({ files: [configMap('/b')] }).volumes!;

    expect(render({ ...BASE, files: [...files].reverse() }).yaml).toBe(render({ ...BASE, files }).yaml);
    expect(podOf({ files }).volumes).toContainEqual(alone);
  });

  test.each([
    [{ configMap: { name: 'a' } }, true],
    [{ secret: { name: 'a' } }, true],
    [{ persistentVolumeClaim: { claimName: 'a' } }, true],
    [{ token: {} }, true],
    [{ emptyDir: {} }, undefined],
    [{ emptyDir: {}, readOnly: true }, true],
    [{ configMap: { name: 'a' }, readOnly: false }, undefined],
  ])('%j is mounted with readOnly %j', (source, readOnly) => {
    const [mount] = containerOf(render({ ...BASE, files: [{ path: '/a', ...source }] })).volumeMounts!;

    expect(mount?.readOnly).toBe(readOnly);
  });

  test('have volumes whose names are DNS labels, and differ for paths that look alike', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (path) => {
        expect(volumeName(path)).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
      }),
    );
    const paths = ['/etc/web', '/etc-web', '/etc/web/', '/ETC/web', '/etc//web', '/etc.web', '/'];
    const long = ['a', 'b'].map((end) => `/${'x'.repeat(100)}${end}`);
    expect(new Set([...paths, ...long].map(volumeName)).size).toBe(paths.length + long.length);
  });
});

const CR = { apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web' } };

test('labels and annotations of the custom resource are never copied', () => {
  const labels = { 'app.kubernetes.io/instance': 'shop', 'kustomize.toolkit.fluxcd.io/name': 'shop' };
  const annotations = { ...labels, 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  const { autoscaling, disruption, route } = FIELDS;
  const plain: CustomResource = { ...CR, spec: { ...BASE, autoscaling, disruption, route } };

  const objects = renderKind(appService, { ...plain, metadata: { name: 'web', labels, annotations } });

  expect(objects).toHaveLength(5);
  expect(objects).toEqual(renderKind(appService, plain));
  for (const { metadata } of objects) {
    expect(metadata).not.toHaveProperty('annotations');
    expect(Object.keys(metadata.labels ?? {})).toEqual([
      ...['app', 'app.kubernetes.io/managed-by', 'app.kubernetes.io/name', 'kosmos.io/appservice'],
    ]);
  }
});

test('another API group has a label and a selector of its own, on every object', () => {
  const apiVersion = 'app.example.com/v1';
  const kind = { ...appService, type: { ...appService.type, apiVersion } };

  const text = JSON.stringify(
    renderKind(kind, { ...CR, apiVersion, spec: { ...BASE, disruption: {}, topologySpread: {} } }),
  );

  expect(text).toContain('"matchLabels":{"app.example.com/appservice":"web"}');
  expect(text).not.toContain('kosmos.io/appservice');
});
