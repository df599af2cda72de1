import { App, Chart } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { AppService } from '../../../src/kinds/app-service/construct.js';
import { fullImageName, isWithin } from '../../../src/kinds/app-service/policy.js';
import type { AppServicePolicy } from '../../../src/kinds/app-service/policy.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

const WEB: AppServiceSpec = { size: 1, image: 'nginx:1.27' };
const WITH_PORT: AppServiceSpec = { ...WEB, ports: [{ port: 80 }] };

function denial(
  policy: AppServicePolicy,
  spec: AppServiceSpec,
  namespace?: string,
): OperatorError | undefined {
  const metadata = { name: 'web', ...(namespace !== undefined && { namespace }) };
  try {
    new AppService(new Chart(new App(), 'test'), 'AppService', { metadata, spec, policy });
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorError);
    expect(error).toMatchObject({ reason: 'PolicyDenied', retry: 'onChange' });
    return error as OperatorError;
  }
}

function routeTo(...parents: [namespace: string | undefined, name: string][]): AppServiceSpec {
  const parentRefs = parents.map(([namespace, name]) => ({ name, ...(namespace && { namespace }) }));
  return { ...WITH_PORT, route: { parentRefs } };
}

function routeFor(...hostnames: string[]): AppServiceSpec {
  const route = { parentRefs: [{ name: 'public' }], ...(hostnames.length > 0 && { hostnames }) };
  return { ...WITH_PORT, route };
}

const ANY: AppServicePolicy = { gateways: ['*/*'], hostnames: ['*'] };

describe('what a policy denies', () => {
  const autoscaling = { maxReplicas: 30 };

  test.each<[AppServicePolicy, AppServiceSpec, string]>([
    [
      { securityProfile: 'Restricted' },
      { ...WEB, securityProfile: 'Baseline' },
      `spec.securityProfile: "Baseline" is less than the policy's securityProfile, Restricted; set it to Restricted`,
    ],
    [
      { securityProfile: 'Baseline' },
      WEB,
      `spec.securityProfile: is not set, which is less than the policy's securityProfile, Baseline; set it to Baseline`,
    ],
    [
      { serviceTypes: ['ClusterIP', 'NodePort'] },
      { ...WITH_PORT, service: { type: 'LoadBalancer' } },
      `spec.service.type: "LoadBalancer" is not in the policy's serviceTypes; give one of ClusterIP, NodePort`,
    ],
    [
      { serviceTypes: ['ClusterIP'] },
      WITH_PORT,
      `spec.service.type: "NodePort", the default, is not in the policy's serviceTypes; give one of ClusterIP`,
    ],
    [
      { imageRegistries: ['registry.example.com/shop', 'ghcr.io'] },
      WEB,
      `spec.image: "nginx:1.27" comes from docker.io/library/nginx, which is not in the policy's imageRegistries; take one from registry.example.com/shop, ghcr.io`,
    ],
    [
      { imageRegistries: ['docker.io'] },
      { ...WEB, image: 'docker.io/../x' },
      `spec.image: "docker.io/../x" is not the name of an image, and is not in the policy's imageRegistries; take one from docker.io`,
    ],
    [
      { ...ANY, gateways: ['infra/public'] },
      routeTo(['infra', 'public'], ['infra', 'admin']),
      `spec.route.parentRefs[1]: "infra/admin" is not in the policy's gateways; give one of infra/public`,
    ],
    [
      { ...ANY, gateways: ['infra/*'] },
      routeTo([undefined, 'public']),
      `spec.route.parentRefs[0]: "public" in an unknown namespace is not in the policy's gateways; give one of infra/*`,
    ],
    [
      { ...ANY, hostnames: ['shop.example.com', '*.apps.example.com'] },
      routeFor('shop.example.com', 'a.apps.example.com', '*.b.apps.example.com', 'apps.example.com'),
      `spec.route.hostnames[3]: "apps.example.com" is not in the policy's hostnames; give one of shop.example.com, *.apps.example.com`,
    ],
    [
      { ...ANY, hostnames: ['*.apps.example.com'] },
      routeFor('*.example.com'),
      `spec.route.hostnames[0]: "*.example.com" is not in the policy's hostnames; give one of *.apps.example.com`,
    ],
    [
      { ...ANY, hostnames: ['*.apps.example.com'] },
      routeFor(),
      `spec.route.hostnames: is not set, which is every hostname, and the policy's hostnames don't have them all; give one of *.apps.example.com`,
    ],
    [
      { ...ANY, hostnames: [] },
      routeFor('shop.example.com'),
      `spec.route.hostnames[0]: "shop.example.com" is not in the policy's hostnames; none is allowed`,
    ],
    [
      { maxSize: 20 },
      { ...WEB, size: 21 },
      `spec.size: 21 is more than the policy's maxSize, 20; give 20 or less`,
    ],
    [
      { maxSize: 20 },
      { ...WEB, autoscaling },
      `spec.autoscaling.maxReplicas: 30 is more than the policy's maxSize, 20; give 20 or less`,
    ],
    [
      { features: ['probes'] },
      { ...WEB, probes: {}, autoscaling },
      `spec.autoscaling: is used, and is not in the policy's features; remove it, or ask an admin to allow it`,
    ],
    [
      { features: [] },
      { ...WEB, serviceAccountName: 'admin' },
      `spec.serviceAccountName: "admin" is used, and is not in the policy's features; remove it, or ask an admin to allow it`,
    ],
  ])('%j', (policy, spec, message) => {
    expect(denial(policy, spec)?.message).toBe(message);
  });

  test.each<AppServicePolicy>([
    {},
    { gateways: ['infra/public'] },
    { hostnames: ['*'] },
    { features: ['route'] },
  ])('is every route, where it is %j', (policy) => {
    expect(denial(policy, routeTo(['infra', 'public']))).toMatchObject({
      path: ['spec', 'route'],
      message: expect.stringMatching(
        /^spec\.route: is used, and the policy has no .* for routes; remove it, or ask an admin to list them in the operator's policy \(--policy\), below appservice/,
      ) as string,
    });
  });

  test('is all named at once, with the path of the first', () => {
    const error = denial({ maxSize: 0, securityProfile: 'Baseline' }, WEB);

    expect(error?.path).toEqual(['spec', 'securityProfile']);
    expect(error?.message).toMatch(
      /^spec\.securityProfile: .*; set it to Baseline\. spec\.size: 1 is more than/,
    );
  });

  test('a gateway without a namespace is in that of the custom resource', () => {
    expect(
      denial({ ...ANY, gateways: ['shop/public'] }, routeTo([undefined, 'public']), 'shop'),
    ).toBeUndefined();
    expect(
      denial({ ...ANY, gateways: ['shop/public'] }, routeTo([undefined, 'public']), 'other')?.message,
    ).toContain('"other/public" is not in');
  });
});

test.each<[AppServicePolicy, AppServiceSpec]>([
  [{}, { ...WITH_PORT, size: 1000 }],
  [{ securityProfile: 'Baseline' }, { ...WEB, securityProfile: 'Restricted' }],
  [{ securityProfile: 'Restricted' }, { ...WEB, securityProfile: 'Restricted' }],
  [{ serviceTypes: ['NodePort'] }, WITH_PORT],
  [{ serviceTypes: [] }, WEB],
  [{ imageRegistries: ['docker.io/library'] }, WEB],
  [{ ...ANY, gateways: ['*/public'] }, routeTo([undefined, 'public'], ['infra', 'public'])],
  [ANY, routeFor()],
  [{ ...ANY, hostnames: ['*.example.com'] }, routeFor('*.example.com', 'a.b.example.com')],
  [{ hostnames: [] }, WITH_PORT],
  [{ maxSize: 20 }, { ...WEB, size: 20, autoscaling: { maxReplicas: 20 } }],
  [{ features: ['service'] }, { ...WITH_PORT, service: {}, envs: [], resources: {} }],
  [{ features: [] }, { ...WITH_PORT, envs: [], resources: {} }],
  [
    { features: [], securityProfile: 'Baseline' },
    { ...WEB, securityProfile: 'Baseline' },
  ],
])('%j allows %j', (policy, spec) => {
  expect(denial(policy, spec)).toBeUndefined();
});

test.each([
  ['nginx', 'docker.io/library/nginx'],
  ['nginx:1.27', 'docker.io/library/nginx'],
  ['docker.io/nginx', 'docker.io/library/nginx'],
  ['index.docker.io/nginx', 'docker.io/library/nginx'],
  ['shop/web@sha256:0123', 'docker.io/shop/web'],
  ['localhost/web', 'localhost/web'],
  ['localhost:5000/web:1@sha256:0123', 'localhost:5000/web'],
  ['Registry.example.com/shop/web', 'registry.example.com/shop/web'],
  ['HOST/web', 'host/web'],
  ['registry.example.com:443/a/b__c/d-e', 'registry.example.com:443/a/b__c/d-e'],
  ['docker.io/../evil', undefined],
  ['docker.io//evil', undefined],
  ['docker.io/', undefined],
  ['Nginx', undefined],
  ['a b', undefined],
  ['', undefined],
])('the full name of %s is %s', (image, full) => {
  expect(fullImageName(image)).toBe(full);
});

test.each([
  ['ghcr.io', true],
  ['GHCR.io', true],
  ['ghcr.io/', true],
  ['ghcr.io/shop', true],
  ['ghcr.io/shop/web', true],
  ['ghcr.io/sho', false],
  ['ghcr.i', false],
  ['ghcr.io/shop/web/x', false],
])('ghcr.io/shop/web in %s: %s', (registry, within) => {
  expect(isWithin('ghcr.io/shop/web', registry)).toBe(within);
});
