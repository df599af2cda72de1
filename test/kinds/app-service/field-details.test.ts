import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { volumeName } from '../../../src/kinds/app-service/construct.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec, FileMount } from '../../../src/kinds/app-service/spec.js';
import { render as renderKind } from '../../../src/synth/render.js';
import { BASE } from './field-cases.js';
import { containerOf, refusal, render } from './render.js';

function objectOf(spec: Partial<AppServiceSpec>, kind: string): AnyObject | undefined {
  return render({ ...BASE, ...spec }).objects.find((object) => object.kind === kind);
}

function podOf(spec: Partial<AppServiceSpec>) {
  return render({ ...BASE, ...spec }).deployment.spec!.template.spec!;
}

describe('securityProfile', () => {
  test('Baseline lets an image run as root', () => {
    const pod = podOf({ securityProfile: 'Baseline' });

    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(Object.keys(pod)).toEqual(['automountServiceAccountToken', 'containers', 'securityContext']);
    expect(pod.securityContext).not.toHaveProperty('runAsNonRoot');
    expect(pod.containers[0]).not.toHaveProperty('securityContext');
  });

  test.each(['Baseline', 'Restricted'] as const)(
    '%s mounts the token where it is asked for',
    (securityProfile) => {
      expect(podOf({ securityProfile, automountServiceAccountToken: true })).toHaveProperty(
        'automountServiceAccountToken',
        true,
      );
    },
  );
});

describe('disruption', () => {
  const autoscaling = { maxReplicas: 2 };

  test.each([
    [0, undefined, false],
    [1, undefined, false],
    [2, undefined, true],
    [0, autoscaling, true],
    [1, autoscaling, true],
    [5, { maxReplicas: 1 }, false],
  ])('of size %i with autoscaling %j: a budget is %s', (size, scaling, wanted) => {
    const spec = { size, disruption: {}, ...(scaling && { autoscaling: scaling }) };

    expect(objectOf(spec, 'PodDisruptionBudget') !== undefined).toBe(wanted);
  });
});

describe('topologySpread', () => {
  test('or as given, with our selector where there is none', () => {
    const rack = { maxSkew: 2, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' };
    const own = { ...rack, labelSelector: { matchLabels: { tier: 'web' } } };

    expect(podOf({ topologySpread: { constraints: [rack, own] } }).topologySpreadConstraints).toEqual([
      { ...rack, labelSelector: { matchLabels: { 'kosmos.io/appservice': 'web' } } },
      own,
    ]);
  });
});

describe('route', () => {
  const parentRefs = [{ name: 'public' }];

  test.each([
    [
      53,
      BASE.ports,
      'spec.route.port: 53 is not the number of a port of protocol TCP in spec.ports, which has 80, 9090; give one of them, or add 53',
    ],
    [
      80,
      undefined,
      'spec.route.port: 80 is not the number of a port of protocol TCP in spec.ports, which has none; add one, or remove the route',
    ],
    [
      undefined,
      undefined,
      'spec.route: leads to the first port of protocol TCP, and spec.ports has none; add one, or remove the route',
    ],
  ])('to port %j it is refused', (port, ports, message) => {
    const { size, image } = BASE;
    const error = refusal({
      ...{ size, image },
      ...(ports && { ports }),
      route: { parentRefs, ...(port !== undefined && { port }) },
    });

    expect(error).toMatchObject({ reason: 'RoutePortNotFound', message });
    expect(error.path.slice(0, 2)).toEqual(['spec', 'route']);
  });
});

describe('files', () => {
  const configMap = (path: string): FileMount => ({ path, configMap: { name: 'settings' } });

  test('their order counts for nothing', () => {
    const files = [configMap('/b'), configMap('/a/c'), configMap('/a')];

    expect(render({ ...BASE, files: [...files].reverse() }).yaml).toBe(render({ ...BASE, files }).yaml);
  });

  test('a volume keeps its name when others come and go', () => {
    const [alone] = podOf({ files: [configMap('/b')] }).volumes!;

    expect(podOf({ files: [configMap('/a'), configMap('/b')] }).volumes).toContainEqual(alone);
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
});

describe('the name of a volume', () => {
  test('is a DNS label for every path', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (path) => {
        expect(volumeName(path)).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
      }),
    );
  });

  test('tells apart what looks alike', () => {
    const paths = ['/etc/web', '/etc-web', '/etc/web/', '/ETC/web', '/etc//web', '/etc.web', '/'];
    const long = ['a', 'b'].map((end) => `/${'x'.repeat(100)}${end}`);

    expect(long.map((path) => volumeName(path).length)).toEqual([57, 57]);
    expect(new Set([...paths, ...long].map(volumeName)).size).toBe(paths.length + long.length);
  });
});

test('labels and annotations of the custom resource are never copied', () => {
  const foreign = {
    'app.kubernetes.io/instance': 'shop',
    'argocd.argoproj.io/instance': 'shop',
    'kustomize.toolkit.fluxcd.io/name': 'shop',
    'helm.toolkit.fluxcd.io/name': 'shop',
    'meta.helm.sh/release-name': 'shop',
    'helm.sh/chart': 'shop-1',
    'team.example.com/owner': 'shop',
  };
  const annotations = { ...foreign, 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  const spec: AppServiceSpec = {
    ...BASE,
    ...{ autoscaling: { maxReplicas: 3 }, disruption: {}, route: { parentRefs: [{ name: 'public' }] } },
  };
  const cr = { apiVersion: 'kosmos.io/v1', kind: 'AppService', spec };
  const plain: CustomResource = { ...cr, metadata: { name: 'web' } };
  const managed: CustomResource = { ...cr, metadata: { name: 'web', labels: foreign, annotations } };

  const objects = renderKind(appService, managed);

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
  const kind = { ...appService, type: { ...appService.type, apiVersion: 'app.example.com/v1' } };
  const cr = {
    ...{ apiVersion: 'app.example.com/v1', kind: 'AppService', metadata: { name: 'web' } },
    spec: { ...BASE, disruption: {}, topologySpread: {} },
  };

  const text = JSON.stringify(renderKind(kind, cr));

  expect(text).toContain('"matchLabels":{"app.example.com/appservice":"web"}');
  expect(text).not.toContain('kosmos.io/appservice');
});
