import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { appServiceOfExample } from '../../src/kinds/app-service/example-group.js';
import { Cluster, collection } from './support/cluster.js';
import { installCrd } from './support/crds.js';
import { withFixedNodePorts } from './support/node-ports.js';
import { brokenRules } from '../kinds/app-service/broken-rules.js';
import { render } from '../kinds/app-service/render.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
let namespace: string;

const base = { size: 1, image: 'nginx' };
const kubectl: typeof cluster.sandbox.kubectl = (args, options) => cluster.sandbox.kubectl(args, options);

beforeAll(async () => {
  await Promise.all([installCrd(cluster, appService), installCrd(cluster, appServiceOfExample)]);
  namespace = await cluster.makeNamespace('app-service-crd');
});

afterAll(() => cluster.close());

/** What the API server says to a spec in a dry run. */
async function answerTo(spec: object, name = 'web', apiVersion = 'kosmos.io/v1') {
  const path = `/apis/${apiVersion}/namespaces/${namespace}/appservices`;
  const body = { apiVersion, kind: 'AppService', metadata: { name }, spec };
  return cluster.send('POST', path, { body, query: { dryRun: 'All', fieldValidation: 'Strict' } });
}

test.each(['appservices.kosmos.io', 'appservices.app.example.com'])(
  'kubectl apply takes the CRD %s, though client-side it may be 256 KiB at most',
  async (name) => {
    const file = fileURLToPath(new URL(`../../crds/${name}.yaml`, import.meta.url));

    const { stderr } = await kubectl(['apply', '--dry-run=server', '-f', file]);
    expect(stderr.replace(/^Warning: resource .* is missing the kubectl.*\n/m, '')).toBe('');
    expect(readFileSync(file, 'utf8').length).toBeLessThan(128 * 1024);
  },
);

describe.each(['kosmos.io/v1', 'app.example.com/v1', 'app.example.com/v1alpha1'])('%s', (apiVersion) => {
  test('takes what is valid', async () => {
    const { status, body } = await answerTo(base, 'web', apiVersion);

    expect([status, body.message]).toEqual([201, undefined]);
  });

  test.each(brokenRules.map((broken) => ({ what: broken.message.slice(0, 60), ...broken })))(
    'refuses: $what',
    async ({ spec, valid, name, path, message }) => {
      const [refused, taken] = await Promise.all([
        answerTo({ ...base, ...spec }, name, apiVersion),
        answerTo({ ...base, ...valid }, undefined, apiVersion),
      ]);

      expect([taken.status, taken.body.message]).toEqual([201, undefined]);
      expect(refused.status, JSON.stringify(refused.body)).toBe(422);
      const { causes } = refused.body.details as { causes: readonly { field: string; message: string }[] };
      expect(causes.map(({ field }) => field)).toEqual([path]);
      expect(causes[0]!.message).toContain(message);
    },
  );
});

const resources = { requests: { cpu: '100m' }, limits: { memory: '64Mi' } };

/** Specs at the edge of what the schema takes, beside those of the rules put right. */
const edges: readonly object[] = [
  { preStop: { sleep: { seconds: 30 } }, terminationGracePeriodSeconds: 30 },
  { disruption: { maxUnavailable: '100%' } },
  { disruption: { maxUnavailable: 0 } },
  { strategy: { rollingUpdate: { maxSurge: '12345%', maxUnavailable: '100%' } } },
  { probes: { readiness: { exec: { command: [''] }, successThreshold: 9 } } },
  {
    probes: { liveness: { grpc: { port: 65535, service: 'a' }, terminationGracePeriodSeconds: 1 } },
  },
  {
    resources,
    autoscaling: { maxReplicas: 1, memory: 1, behavior: { scaleUp: { tolerance: '0' } } },
  },
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

test.each([
  ...brokenRules.map(({ valid }) => ({ ...base, ...valid })),
  ...edges.map((edge) => ({ ...base, ...edge })),
])('the API server takes the children of what it took: %j', async (spec) => {
  const own = await answerTo(spec);
  expect([own.status, own.body.message]).toEqual([201, undefined]);

  const children = async (): Promise<void> => {
    for (const child of render(spec).objects.filter(({ kind }) => kind !== 'HTTPRoute')) {
      const path = collection(resourceType({ apiVersion: child.apiVersion, kind: child.kind }), namespace);
      const query = { dryRun: 'All', fieldValidation: 'Strict' };
      const { status, body } = await cluster.send('POST', path, { body: child, query });
      expect([child.kind, status, body.message]).toEqual([child.kind, 201, undefined]);
    }
  };
  // A dry run takes no port, but must find it free.
  await (JSON.stringify(spec).includes('nodePort') ? withFixedNodePorts(cluster, children) : children());
});

test('v1alpha1 warns that it is deprecated', async () => {
  const manifest = {
    apiVersion: 'app.example.com/v1alpha1',
    kind: 'AppService',
    metadata: { name: 'old' },
    spec: base,
  };
  const { stderr } = await kubectl(['create', '--dry-run=server', '-n', namespace, '-f', '-'], {
    stdin: JSON.stringify(manifest),
  });

  expect(stderr).toContain(
    'app.example.com/v1alpha1 AppService is deprecated; use app.example.com/v1 AppService',
  );
});

describe('an AppService with a status', () => {
  const place = {
    type: appService.type,
    name: 'web',
    get namespace() {
      return namespace;
    },
  };
  beforeAll(async () => {
    const ports = [
      { name: 'http', port: 80 },
      { name: 'https', port: 443 },
    ];
    const { type } = appService;
    await cluster.create(type, {
      ...{ apiVersion: type.apiVersion, kind: type.kind, metadata: { name: 'web', namespace } },
      spec: { ...base, ports },
    });
    const condition = { type: 'Ready', status: 'True', reason: 'Available', message: 'All is well.' };
    await cluster.send('PATCH', `/apis/kosmos.io/v1/namespaces/${namespace}/appservices/web/status`, {
      contentType: 'application/merge-patch+json',
      body: {
        status: {
          ...{ replicas: 1, availableReplicas: 1, selector: 'kosmos.io/appservice=web' },
          ports: ports.map((port, index) => ({ ...port, protocol: 'TCP', nodePort: 30080 + index })),
          portSummary: '80:30080/TCP,443:30081/TCP',
          conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }],
        },
      },
    });
  });

  test('kubectl get appsvc shows the columns', async () => {
    const narrow = await kubectl(['get', 'appsvc', '-n', namespace]);
    const wide = await kubectl(['get', 'appsvc', '-n', namespace, '-o', 'wide']);

    const words = (line: string | undefined): string[] =>
      line?.split(/\s{2,}/).map((word) => word.trim()) ?? [];
    const [head, row] = narrow.stdout.split('\n');
    expect(words(head)).toEqual(['NAME', 'READY', 'REASON', 'DESIRED', 'AVAILABLE', 'PORTS', 'AGE']);
    expect(words(row).slice(0, -1)).toEqual([
      'web',
      'True',
      'Available',
      '1',
      '1',
      '80:30080/TCP,443:30081/TCP',
    ]);
    const [wideHead, wideRow] = wide.stdout.split('\n');
    expect(words(wideHead).slice(-2)).toEqual(['IMAGE', 'MESSAGE']);
    expect(words(wideRow).slice(-2)).toEqual(['nginx', 'All is well.']);
  });

  test('kubectl scale sets the size, and autoscalers read the replicas and the selector', async () => {
    await kubectl(['scale', 'appsvc/web', '--replicas=3', '-n', namespace]);

    expect(await cluster.get(place)).toMatchObject({ spec: { size: 3 } });
    const scale = await cluster.send(
      'GET',
      `/apis/kosmos.io/v1/namespaces/${namespace}/appservices/web/scale`,
    );
    expect(scale.body).toMatchObject({
      ...{ kind: 'Scale', spec: { replicas: 3 } },
      status: { replicas: 1, selector: 'kosmos.io/appservice=web' },
    });
  });

  test('is found by its image', async () => {
    const find = (image: string) =>
      kubectl(['get', 'appsvc', '-n', namespace, '-o', 'name', '--field-selector', `spec.image=${image}`]);

    expect((await find('nginx')).stdout).toBe('appservice.kosmos.io/web\n');
    expect((await find('httpd')).stdout).toBe('');
  });
});

test('only kosmos.io has the short name and the category', async () => {
  const { stdout } = await kubectl(['api-resources', '--categories=all', '-o', 'name']);

  expect(stdout).toContain('appservices.kosmos.io');
  expect(stdout).not.toContain('appservices.app.example.com');
});
