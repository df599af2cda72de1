import type { V1Deployment } from '@kubernetes/client-node';
import { beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { INSTALL_NAME, INSTALLATION_LABEL } from '../../src/install/names.js';
import { rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { deployments, eventually, services } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-54';
const cluster = openCluster();
const spec = { size: 0, image: 'example.com/web:1', ports: [{ name: 'http', port: 80 }] };
const statusOnly = (name: string): string => `patch appservices/status ${apps.namespace}/${name} 200`;
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'control');
  controller = await start();
});

/** Those that change something, and no dry runs. */
const written = (entries: readonly AuditEntry[]): string[] =>
  writes(entries)
    .filter(({ uri }) => !uri.includes('dryRun=All'))
    .map(summary);

const kubectlIn = ({ namespace }: Subject, ...args: readonly string[]) =>
  cluster.sandbox.kubectl(['-n', namespace, ...args]).then(({ stdout }) => stdout);
const kubectl = (...args: readonly string[]) => kubectlIn(apps, ...args);

const start = (...args: readonly string[]): Promise<RunningController> =>
  startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace], args });

const annotate = (name: string, annotation: string, value: string | null): Promise<unknown> =>
  cluster.merge(apps.place(name), {
    metadata: { annotations: { [`reconstruct.kosmos.io/${annotation}`]: value } },
  });

const diff = (name: string, ...args: readonly string[]) =>
  new Reconstruct('diff', cluster.sandbox.adminKubeconfig, ['-n', apps.namespace]).run(
    `appsvc/${name}`,
    ...args,
  );

const deploymentOf = (name: string) =>
  cluster.get<Wire<V1Deployment>>(apps.childPlace(deployments, name)).then(({ spec }) => spec!);

/** Waits for a condition, of whatever generation. */
const hasCondition = (name: string, wanted: object, holds = true): Promise<void> =>
  eventually(async () => {
    const all = expect((await apps.get(name)).status?.conditions);
    (holds ? all : all.not).toContainEqual(expect.objectContaining(wanted));
  });

test('while a custom resource is paused, nothing but its status is written; afterwards edits and drift are', async () => {
  await apps.create('paused', spec);
  await apps.ready('paused');
  await annotate('paused', 'paused', 'true');
  await hasCondition('paused', { type: 'Paused', status: 'True' });
  expect(await kubectl('get', 'appsvc/paused', '--no-headers')).toMatch(/^paused +True +Paused /);
  const { generation } = (await apps.get('paused')).metadata;
  const requests = await requestsFromNowOn(cluster, user, apps.namespace);

  await apps.edit('paused', { ...spec, image: 'example.com/web:2' });
  await kubectl('scale', 'deployment/paused', '--replicas=2');
  await kubectl('delete', 'service/paused');
  await hasCondition('paused', { type: 'Ready', status: 'Unknown', reason: 'Paused' });
  await settled(cluster, user, { namespace: apps.namespace });
  expect(new Set(written(await requests()))).toEqual(new Set([statusOnly('paused')]));
  expect((await apps.get('paused')).status?.observedGeneration).toBe(generation);
  const { code, stdout } = await diff('paused');
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Service \S+\/paused would be created$/m);
  expect(stdout).toMatch(/^Deployment \S+\/paused would be changed$/m);
  expect(stdout).toMatch(
    /^AppService \S+\/paused is paused: its objects stay as they are; remove the annotation \S+ to go on$/m,
  );

  await annotate('paused', 'paused', null);
  await apps.asRendered('paused');
  expect(await deploymentOf('paused')).toMatchObject({
    replicas: 0,
    template: { spec: { containers: [{ image: 'example.com/web:2' }] } },
  });
  await apps.ready('paused');
  await hasCondition('paused', { type: 'Paused' }, false);
});

test('an annotation that says neither true nor false stalls, and changes nothing', async () => {
  await apps.create('unclear', spec);
  await apps.ready('unclear');
  await annotate('unclear', 'paused', 'yes');
  const { message } = await apps.stalled('unclear', 'InvalidAnnotation');
  expect(message).toContain('metadata.annotations["reconstruct.kosmos.io/paused"]: "yes"');
  await cluster.get(apps.childPlace(services, 'unclear'));
  await annotate('unclear', 'paused', 'false');
  await apps.ready('unclear');
});

test('drift that is to be warned of is reported and left, also over a restart; edits and deletions are carried out', async () => {
  await apps.create('warned', spec);
  await apps.ready('warned');
  await annotate('warned', 'drift', 'warn');
  await settled(cluster, user, { namespace: apps.namespace });
  const requests = await requestsFromNowOn(cluster, user, apps.namespace);
  const from = controller.log.length;
  await kubectl('scale', 'deployment/warned', '--replicas=2');
  const message = `Deployment ${apps.namespace}/warned: left .spec.replicas, changed by kubectl`;
  const drifted = { type: 'Drifted', status: 'True', reason: 'DriftLeft', message };
  await hasCondition('warned', drifted);
  await controller.logged((line) => line.action === 'drifted' && line.name === 'warned', from);
  await settled(cluster, user, { namespace: apps.namespace });
  await controller.stop();
  controller = await start();
  await controller.reconciled('warned');
  await settled(cluster, user, { namespace: apps.namespace });
  expect(new Set(written(await requests()).filter((line) => !line.includes('events')))).toEqual(
    new Set([statusOnly('warned')]),
  );
  expect((await apps.events('warned')).map(({ reason }) => reason)).toEqual(['DriftLeft']);
  expect(await deploymentOf('warned')).toMatchObject({ replicas: 2 });
  await hasCondition('warned', drifted);

  await kubectl('delete', 'service/warned');
  await eventually(() => cluster.get(apps.childPlace(services, 'warned')));
  expect(await deploymentOf('warned')).toMatchObject({ replicas: 2 });
  await apps.edit('warned', { ...spec, image: 'example.com/web:2' });
  await apps.asRendered('warned');
  await hasCondition('warned', { type: 'Drifted' }, false);
});

test('run --drift holds for all whose annotation says nothing else', async () => {
  await controller.stop();
  controller = await start('--drift', 'ignore');
  for (const name of ['ignored', 'corrected']) {
    await apps.create(name, spec);
    await apps.ready(name);
  }
  await annotate('corrected', 'drift', 'correct');
  for (const name of ['ignored', 'corrected']) await kubectl('scale', `deployment/${name}`, '--replicas=2');
  await apps.asRendered('corrected');
  await apps.touch('ignored');
  await settled(cluster, user, { namespace: apps.namespace });
  expect(await deploymentOf('ignored')).toMatchObject({ replicas: 2 });
  await hasCondition('ignored', { type: 'Drifted' }, false);

  const without = await diff('ignored');
  expect([without.code, without.stdout]).toEqual([1, expect.stringContaining('would be changed')]);
  const labels = {
    'app.kubernetes.io/part-of': 'reconstruct',
    [INSTALLATION_LABEL]: apps.namespace,
  };
  const args = ['run', '--kinds=appservice.kosmos.io', `--watch-namespace=${apps.namespace}`];
  const container = { name: 'manager', image: 'example.com/operator:1', args };
  const env = [{ name: 'RECONSTRUCT_DRIFT', value: 'ignore' }];
  await using left = new AsyncDisposableStack();
  left.defer(async () => {
    await kubectl('delete', 'deployment', INSTALL_NAME);
  });
  await cluster.create(deployments, {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: INSTALL_NAME, namespace: apps.namespace, labels },
    spec: {
      ...{ replicas: 0, selector: { matchLabels: { app: 'operator' } } },
      template: {
        metadata: { labels: { app: 'operator' } },
        spec: { containers: [{ ...container, env }] },
      },
    },
  });
  expect(await diff('ignored', '--operator-namespace', apps.namespace)).toMatchObject({
    code: 0,
    stdout: '',
  });
});

test('operators with selectors share a namespace, and a custom resource whose label changes goes over untouched', async () => {
  const other = 'operator-55';
  const common = { cluster, kinds: [appService], namespaces: [apps.namespace] };
  await controller.stop();
  controller = await start('--selector', 'team in (a, b)');
  const rest = await startController({ ...common, user: other, args: ['--selector', '!team'] });
  await apps.create('moving', spec);
  await apps.ready('moving');
  await settled(cluster, other, { namespace: apps.namespace });
  const [requests, others] = await Promise.all(
    [user, other].map((each) => requestsFromNowOn(cluster, each, apps.namespace)),
  );
  const before = await cluster.get(apps.childPlace(deployments, 'moving'));

  const from = controller.log.length;
  await cluster.merge(apps.place('moving'), { metadata: { labels: { team: 'a' } } });
  await controller.reconciled('moving', from);
  await settled(cluster, user, { namespace: apps.namespace });
  expect(await cluster.get(apps.childPlace(deployments, 'moving'))).toEqual(before);
  expect(written(await requests!())).toEqual([]);
  await apps.edit('moving', { ...spec, image: 'example.com/web:2' });
  await apps.asRendered('moving');
  await kubectl('delete', 'service/moving');
  await apps.asRendered('moving');
  expect(written(await others!())).toEqual([]);
  await rest.stop();
});

test('run --observe-only reports what it would do, once, and sends nothing but reads and dry runs', async () => {
  const other = 'operator-56';
  const common = { cluster, kinds: [appService], namespaces: [apps.namespace] };
  await controller.stop();
  await apps.create('observed', spec);
  const requests = await requestsFromNowOn(cluster, other);
  // An operator that is installed would take a lease otherwise.
  const observing = { electionNamespace: other, args: ['--observe-only'] };
  const observer = await startController({ ...common, user: other, ...observing });
  const would = (action: string, child: string): Promise<unknown> =>
    observer.logged((line) => line.action === action && line.child === child && line.name === 'observed');
  await would('created', 'Deployment');
  await would('created', 'Service');

  controller = await start();
  await apps.ready('observed');
  await controller.stop();
  await kubectl('scale', 'deployment/observed', '--replicas=2');
  await would('changed', 'Deployment');
  await apps.edit('observed', { ...spec, image: 'example.com/web:2' });
  await observer.reconciled('observed', observer.log.length);
  const created = observer.log.filter(({ action, name }) => action === 'created' && name === 'observed');
  expect(created.map(({ child }) => child).sort()).toEqual(['Deployment', 'Service']);
  expect(await observer.stop()).toBe(0);
  expect(written(await requests())).toEqual([]);
  expect((await requests()).some(({ uri }) => uri.includes('dryRun=All'))).toBe(true);
});

test('a namespace that gains the label of --watch-namespace-selector is looked after, and one that loses it is left as it is', async () => {
  const other = 'operator-87';
  const selector = 'control-test=on';
  await controller.stop();
  const selected = await Subject.make(cluster, appService, 'selected');
  const label = (value: string): Promise<unknown> =>
    cluster.sandbox.kubectl(['label', '--overwrite', `namespace/${selected.namespace}`, value]);
  const rights = () => rulesFor([appService], { namespaceSelector: selector });
  const args = ['--watch-namespace-selector', selector];
  controller = await startController({ ...{ cluster, user: other, kinds: [appService], rights, args } });
  await apps.create('elsewhere', spec);
  await selected.create('web', spec);
  await settled(cluster, other);
  expect((await selected.get('web')).status?.conditions).toBeUndefined();

  await label(selector);
  await selected.ready('web');
  await settled(cluster, other, { namespace: selected.namespace });

  const requests = await requestsFromNowOn(cluster, other);
  const from = controller.log.length;
  await label('control-test=off');
  await controller.reconciled('web', from);
  await kubectlIn(selected, 'scale', 'deployment/web', '--replicas=2');
  await kubectlIn(selected, 'delete', 'service/web');
  await selected.edit('web', { ...spec, image: 'example.com/web:2' });
  await settled(cluster, other);
  expect(written(await requests())).toEqual([]);

  await label(selector);
  await selected.asRendered('web');
  await selected.ready('web');
  expect(await cluster.find(apps.childPlace(deployments, 'elsewhere'))).toBeUndefined();
});
