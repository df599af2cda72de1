import { App, Chart } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { AppService } from '../../../src/kinds/app-service/construct.js';
import { fullImageName, isWithin, type AppServicePolicy } from '../../../src/kinds/app-service/policy.js';
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
const apps = { ...ANY, hostnames: ['shop.example.com', '*.apps.example.com'] };
const PROFILE = "than the policy's securityProfile,";

describe('what a policy denies', () => {
  const autoscaling = { maxReplicas: 30 };
  const balanced: AppServiceSpec = { ...WITH_PORT, service: { type: 'LoadBalancer' } };

  /** Each with the place, the mistake with the value, and the remedy; `...` is anything. */
  test.each<[AppServicePolicy, AppServiceSpec, string]>([
    [
      { securityProfile: 'Restricted' },
      { ...WEB, securityProfile: 'Baseline' },
      `spec.securityProfile: "Baseline" is less ${PROFILE} Restricted; set it to Restricted`,
    ],
    [{ securityProfile: 'Baseline' }, WEB, `spec.securityProfile: is not set, which is less ${PROFILE} Base`],
    [
      { serviceTypes: ['ClusterIP', 'NodePort'] },
      balanced,
      'spec.service.type: "LoadBalancer" is not in ...serviceTypes; give one of ClusterIP, NodePort',
    ],
    [{ serviceTypes: ['ClusterIP'] }, WITH_PORT, 'spec.service.type: "NodePort", the default, is not in'],
    [
      { imageRegistries: ['registry.example.com/shop', 'ghcr.io'] },
      WEB,
      'spec.image: "nginx:1.27" comes from docker.io/library/nginx, which is not in ...; take one from registry.example.com/shop, ghcr.io',
    ],
    [
      { imageRegistries: ['docker.io'] },
      { ...WEB, image: 'docker.io/../x' },
      'spec.image: "docker.io/../x" is not the name of an image, and is not in ...imageRegistries',
    ],
    [
      { ...ANY, gateways: ['infra/public'] },
      routeTo(['infra', 'public'], ['infra', 'admin']),
      'spec.route.parentRefs[1]: "infra/admin" is not in ...gateways; give one of infra/public',
    ],
    [
      { ...ANY, gateways: ['infra/*'] },
      routeTo([undefined, 'public']),
      'spec.route.parentRefs[0]: "public" in an unknown namespace is not in',
    ],
    [
      apps,
      routeFor('shop.example.com', 'a.apps.example.com', '*.b.apps.example.com', 'apps.example.com'),
      'spec.route.hostnames[3]: "apps.example.com" is not in ...; give one of shop.example.com, *.apps.example.com',
    ],
    [apps, routeFor('*.example.com'), 'spec.route.hostnames[0]: "*.example.com" is not in'],
    [apps, routeFor(), 'spec.route.hostnames: is not set, which is every hostname, and'],
    [
      { ...ANY, hostnames: [] },
      routeFor('a.example.com'),
      'hostnames[0]: "a.example.com" ...; none is allowed',
    ],
    [{ maxSize: 20 }, { ...WEB, size: 21 }, 'spec.size: 21 is more than ...maxSize, 20; give 20 or less'],
    [{ maxSize: 20 }, { ...WEB, autoscaling }, 'spec.autoscaling.maxReplicas: 30 is more than'],
    [
      { features: ['probes'] },
      { ...WEB, probes: {}, autoscaling },
      'spec.autoscaling: is used, and is not in ...features; remove it, or ask an admin to allow it',
    ],
    [
      { features: [] },
      { ...WEB, serviceAccountName: 'admin' },
      'spec.serviceAccountName: "admin" is used, and is not in',
    ],
  ])('%j', (policy, spec, parts) => {
    for (const part of parts.split('...')) expect(denial(policy, spec)?.message).toContain(part.trim());
  });

  test.each<AppServicePolicy>([
    ...[{}, { gateways: ['infra/public'] }, { hostnames: ['*'] }, { features: ['route'] }],
  ])('is every route, where it is %j', (policy) => {
    const error = denial(policy, routeTo(['infra', 'public']));
    expect(error?.path).toEqual(['spec', 'route']);
    expect(error?.message).toMatch(
      /^spec\.route: is used, and the policy has no .* for routes; remove it, or .*\(--policy\), below appservice/,
    );
  });

  test('is all named at once, with the path of the first', () => {
    const error = denial({ maxSize: 0, securityProfile: 'Baseline' }, WEB);

    expect(error?.path).toEqual(['spec', 'securityProfile']);
    expect(error?.message).toMatch(/^spec\.securityProfile: .*; set it to Baseline\. spec\.size: 1 is more/);
  });

  test('a gateway without a namespace is in that of the custom resource', () => {
    const policy = { ...ANY, gateways: ['shop/public'] };

    expect(denial(policy, routeTo([undefined, 'public']), 'shop')).toBeUndefined();
    expect(denial(policy, routeTo([undefined, 'public']), 'other')?.message).toContain('"other/public"');
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
  ['nginx:1.27', 'docker.io/library/nginx'],
  ['docker.io/nginx', 'docker.io/library/nginx'],
  ['index.docker.io/nginx', 'docker.io/library/nginx'],
  ['shop/web@sha256:0123', 'docker.io/shop/web'],
  ['localhost/web', 'localhost/web'],
  ['localhost:5000/web:1@sha256:0123', 'localhost:5000/web'],
  ['Registry.example.com/shop/web', 'registry.example.com/shop/web'],
  ['HOST/web', 'host/web'],
  ['registry.example.com:443/a/b__c/d-e', 'registry.example.com:443/a/b__c/d-e'],
  ...['docker.io/../evil', 'docker.io//evil', 'docker.io/', 'Nginx', 'a b', ''].map((none) => [none]),
])('the full name of %s is %s', (image, full) => {
  expect(fullImageName(image)).toBe(full);
});

test('an image lies in a registry or a folder by whole parts of its path', () => {
  const registries = ['ghcr.io', 'GHCR.io', 'ghcr.io/', 'ghcr.io/shop', 'ghcr.io/shop/web'];

  expect(registries.filter((registry) => !isWithin('ghcr.io/shop/web', registry))).toEqual([]);
  for (const other of ['ghcr.io/sho', 'ghcr.i', 'ghcr.io/shop/web/x'])
    expect(isWithin('ghcr.io/shop/web', other)).toBe(false);
});
