import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { repoFolder } from '../../sandbox/paths.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { configMaps, deployments, eventually, kubeconfigOf, services } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { command, commandPath, run } from '../support/commands.js';
import type { Ran } from '../support/commands.js';
import { bundle, startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { local } from '../support/pages.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** With a control plane of its own: CRDs come and go. */
const editor = 'operator-51';
const nobody = 'operator-52';
const home = 'reconstruct-system';
const sample = join(repoFolder(), 'examples/appservice-sample.yaml');

const rbac = (kind: string) =>
  resourceType({
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind },
    namespaced: !kind.startsWith('Cluster'),
  });
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });
const leases = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });
const definitions = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});
const reviews = resourceType({
  ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' },
  namespaced: false,
});

const own = ownControlPlane({ users: [editor, nobody] });
let folder: string;
let shop: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'install-'));
  shop = await own.cluster.makeNamespace('shop');
  await own.cluster.create(rbac('RoleBinding'), {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
    metadata: { name: editor, namespace: shop },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: editor }],
  });
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  await done('uninstall', '--yes', '--purge');
});

const asAdmin = (...args: string[]): Promise<Ran> =>
  command(...args, '--kubeconfig', own.sandbox.adminKubeconfig);

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await asAdmin(...args);
  expect(code, stderr + stdout).toBe(0);
  return stdout;
}

/** Starts the controller as its Pod would: with the arguments of the Deployment, and as its ServiceAccount. */
async function startOperator(kinds: readonly Kind[] = [appService]): Promise<RunningController> {
  const { spec } = await own.cluster.get<{
    spec: { template: { spec: { serviceAccountName: string; containers: [{ args: string[] }] } } };
  }>({ type: deployments, namespace: home, name: 'reconstruct' });
  const { serviceAccountName, containers } = spec.template.spec;
  // Here are no addresses of its own.
  const args = containers[0].args.slice(1).filter((arg) => !arg.includes('-bind-address='));
  const account = { namespace: home, name: serviceAccountName };
  const kubeconfig = await kubeconfigOf(own.cluster, nobody, { namespace: home, account });
  return startController({ cluster: own.cluster, user: nobody, kinds, args, kubeconfig, rights: () => [] });
}

const appPlace = (name: string): Place => ({ type: appService.type, namespace: shop, name });

async function readyOf(place: Place): Promise<string> {
  const { status } = await own.cluster.get<{
    status?: { conditions?: { type: string; status: string; reason: string }[] };
  }>(place);
  const found = status?.conditions?.find(({ type }) => type === 'Ready');
  return `${found?.status ?? ''} ${found?.reason ?? ''}`.trim();
}

/** Applies the sample as a user who has the role `edit` and nothing else. */
async function applySample(): Promise<void> {
  const kubeconfig = own.sandbox.kubeconfig(editor);
  // The role's new rights take a moment.
  await eventually(() => own.sandbox.kubectl(['apply', '-n', shop, '-f', sample], { kubeconfig }));
}

/**
 * What the operator has asked for in vain. An owner of a kind that is new to admission is refused for a moment, so what
 * was allowed later doesn't count; nor do the CRDs of kinds that aren't installed, on which Roles can give no right.
 */
async function refused(): Promise<string[]> {
  const asked = await own.sandbox.audit(`system:serviceaccount:${home}:reconstruct`);
  const what = ({ verb, objectRef: { resource = '', subresource = '' } = {} }: AuditEntry): string =>
    `${verb} ${resource}/${subresource}`;
  expect(asked).not.toEqual([]);
  const allowed = new Set(asked.filter(({ code = 0 }) => code < 300).map(what));
  return asked
    .filter(({ code }) => code === 403)
    .map(what)
    .filter((each) => !allowed.has(each) && each !== 'get customresourcedefinitions/');
}

/** What an installation has left in the cluster. */
async function installed(): Promise<string[]> {
  const kinds = ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'].map(rbac);
  const types = [...kinds, accounts, services, deployments, configMaps, namespaces];
  const selector = { labelSelector: 'app.kubernetes.io/managed-by=reconstruct-install' };
  const found = await Promise.all(
    types.map(async ({ apiVersion, kind, plural }) => {
      const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
      const { body } = await own.cluster.send('GET', `${root}/${plural}`, { query: selector });
      return (body.items as AnyObject[]).map(
        ({ metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`,
      );
    }),
  );
  return found.flat();
}

test('from nothing: install, an editor applies the sample, it becomes ready; uninstall leaves what was promised', async () => {
  const { code, stdout, stderr } = await asAdmin('install', '--apply');
  expect([stderr, code]).toEqual([
    'streamingress.nginx-stream.jeffthecoder.xyz needs rights in the namespace ingress-nginx, which ' +
      "isn't there: it is left out; install again once it is there\n",
    0,
  ]);
  expect(stdout).toContain('CustomResourceDefinition appservices.kosmos.io created\n');
  expect(stdout).toContain(`Deployment ${home}/reconstruct created\n`);
  expect(stdout).not.toContain('streamingress');
  expect(stdout).toMatch(
    /The image reconstruct:\S+ has to be on the nodes: .*--image\n.*"kubectl rollout status .*"\n$/,
  );

  // The namespace takes restricted Pods alone.
  await eventually(async () => {
    const { status } = await own.cluster.get<{ status: { availableReplicas?: number } }>({
      ...{ type: deployments, namespace: home, name: 'reconstruct' },
    });
    expect(status.availableReplicas).toBe(2);
  });
  expect((await done('install', '--apply')).replaceAll(' unchanged', '')).not.toMatch(
    /created|configured|deleted|unchanged/,
  );

  await using operator = await startOperator();
  await operator.logged(({ msg }) => msg === 'controller started');
  await applySample();
  await eventually(async () => {
    expect(await readyOf(appPlace('appservice-sample'))).toMatch(/^True/);
  });
  expect(await operator.stop()).toBe(0);
  expect(await refused()).toEqual([]);

  await done('uninstall', '--yes');
  expect(await installed()).toEqual([]);
  expect(await own.cluster.find({ type: namespaces, name: home })).toBeUndefined();
  for (const { crd } of [appService, jobWatcher])
    expect(await own.cluster.find({ type: definitions, name: crd.metadata.name })).toBeDefined();
  expect(await readyOf(appPlace('appservice-sample'))).toMatch(/^True/);
  for (const type of [deployments, services])
    expect(await own.cluster.find({ type, namespace: shop, name: 'appservice-sample' })).toBeDefined();

  expect(await done('uninstall', '--yes')).toBe(`Nothing is installed in the namespace ${home}\n`);
});

test('in single namespaces Roles suffice, and what a cluster-wide installation had is taken away', async () => {
  await done('install', '--apply', '--kinds', 'appservice');
  expect((await installed()).filter((line) => line.startsWith('Cluster'))).not.toEqual([]);

  const told = await done('install', '--apply', '--kinds', 'appservice', '--watch-namespace', shop);
  expect(told).toContain(`ClusterRole reconstruct:${home} deleted\n`);
  expect((await installed()).filter((line) => line.startsWith('Cluster'))).toEqual([]);
  const operator = `system:serviceaccount:${home}:reconstruct`;
  const create = { group: 'apps', resource: 'deployments', verb: 'create' };
  await eventually(async () => {
    const where = [shop, 'default'];
    const allowed = await Promise.all(where.map((namespace) => may(operator, { ...create, namespace })));
    expect(allowed).toEqual([true, false]);
  });

  await using running = await startOperator();
  await running.logged(({ msg }) => msg === 'controller started');
  await own.cluster.create(appService.type, {
    ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { namespace: shop, name: 'web' } },
    spec: { size: 1, image: 'example.com/web:1' },
  });
  await eventually(async () => {
    expect(await readyOf(appPlace('web'))).toMatch(/^True/);
  });
  expect(await refused()).toEqual([]);
});

const INGRESS = 'ingress-nginx';
async function may(user: string, resourceAttributes: object): Promise<boolean> {
  const { status } = await own.cluster.create(reviews, {
    ...{ apiVersion: reviews.apiVersion, kind: reviews.kind, metadata: { name: '' } },
    spec: { user, resourceAttributes },
  });
  return (status as { allowed: boolean }).allowed;
}

const proxy = { type: services, namespace: INGRESS, name: 'ingress-nginx-controller' };
const tcp = { type: configMaps, namespace: INGRESS, name: 'tcp-services' };
const chart = [
  { name: 'http', port: 80, targetPort: 'http' },
  { name: 'https', port: 443, targetPort: 'https' },
];

/** An ingress-nginx as its chart makes it, with a port that is somebody's. */
async function makeProxy(): Promise<void> {
  await own.cluster.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: INGRESS } });
  const metadata = { namespace: INGRESS, name: proxy.name };
  const spec = { selector: { app: 'nginx' }, ports: chart };
  await own.cluster.apply(services, { apiVersion: 'v1', kind: 'Service', metadata, spec }, 'helm');
  await own.cluster.apply(
    configMaps,
    {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: INGRESS, name: tcp.name } },
      data: { 9101: 'a/b:1' },
    },
    'helm',
  );
}

/** A port on the proxy for what isn't there to be looked at. */
async function openPort(): Promise<void> {
  await own.cluster.create(streamIngress.type, {
    ...{ apiVersion: streamIngress.type.apiVersion, kind: 'StreamIngress' },
    metadata: { namespace: shop, name: 'db' },
    spec: { listen: 9000, is_service: false, upstream: { service: 'db', port: 5432 } },
  });
}

const entries = async (): Promise<unknown> => (await own.cluster.get<{ data?: unknown }>(tcp)).data;
const ports = async (): Promise<number[]> =>
  (await own.cluster.get<{ spec: { ports: { port: number }[] } }>(proxy)).spec.ports.map(({ port }) => port);

/** Who has written what into an object, and our annotations. */
async function traces(place: Place): Promise<string> {
  const { metadata } = await own.cluster.get<{
    metadata: { managedFields: { manager: string }[]; annotations?: Record<string, string> };
  }>(place);
  return [
    ...metadata.managedFields.map(({ manager }) => manager),
    ...Object.keys(metadata.annotations ?? {}),
  ].join();
}

test('what is in use is kept: an installation that leaves it out is refused, with the command that has it', async () => {
  const policy = join(folder, 'own-policy.yaml');
  await writeFile(policy, 'appservice: { maxSize: 1 }\n');
  const options = ['--kinds', 'appservice,jobwatcher', '--watch-namespace', shop];
  await done('install', '--apply', ...options, '--policy', policy);
  const before = await installed();
  const deployment = { type: deployments, namespace: home, name: 'reconstruct' };
  const { metadata } = await own.cluster.get(deployment);

  for (const fewer of [[], ['--kinds', 'jobwatcher'], ['--watch-namespace', shop]]) {
    const { code, stdout, stderr } = await asAdmin('install', '--apply', ...fewer);
    // Without --kinds, it is also told of the one whose target isn't there.
    const [line = '', ...none] = stderr.split('\n').filter((each) => !each.startsWith('streamingress'));
    expect([code, stdout, none]).toEqual([3, '', ['']]);
    expect(line).toContain('--policy reconstruct-policy');
    expect(line.includes('its limit to --watch-namespace')).toBe(!fewer.includes(shop));
    expect(line.includes('--kinds appservice.kosmos.io;')).toBe(fewer.includes('jobwatcher'));
    expect(await installed()).toEqual(before);
    expect((await own.cluster.get(deployment)).metadata.generation).toBe(metadata.generation);

    const env = { PATH: commandPath(own.sandbox.kubectlPath), HOME: folder };
    const proposed = /in use with "(.*)", or add --replace/.exec(line)?.[1] ?? '';
    const typed = local(proposed.replace(' reconstruct ', ' npx reconstruct '));
    const proposal = await run('sh', ['-c', typed], { cwd: folder, env });
    expect(proposal.code, proposal.stderr).toBe(0);
    expect(proposal.stdout).not.toMatch(/ (created|configured|deleted)\n/);
  }
  await done('install', '--apply', ...options, '--policy', policy, '--image', 'example.com/reconstruct:2');

  const told = await done('install', '--apply', '--kinds', 'jobwatcher', '--replace');
  expect(told).toContain(`ConfigMap ${home}/reconstruct-policy deleted\n`);
  expect(told).toContain(`ClusterRole reconstruct:${home} created\n`);
});

test('install --apply --dry-run reports what is done then, and writes nothing', async () => {
  const reportOf = (told: string): string[] =>
    told.split('\n').filter((line) => / (?:created|configured|unchanged|deleted)$/.test(line));
  const asDone = (told: string): string[] => reportOf(told.replaceAll(' would be ', ' '));
  const first = await done('install', '--apply', '--dry-run');
  expect(await installed()).toEqual([]);
  expect(asDone(first)).toEqual(reportOf(await done('install', '--apply')));
  expect(
    reportOf(await done('install', '--apply', '--dry-run=server', '--replicas', '3')).filter(
      (line) => !line.endsWith('unchanged'),
    ),
  ).toEqual([`Deployment ${home}/reconstruct would be configured`]);
  expect(await done('install', '--apply', '--replicas', '2')).not.toContain('configured');
});

test('uninstall asks on a terminal, and needs --yes without one', async () => {
  await done('install', '--apply');
  const { code, stderr } = await asAdmin('uninstall');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('add --yes, or --dry-run to see what would go'),
  ]);
  const answered = (answer: string): Promise<Ran> => {
    const words = [
      process.execPath,
      bundle,
      'uninstall',
      '--purge',
      '--kubeconfig',
      own.sandbox.adminKubeconfig,
    ];
    return run('script', ['-qec', words.join(' '), '/dev/null'], { stdin: answer });
  };
  const no = await answered('\n');
  expect(no.stdout).toContain(`Deployment ${home}/reconstruct would be deleted`);
  expect(no.stdout).toMatch(/Remove 1 Deployment, .*CustomResourceDefinition.*\? \[y\/N\] /);
  expect(no.stdout).toContain('Nothing was removed');
  expect(no.code).toBe(2);
  expect(await installed()).not.toEqual([]);
  expect((await answered('y\n')).stdout).toContain(`Deployment ${home}/reconstruct deleted`);
  expect(await installed()).toEqual([]);
});

test('uninstall --purge gives up what is ours in shared objects, leaves what is foreign, and takes the rest', async () => {
  await makeProxy();
  await done('install', '--apply');
  {
    await using operator = await startOperator([appService, jobWatcher, streamIngress]);
    await operator.logged(({ msg }) => msg === 'controller started');
    await applySample();
    await openPort();
    await eventually(async () => {
      expect(await entries()).toEqual({ 9000: `${shop}/db:5432`, 9101: 'a/b:1' });
      expect(await ports()).toEqual([80, 443, 9000]);
      expect(await readyOf({ ...appPlace('db'), type: streamIngress.type })).toMatch(/^True/);
      expect(await readyOf(appPlace('appservice-sample'))).toMatch(/^True/);
    });
    expect(await traces(tcp)).toContain('streamingress-controller');
    expect(await refused()).toEqual([]);
    await operator.stop();
  }

  const told = await done('uninstall', '--purge', '--dry-run');
  expect(told).toContain(
    `ConfigMap ${INGRESS}/tcp-services would be released from streamingress-controller\n`,
  );
  expect(told).toContain(`AppService ${shop}/appservice-sample would be deleted, with what it owns\n`);
  expect(told).toContain(`Namespace ${home} would be deleted\n`);
  expect(await ports()).toEqual([80, 443, 9000]);
  expect(await readyOf(appPlace('appservice-sample'))).toMatch(/^True/);

  const did = await done('uninstall', '--yes', '--purge');
  expect(did.replaceAll(' would be', '').split('\n').sort()).toEqual(
    told.replaceAll(' would be', '').split('\n').sort(),
  );
  expect(await entries()).toEqual({ 9101: 'a/b:1' });
  expect(await ports()).toEqual([80, 443]);
  for (const place of [tcp, proxy]) expect(await traces(place)).toBe('helm');
  expect(await installed()).toEqual([]);
  for (const { crd } of [appService, jobWatcher, streamIngress])
    await eventually(async () => {
      expect(await own.cluster.find({ type: definitions, name: crd.metadata.name })).toBeUndefined();
    });
  for (const type of [deployments, services]) expect(await own.cluster.list(type, shop)).toEqual([]);
  expect(await own.cluster.find({ type: leases, namespace: home, name: 'reconstruct' })).toBeUndefined();
  expect(await own.cluster.find({ type: namespaces, name: shop })).toBeDefined();
});

test('a purge has to know the kinds that were installed: those on request it does, those of a configuration it is given', async () => {
  await done('install', '--apply', '--kinds', 'appservice.app.example.com');
  expect(await done('uninstall', '--yes', '--purge')).toContain(
    'CustomResourceDefinition appservices.app.example.com deleted\n',
  );
  const config = ['--config', join(repoFolder(), 'examples/scheduled-task/reconstruct.config.mjs')];
  await done('install', '--apply', ...config, '--kinds', 'scheduledtask');
  const { code, stdout, stderr } = await asAdmin('uninstall', '--yes', '--purge');
  expect([code, stdout]).toEqual([3, '']);
  expect(stderr).toMatch(/^CustomResourceDefinition scheduledtasks\.tasks\.example\.com .*--config.*\n$/);
  expect(await own.cluster.find({ type: deployments, namespace: home, name: 'reconstruct' })).toBeDefined();
  expect(await done('uninstall', '--yes', '--purge', ...config)).toContain(
    'CustomResourceDefinition scheduledtasks.tasks.example.com deleted\n',
  );
});

test('a CRD that was there first is brought up to date, and a purge leaves it and its custom resources', async () => {
  const { crd } = appService;
  const place = { type: definitions, name: crd.metadata.name };
  const labels = async (): Promise<unknown> => (await own.cluster.get(place)).metadata.labels;
  await own.cluster.create(definitions, {
    ...(crd as unknown as AnyObject),
    metadata: { name: place.name, labels: { of: 'theirs' } },
  });
  for (const outcome of ['created', 'unchanged']) {
    expect(await done('install', '--apply', '--kinds', 'appservice')).toContain(
      `Deployment ${home}/reconstruct ${outcome}\n`,
    );
    expect(await labels()).toEqual({ of: 'theirs' });
  }
  await own.cluster.create(appService.type, {
    ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { namespace: shop, name: 'old' } },
    spec: { size: 1, image: 'example.com/web:1' },
  });

  const stays = `CustomResourceDefinition ${place.name} stays with its custom resources, since it was created by others`;
  expect(await done('uninstall', '--yes', '--purge')).toContain(stays);
  expect(await done('uninstall', '--purge', '--dry-run')).toContain(stays);
  expect(await installed()).toEqual([]);
  expect(await own.cluster.find(appPlace('old'))).toBeDefined();
  expect(await labels()).toEqual({ of: 'theirs' });
  await own.cluster.delete(place);
  await eventually(async () => {
    expect(await own.cluster.find(place)).toBeUndefined();
  });
});

test('what stands in the way is reported in one line, and then nothing is written', async () => {
  const line = async (args: string[], kubeconfig = own.sandbox.adminKubeconfig): Promise<string> => {
    const { code, stdout, stderr } = await command(...args, '--kubeconfig', kubeconfig);
    expect(stderr.split('\n')).toHaveLength(2);
    return `${code} ${stdout}${stderr}`;
  };
  expect(await line(['install', '--apply', '--watch-namespace', 'none'])).toBe(
    '3 There is no namespace none: create it, or leave it out of --watch-namespace\n',
  );
  expect(
    await line(['install', '--apply', '--kinds', 'streamingress', '--ingress-namespace', 'none']),
  ).toMatch(
    /^3 streamingress\S* needs rights in the namespace none, which isn't there: create it, .*--kinds\n$/,
  );
  expect(await line(['install', '--apply', '--kinds', 'appservice'], own.sandbox.kubeconfig(nobody))).toMatch(
    /^3 .*forbidden.*; ask an admin to give operator-52 that right; "kubectl auth can-i list .*\n$/,
  );

  const role = { type: rbac('ClusterRole'), name: `reconstruct:${home}` };
  await own.cluster.create(role.type, {
    ...{ apiVersion: role.type.apiVersion, kind: 'ClusterRole', metadata: { name: role.name }, rules: [] },
  });
  expect(await line(['install', '--apply', '--kinds', 'appservice'])).toMatch(
    /^3 ClusterRole reconstruct:\S+ exists and was created by another client: .* --namespace\n$/,
  );
  await own.cluster.delete(role);

  await done('install', '--apply', '--kinds', 'jobwatcher', '--namespace', 'ops');
  expect(await line(['install', '--apply', '--kinds', 'appservice,jobwatcher'])).toMatch(
    /^3 An operator in the namespace ops already looks after jobwatcher\.batch\.my\.github\.com here: .*\n$/,
  );
  expect(await own.cluster.find({ type: namespaces, name: home })).toBeUndefined();
  // Other kinds are no business of that one's, but it still needs the CRDs.
  await done('install', '--apply', '--kinds', 'appservice');
  expect(await line(['uninstall', '--yes', '--purge'])).toMatch(
    /^3 An operator in the namespace ops still needs .*\n$/,
  );
  await done('uninstall', '--yes', '--namespace', 'ops');
});
