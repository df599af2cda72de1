import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FieldChange } from '../../src/engine/preview/fields.js';
import { rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import type { Spec } from '../../src/testing/walk.js';
import { hasRefusedFields, planWalks } from '../support/app-service-specs.js';
import {
  accountKubeconfig,
  configMaps,
  deployments,
  eventually,
  grant,
  installCrd,
  jobs,
  kubeconfigOf,
  services,
} from '../support/cluster.js';
import { actions, changedPaths, Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import {
  childrenNow,
  objectsCreated,
  objectsToCreate,
  whatChanged,
  whatWouldChange,
} from '../support/predicted.js';
import { requestsFromNowOn, writes } from '../support/requests.js';
import { IngressNginx, makeUpstream } from '../support/streams.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-49';
const asker = 'operator-50';
const cluster = openCluster();
const kinds = [appService, jobWatcher, streamIngress];
let namespace: string;
let folder: string;
let apps: Subject;
let differ: Reconstruct;

beforeAll(async () => {
  await installCrd(cluster, ...kinds);
  namespace = await cluster.makeNamespace('diff');
  apps = new Subject(cluster, appService, namespace);
  await new IngressNginx(cluster, user, 'own', namespace, 'proxy').makeService();
  await makeUpstream(cluster, namespace);
  folder = await mkdtemp(join(tmpdir(), 'diff-'));
  const policy = join(folder, 'policy.yaml');
  const targets = [{ name: 'own', ingressNamespace: namespace, ingressService: 'proxy' }];
  const streamingress = { defaultClass: 'own', targets };
  const appservice = { gateways: ['*/*'], hostnames: ['*'] };
  await writeFile(policy, JSON.stringify({ appservice, streamingress }));
  await startController({
    ...{ cluster, user, kinds: [appService, streamIngress], namespaces: [namespace] },
    args: ['--policy', policy],
  });
  const rules = [
    ...rulesFor([appService], { namespaces: [namespace] }),
    ...rulesFor([streamIngress], { namespaces: [namespace], policy: streamingress }),
  ];
  await grant(cluster, { user: asker, namespaces: [namespace], rules: [...rules, ...ofAsker()] });
  const inside = ['--watch-namespace', namespace, '-n', namespace, '--operator-namespace', 'ops'];
  differ = new Reconstruct('diff', await accountKubeconfig(cluster, asker), ['--policy', policy, ...inside]);
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** To apply custom resources, and to read what is matched. */
function ofAsker() {
  const custom = kinds.map(({ crd, type }) => ({
    ...{ apiGroups: [crd.spec.group], resources: [type.plural], verbs: ['get', 'list', 'create', 'update'] },
  }));
  return [...custom, { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list'] }];
}

const web = { size: 1, image: 'example.com/web:1' };

function resource(
  { type }: { readonly type: { apiVersion: string; kind: string } },
  name: string,
  spec: object,
) {
  const { apiVersion, kind } = type;
  return { apiVersion, kind, metadata: { name, namespace }, spec };
}

const app = (name: string, spec: object) => resource(appService, name, spec);

describe('a new custom resource', () => {
  test('is shown with all that it would make, and nothing of it is made', async () => {
    const requests = await requestsFromNowOn(cluster, asker);
    const found = await differ.diff([app('new', { ...web, ports: [{ port: 80 }] })]);

    expect(found).toMatchObject({ code: 1, differs: true });
    expect(actions(found)).toEqual([
      'created AppService new',
      'created Deployment new',
      'created Service new',
    ]);
    expect(found.objects[1]!.object).toMatchObject({ spec: { replicas: 1 } });
    expect(await cluster.find(apps.place('new'))).toBeUndefined();
    expect(await cluster.find(apps.childPlace(deployments, 'new'))).toBeUndefined();
    const sent = writes(await requests());
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.filter(({ uri }) => !uri.includes('dryRun=All'))).toEqual([]);
  });

  test("whose name is taken by an object that is another writer's, is a conflict until that is handed over", async () => {
    const metadata = { name: 'taken', namespace };
    const spec = { ports: [{ port: 80 }] };
    await cluster.create(services, { apiVersion: 'v1', kind: 'Service', metadata, spec });

    const { code, stdout } = await differ.of([app('taken', { ...web, ports: [{ port: 80 }] })]);

    expect(code).toBe(1);
    expect(stdout).toContain(`Service ${namespace}/taken can't be applied: OwnershipConflict`);
    expect(stdout).toContain('annotate the object with reconstruct.kosmos.io/adopt-by=AppService/taken\n');
    expect(stdout).toContain('2 to create, 1 refused');

    const annotations = { 'reconstruct.kosmos.io/adopt-by': 'AppService/taken' };
    await cluster.merge(apps.childPlace(services, 'taken'), { metadata: { annotations } });
    const found = await differ.diff([app('taken', { ...web, ports: [{ port: 80 }] })]);
    expect(actions(found)).toContain('changed Service taken');
    expect(changedPaths(found)).toContain('Service .spec.type');
  });

  test('that kubectl has made, with an unnamed port, shows what is taken over once it is handed over, and what goes', async () => {
    const metadata = {
      name: 'unnamed',
      labels: { team: 'a' },
      annotations: { 'reconstruct.kosmos.io/adopt-by': 'AppService/unnamed' },
    };
    const spec = { type: 'ClusterIP', sessionAffinity: 'ClientIP', ports: [{ port: 8080 }] };
    const made = JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata, spec });
    await cluster.sandbox.kubectl(['-n', namespace, 'create', '-f', '-'], { stdin: made });
    const wanted = app('unnamed', { ...web, ports: [{ name: 'http', port: 80 }] });

    const { code, stdout } = await differ.of([wanted]);

    expect(code).toBe(1);
    expect(stdout).toContain('  .spec.type is taken from kubectl-create\n');
    expect(stdout).toContain('  .spec.sessionAffinity is dropped, which is set by kubectl-create\n');
    expect(stdout).toContain(
      '  .spec.ports[port=8080,protocol="TCP"] is dropped, which is set by kubectl-create\n',
    );
    expect(stdout).not.toContain('team');
    const before = await cluster.get(apps.childPlace(services, 'unnamed'));
    expect(before.spec).toMatchObject(spec);
  });
});

describe('a settled custom resource', () => {
  const spec = { ...web, ports: [{ port: 80 }] };

  beforeAll(async () => {
    await apps.create('settled', spec);
    await apps.asRendered('settled');
  });

  test('differs in nothing, and standard output is empty', async () => {
    const nothing = { code: 0, stdout: '', stderr: 'no changes\n' };
    expect(await differ.of([app('settled', spec)])).toEqual(nothing);
    expect(await differ.run('appsvc', 'settled')).toEqual(nothing);
  });

  test('that loses a child shows it as deleted, and it stays', async () => {
    const found = await differ.diff([app('settled', web)]);

    expect(actions(found)).toContain('deleted Service settled');
    expect(await cluster.find(apps.childPlace(services, 'settled'))).toBeDefined();
  });
});

describe("what can't be answered ends with exit code 3", () => {
  test("by one that doesn't let him", async () => {
    const found = await differ.of([{ ...app('x', web), metadata: { name: 'x', namespace: 'default' } }]);
    expect(found).toMatchObject({ code: 3, stdout: '' });
    expect(found.stderr).toMatch(
      /^The cluster refuses: .*cannot get resource "appservices".*ask an admin to give .* that right; "kubectl auth can-i get .*\n$/,
    );
  });
});

describe('a JobWatcher', () => {
  test('shows which Jobs it would delete, and why the others stay', async () => {
    const template = { spec: { containers: [{ name: 'pi', image: 'pi:1' }], restartPolicy: 'Never' } };
    const make = (name: string, annotations: object = {}) =>
      cluster.create(jobs, {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace, annotations } as never },
        spec: { template },
      });
    await make('pi-1');
    await make('pi-2');
    await make('pi-kept', { 'batch.my.github.com/keep': 'true' });
    await make('other');
    await eventually(async () => {
      const done = (await cluster.list(jobs, namespace)).map(({ status }) => status);
      expect(done).toEqual(
        done.map(() => expect.objectContaining({ completionTime: expect.anything() as unknown }) as unknown),
      );
    });
    const watcher = (spec: object) => resource(jobWatcher, 'pi', { jobNamePatterns: ['^pi'], ...spec });

    const text = await differ.of([watcher({ completedTTL: '0s' })]);
    expect(text.code).toBe(1);
    expect(text.stdout).toContain(`JobWatcher ${namespace}/pi would delete 2 of 3 Jobs matched`);
    expect(text.stdout).toMatch(new RegExp(`${namespace}/pi-1 +completed +20`));
    expect(text.stdout).toMatch(/1 +KeepAnnotation +its own annotation keeps it/);
    const dry = await differ.diff([watcher({ completedTTL: '0s', dryRun: true })]);
    expect(dry.explanations[0]!.summary).toBe('would delete 0 of 3 Jobs matched, since it is a dry run');
    expect((await cluster.list(jobs, namespace)).length).toBe(4);

    // The asker's own namespace isn't the operator's, in which nothing would be deleted.
    const kubeconfig = await kubeconfigOf(cluster, asker, { namespace });
    const fromHere = await new Reconstruct('diff', kubeconfig, ['--watch-namespace', namespace]).of([
      watcher({ completedTTL: '0s' }),
    ]);
    expect(fromHere.stdout).toContain(`JobWatcher ${namespace}/pi would delete 2 of 3 Jobs matched`);
    expect(fromHere.stderr).toMatch(
      /^warning: Which operator is installed can't be seen .*in reconstruct-system/,
    );

    // One that is there already, and has nothing to do.
    await cluster.create(jobWatcher.type, watcher({ completedTTL: '100h' }));
    const idle = await differ.diff([watcher({ completedTTL: '100h' })]);
    expect(idle).toMatchObject({ code: 0, differs: false });
    expect(idle.explanations[0]!.summary).toContain('would delete 0 of 3 Jobs matched');
  });
});

describe('a StreamIngress', () => {
  const upstream = { service: 'db', port: 5432 };
  const stream = (name: string, listen: number) => resource(streamIngress, name, { listen, upstream });
  const opened = (listen: number) => ({
    entry: `ConfigMap .data.${listen}`,
    port: `Service .spec.ports[name="si-${listen}-tcp"]`,
  });

  test('shows the entries and ports that it adds to what is shared, and none once they are there', async () => {
    await cluster.create(streamIngress.type, stream('first', 9000));
    await eventually(async () => {
      expect(await differ.of([stream('first', 9000)])).toEqual({
        code: 0,
        stdout: '',
        stderr: 'no changes\n',
      });
    });
    const found = await differ.diff([stream('second', 9001)]);
    expect(found.code).toBe(1);
    expect(changedPaths(found)).toEqual([opened(9001).entry, opened(9001).port]);

    await cluster.create(streamIngress.type, stream('second', 9001));
    await eventually(async () => {
      expect((await differ.diff([stream('second', 9001)])).code).toBe(0);
    });
    const tcp = { type: configMaps, namespace, name: 'tcp-services' };
    expect(await cluster.get(tcp)).toMatchObject({
      data: { 9000: `${namespace}/db:5432`, 9001: `${namespace}/db:5432` },
    });
  });

  test('that asks for a port which another one has says so, and adds nothing', async () => {
    const found = await differ.diff([stream('late', 9000)]);
    expect(actions(found).filter((line) => !line.startsWith('unchanged'))).toEqual([
      'created StreamIngress late',
    ]);
    expect(found.explanations[0]!.summary).toMatch(/^would not be Ready: PortConflict: 9000\/TCP is held by/);
  });
});

const STEPS = 6;

/** Steps by which each child is created and deleted, and lists lose an item. */
const EVENTFUL: readonly Spec[] = [
  { ...web, size: 2 },
  {
    ...{ ...web, size: 2, disruption: { maxUnavailable: 1 } },
    ...{ autoscaling: { maxReplicas: 3, cpu: 50 }, resources: { requests: { cpu: '100m' } } },
    envs: ['A', 'B'].map((name) => ({ name, value: '1' })),
    ports: [
      { name: 'http', port: 80 },
      { name: 'api', port: 81 },
    ],
    route: { hostnames: ['eventful.example.com'], parentRefs: [{ name: 'public' }] },
  },
  { ...web, size: 2, envs: [{ name: 'A', value: '2' }], ports: [{ name: 'http', port: 80 }] },
  { ...web, size: 2 },
];

/** Which node port a Service has is left to the cluster. */
function withoutNodePorts(spec: Spec): Spec {
  const ports = spec.ports as readonly { readonly nodePort?: number }[] | undefined;
  return ports ? { ...spec, ports: ports.map(({ nodePort, ...port }) => port) } : spec;
}

/** As `whatWouldChange` tells it: an item of a list goes, and its list stays. */
function isLostItem(line: string): boolean {
  if (!line.startsWith('changed')) return false;
  const change = JSON.parse(line.slice(line.indexOf('{'))) as FieldChange;
  return change.path.endsWith(']') && !('after' in change);
}

test('of random edits, a diff lists exactly what the controller then changes, and nothing afterwards', async () => {
  let steps = 0;
  const seen = new Set<string>();
  const walk = async (name: string, specs: readonly Spec[]): Promise<void> => {
    for (const spec of specs.map(withoutNodePorts)) {
      const before = await childrenNow(apps, name);
      const found = await differ.diff([app(name, spec)]);
      const predicted = whatWouldChange(found);
      for (const line of predicted) seen.add(line);

      if (await cluster.find(apps.place(name))) await apps.edit(name, spec);
      else await apps.create(name, spec);
      await eventually(async () => {
        const after = await childrenNow(apps, name);
        expect((await whatChanged(apps, name, before, after)).sort(), JSON.stringify(spec)).toEqual(
          [...predicted].sort(),
        );
        const { metadata, status } = await apps.get(name);
        expect(status?.observedGeneration).toBe(metadata.generation);
      });
      expect(objectsToCreate(found)).toEqual(await objectsCreated(apps, name, before));
      const again = await differ.diff([app(name, spec)]);
      expect(whatWouldChange(again), JSON.stringify(spec)).toEqual([]);
      expect(again.code).toBe(0);
      steps++;
    }
  };
  const allowed = (await planWalks(3, 320)).map((specs) => specs.filter((spec) => !hasRefusedFields(spec)));
  const windows = [...allowed.map((specs) => specs.slice(0, STEPS)), EVENTFUL];
  await Promise.all(windows.map((specs, index) => walk(`walker-${index}`, specs)));
  expect(steps).toBe(3 * STEPS + EVENTFUL.length);
  const gone = ['Service', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'HTTPRoute'];
  expect([...seen]).toEqual(
    expect.arrayContaining([
      ...['Deployment', 'Service', 'HorizontalPodAutoscaler'].map((kind) => `created ${kind}`),
      ...gone.map((kind) => `deleted ${kind}`),
    ]),
  );
  expect([...seen].filter(isLostItem)).not.toEqual([]);
});
