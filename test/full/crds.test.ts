import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1PodSpec } from '@kubernetes/client-node';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService, appServiceOfExample } from '../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../src/kinds/app-service/spec.js';
import { brokenRules } from '../kinds/app-service/broken-rules.js';
import { render } from '../kinds/app-service/render.js';
import {
  collection,
  eventually,
  installCrd,
  namespaceType,
  pods,
  serviceAccounts,
  withFixedNodePorts,
} from '../support/cluster.js';
import type { Answer } from '../support/cluster.js';
import { examplesFolder } from '../support/examples.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const kubectl: typeof cluster.sandbox.kubectl = (args, options) => cluster.sandbox.kubectl(args, options);
const base = { size: 1, image: 'nginx' };
/** Enforces the Pod Security Standard restricted. */
let restricted: string;
let namespace: string;

beforeAll(async () => {
  await installCrd(cluster, appService, appServiceOfExample);
  namespace = await cluster.makeNamespace('crds');
  restricted = await cluster.makeNamespace('crds-restricted');
  for (const [name, level] of Object.entries({ [namespace]: 'baseline', [restricted]: 'restricted' })) {
    const labels = { 'pod-security.kubernetes.io/enforce': level };
    await cluster.merge({ type: namespaceType, name }, { metadata: { labels } });
    const account = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default', namespace: name },
    };
    // Without the controllers of Kubernetes there is none.
    await eventually(() => cluster.apply(serviceAccounts, account, 'test'));
  }
});

/** Asks the API server in a dry run. */
async function answerTo(type: string, body: object, where = namespace): Promise<Answer> {
  return cluster.send('POST', type.replace('*', where), {
    body,
    query: { dryRun: 'All', fieldValidation: 'Strict' },
  });
}

function app(spec: object, name = 'web', apiVersion = 'kosmos.io/v1'): Promise<Answer> {
  const body = { apiVersion, kind: 'AppService', metadata: { name }, spec };
  return answerTo(`/apis/${apiVersion}/namespaces/*/appservices`, body);
}

const files = globSync('crds/{,optional/}*.yaml', { cwd: repoFolder() });

test.each(files)('kubectl apply takes %s, though client-side it may be 256 KiB at most', async (name) => {
  const file = join(repoFolder(), name);

  const { stderr } = await kubectl(['apply', '--dry-run=server', '-f', file]);
  expect(stderr.replace(/^Warning: resource .* is missing the kubectl.*\n/m, '')).toBe('');
  expect(readFileSync(file, 'utf8').length).toBeLessThan(128 * 1024);
});

// That of kosmos.io is judged with all others in offline-online.test.ts.
test.each(['app.example.com/v1', 'app.example.com/v1alpha1'])('%s has the same rules', async (apiVersion) => {
  for (const { spec, valid, name, path, message } of brokenRules) {
    const [refused, taken] = await Promise.all([
      app({ ...base, ...spec }, name, apiVersion),
      app({ ...base, ...valid }, undefined, apiVersion),
    ]);

    expect([taken.status, taken.body.message], message).toEqual([201, undefined]);
    expect(refused.status, JSON.stringify(refused.body)).toBe(422);
    const { causes } = refused.body.details as { causes: readonly { field: string; message: string }[] };
    expect(causes.map(({ field }) => field)).toEqual([path]);
    expect(causes[0]!.message).toContain(message);
  }
});

const resources = { requests: { cpu: '100m' }, limits: { memory: '64Mi' } };

/** Specs at the edge of what the schema takes. */
const edges: readonly object[] = [
  { preStop: { sleep: { seconds: 30 } }, terminationGracePeriodSeconds: 30 },
  { disruption: { maxUnavailable: '100%' } },
  { disruption: { maxUnavailable: 0 } },
  { strategy: { rollingUpdate: { maxSurge: '12345%', maxUnavailable: '100%' } } },
  { probes: { readiness: { exec: { command: [''] }, successThreshold: 9 } } },
  { probes: { liveness: { grpc: { port: 65535, service: 'a' }, terminationGracePeriodSeconds: 1 } } },
  { resources, autoscaling: { maxReplicas: 1, memory: 1, behavior: { scaleUp: { tolerance: '0' } } } },
  { resources, autoscaling: { maxReplicas: 2 ** 31 - 1, cpu: 2 ** 31 - 1 } },
  { envFrom: [{ prefix: ' a.b~', configMapRef: { name: 'a.b-c' } }] },
  {
    files: [
      { path: '/a', emptyDir: { medium: 'Memory', sizeLimit: '.5Gi' } },
      { path: '/b', emptyDir: { medium: 'HugePages-2Mi', sizeLimit: 0 } },
      { path: '/c', emptyDir: { medium: 'HugePages-1Gi' } },
      { path: '/d', token: { audience: 'a', expirationSeconds: 600 } },
      { path: '/e', token: { expirationSeconds: 4_294_967_296 } },
      {
        path: '/f/../g',
        configMap: { name: 'a', defaultMode: 511, items: [{ key: '-._', path: 'a//.b', mode: 0 }] },
      },
    ],
  },
  { ports: [{ port: 80 }], service: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' } },
  ...['PreferClose', 'PreferSameZone', 'PreferSameNode'].map((trafficDistribution) => ({
    ...{ ports: [{ port: 80 }], service: { trafficDistribution } },
  })),
];

// As kubectl reads it: 0555 is octal.
const examples = readdirSync(join(examplesFolder, 'appservice')).map((file) => {
  const text = readFileSync(join(examplesFolder, 'appservice', file), 'utf8');
  return (parse(text, { version: '1.1' }) as { spec: AppServiceSpec }).spec;
});

test.each([
  ...examples,
  ...[...brokenRules.map(({ valid }) => valid), ...edges].map((spec) => ({ ...base, ...spec })),
])('the API server takes the children of what it took, and admits the pods: %j', async (spec) => {
  const own = await app(spec);
  expect([own.status, own.body.message]).toEqual([201, undefined]);

  const children = async (): Promise<void> => {
    for (const child of render(spec).objects.filter(({ kind }) => kind !== 'HTTPRoute')) {
      const type = resourceType({ apiVersion: child.apiVersion, kind: child.kind });
      const { status, body } = await answerTo(collection(type, '*'), child);
      expect([child.kind, status, body.message]).toEqual([child.kind, 201, undefined]);
    }
  };
  // A dry run takes no port, but must find it free.
  await (JSON.stringify(spec).includes('nodePort') ? withFixedNodePorts(cluster, children) : children());

  /** Verdict of Pod Security admission on a pod with a profile. */
  const admitted = async (securityProfile: string | undefined, where: string): Promise<unknown> => {
    const { template } = render({ ...spec, securityProfile } as AppServiceSpec).deployment.spec!;
    // No account has to be there for the judgement.
    const { serviceAccount, serviceAccountName, ...podSpec } = template.spec as V1PodSpec;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: podSpec };
    const { status, body: said } = await answerTo(collection(pods, '*'), body, where);
    return status === 201 ? 'admitted' : `${status} ${String(said.message)}`;
  };
  expect(await admitted('Restricted', restricted)).toBe('admitted');
  for (const profile of ['Baseline', undefined]) expect(await admitted(profile, namespace)).toBe('admitted');
  expect(await admitted(undefined, restricted)).toMatch(/^403 .*violates PodSecurity/);
});

test('v1alpha1 warns that it is deprecated', async () => {
  const metadata = { name: 'old' };
  const manifest = { apiVersion: 'app.example.com/v1alpha1', kind: 'AppService', metadata, spec: base };
  const { stderr } = await kubectl(['create', '--dry-run=server', '-n', namespace, '-f', '-'], {
    stdin: JSON.stringify(manifest),
  });

  expect(stderr).toContain(
    'app.example.com/v1alpha1 AppService is deprecated; use app.example.com/v1 AppService',
  );
});

test('an AppService is found by its image, and only kosmos.io has the short name and the category', async () => {
  const metadata = { name: 'web', namespace };
  await cluster.create(appService.type, { ...appService.type, metadata, spec: base });
  const find = (image: string) =>
    kubectl(['get', 'appsvc', '-n', namespace, '-o', 'name', '--field-selector', `spec.image=${image}`]);

  expect((await find('nginx')).stdout).toBe('appservice.kosmos.io/web\n');
  expect((await find('httpd')).stdout).toBe('');
  const { stdout } = await kubectl(['api-resources', '--categories=all', '-o', 'name']);
  expect(stdout).toContain('appservices.kosmos.io');
  expect(stdout).not.toContain('appservices.app.example.com');
});
