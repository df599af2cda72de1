import { beforeAll, describe, expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { installManifests } from '../../src/install/manifests.js';
import { rulesFor } from '../../src/install/rules.js';
import {
  accountKubeconfig,
  deployments,
  eventually,
  grant,
  installCrd,
  pods,
  services,
} from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-64';
/** A controller beside it. */
const operator = 'operator-86';
const cluster = openCluster();
const web = { size: 1, image: 'example.com/web:1' };
let apps: Subject;
let own: Reconstruct;

beforeAll(async () => {
  await installCrd(cluster, appService, jobWatcher);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('apply'));
  const namespaces = [apps.namespace];
  const written = ['appservices', 'jobwatchers'].map((resource, index) => ({
    apiGroups: [[appService, jobWatcher][index]!.crd.spec.group],
    ...{ resources: [resource], verbs: ['get', 'list', 'watch', 'create', 'update'] },
  }));
  const told = { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['list', 'watch'] };
  const rules = [...rulesFor([appService], { namespaces }), ...written, told];
  await grant(cluster, { user, namespaces, rules });
  own = new Reconstruct('apply', await accountKubeconfig(cluster, user), ['-n', apps.namespace]);
});

const app = (name: string, spec: object, metadata: object = {}) => ({
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name, ...metadata }, spec },
});

const lines = (...rest: string[]) => rest.map((line) => `${line}\n`).join('');
const called = (kind: string, name: string) => `${kind} ${apps.namespace}/${name}`;

test('a file that was exported before an edit of others does not undo it', async () => {
  await apps.create('exported', web);
  const { metadata } = await apps.get('exported');
  await apps.edit('exported', { ...web, image: 'example.com/web:2' });

  for (const state of [{ resourceVersion: metadata.resourceVersion }, { uid: 'another' }]) {
    const { code, stderr } = await own.of([app('exported', { ...web, size: 2 }, state)]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`metadata.${Object.keys(state)[0]}`)]);
  }

  expect((await apps.get('exported')).spec).toMatchObject({ size: 1, image: 'example.com/web:2' });
});

describe('without a controller', () => {
  test('an AppService and its children are applied once, waited for, changed and pruned', async () => {
    const spec = { ...web, ports: [{ port: 80 }] };
    const first = await own.of([app('web', spec)], '--wait', '--timeout', '90s');

    expect(first.stderr).toContain("warning: Whether an operator is installed can't be seen");
    expect(first).toMatchObject({ code: 0 });
    const made = ['AppService', 'Deployment', 'Service'].map((kind) => `${called(kind, 'web')} created`);
    expect(first.stdout.startsWith(lines(...made)), first.stdout).toBe(true);
    expect(first.stdout).toMatch(/AppService web is ready\n$/);
    expect((await apps.get('web')).status?.observedGeneration).toBe(-1);

    const requests = await requestsFromNowOn(cluster, user);
    const again = await own.of([app('web', spec)]);
    expect(again.stdout).toBe(
      lines(
        `${called('AppService', 'web')} unchanged`,
        `${called('Deployment', 'web')} unchanged`,
        `${called('Service', 'web')} unchanged`,
      ),
    );
    expect(writes(await requests()).filter(({ uri }) => !uri.includes('dryRun=All'))).toEqual([]);

    const kept = await own.of([app('web', { ...web, image: 'example.com/web:2' })]);
    expect(kept.stdout).toBe(
      lines(
        `${called('AppService', 'web')} configured`,
        `${called('Deployment', 'web')} configured`,
        `${called('Service', 'web')} left as it is: it isn't rendered any more, and --prune deletes it`,
      ),
    );
    const pruned = await own.of([app('web', { ...web, image: 'example.com/web:2' })], '--prune');
    expect(pruned.stdout).toContain(`${called('Service', 'web')} pruned\n`);
    expect(await cluster.find(apps.childPlace(services, 'web'))).toBeUndefined();
  });

  test('what belongs to another writer is refused before anything is written', async () => {
    const { apiVersion, kind } = { apiVersion: 'v1', kind: 'Service' };
    const metadata = { name: 'taken', namespace: apps.namespace };
    await cluster.create(services, { apiVersion, kind, metadata, spec: { ports: [{ port: 81 }] } });

    const found = await own.of([app('free', web), app('taken', { ...web, ports: [{ port: 80 }] })]);

    expect(found).toMatchObject({ code: 3, stdout: '' });
    expect(found.stderr).toMatch(
      /Service \S+\/taken would be refused: OwnershipConflict: .*\nNothing was written\n$/,
    );
    for (const name of ['free', 'taken']) expect(await cluster.find(apps.place(name))).toBeUndefined();
  });

  test('what is wrong is bad input, and so is a kind that needs an operator', async () => {
    const wrong = await own.of([app('free', web), app('wrong', { ...web, sise: 2 })]);
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toContain('document 2, line');
    expect(await cluster.find(apps.place('free'))).toBeUndefined();

    const { apiVersion, kind } = jobWatcher.type;
    const watcher = await own.of([
      { apiVersion, kind, metadata: { name: 'pi' }, spec: { completedTTL: '1h' } },
    ]);
    expect(watcher).toMatchObject({ code: 2, stdout: '' });
    expect(watcher.stderr).toMatch(
      /line \d+: JobWatcher pi needs an operator, which "reconstruct install --apply" and the options in use install:/,
    );
  });

  test('one that never gets ready ends with the reason of its pod', async () => {
    const stuck = app('stuck', { ...web, image: 'sandbox.invalid/no-image' });
    await own.of([stuck]);
    await eventually(async () => {
      const [pod] = await cluster.list(pods, apps.namespace, 'kosmos.io/appservice=stuck');
      expect(pod).toMatchObject({
        status: { containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }] },
      });
      expect(await cluster.get(apps.childPlace(deployments, 'stuck'))).toMatchObject({
        status: { unavailableReplicas: 1 },
      });
    });

    const { code, stderr, stdout } = await own.of([stuck], '--wait', '--timeout', '15s');
    expect(code).toBe(3);
    expect(stdout).toMatch(/Pod \S+\/stuck-\S+: 0\/1 ImagePullBackOff: image .* can't be pulled/);
    expect(stderr).toMatch(
      new RegExp(`^(warning: .*\n)*${called('AppService', 'stuck')} isn't ready after 15 s\n`),
    );
    expect(stderr).toMatch(/ {2}Deployment \S+: Progressing: 0 of 1 pods are available\n/);
    expect(stderr).toMatch(/ {2}Pod \S+\/stuck-\S+: 0\/1 ImagePullBackOff: image/);
  });

  test('a paused rollout ends the wait at once, with the command that resumes it', async () => {
    await own.of([app('held', web)], '--wait', '--timeout', '90s');
    const { namespace } = apps;
    const paused = { metadata: { namespace, name: 'held' }, spec: { paused: true } };
    await cluster.apply(
      deployments,
      { apiVersion: 'apps/v1', kind: 'Deployment', ...paused },
      'kubectl-rollout',
    );

    const changed = app('held', { ...web, image: 'example.com/web:2' });
    const { code, stderr } = await own.of([changed], '--wait', '--timeout', '90s');

    expect(code).toBe(3);
    expect(stderr).toContain(`${called('AppService', 'held')} isn't ready\n`);
    expect(stderr).toContain(`kubectl rollout resume deployment/held --namespace ${namespace}`);
  });
});

describe('with a controller', () => {
  test('that is started later, all is found settled, and the status alone is written', async () => {
    await own.of([app('later', { ...web, ports: [{ port: 80 }] })]);
    const requests = await requestsFromNowOn(cluster, operator);
    await using controller = await startController({
      ...{ cluster, user: operator, kinds: [appService], namespaces: [apps.namespace] },
    });
    await apps.ready('later');
    await settled(cluster, operator);

    const sent = writes(await requests()).filter(({ objectRef }) => objectRef?.name === 'later');
    expect(new Set(sent.map(summary))).toEqual(
      new Set([`patch appservices/status ${apps.namespace}/later 200`]),
    );
    expect(controller.strayOutput).toEqual([]);
  });

  test('of an installation, the custom resource alone is written, and its Ready waited for', async () => {
    const { namespace } = apps;
    const props = { image: 'reconstruct:1', kinds: [appService], replicas: 0, watchNamespaces: [namespace] };
    const installed = installManifests({ namespace, ...props }).find(({ kind }) => kind === 'Deployment')!;
    await cluster.create(deployments, installed);
    await using controller = await startController({
      ...{ cluster, user: operator, kinds: [appService], namespaces: [namespace] },
    });
    const args = ['--operator-namespace', namespace, '--wait', '--timeout', '90s'];
    const led = await own.of([app('led', web)], ...args);

    expect(led).toMatchObject({ code: 0, stderr: '' });
    const [created, left] = led.stdout.split('\n');
    expect(created).toBe(`${called('AppService', 'led')} created`);
    expect(left).toBe(`${called('AppService', 'led')} is left to the operator in ${namespace}`);
    expect(led.stdout).toMatch(/AppService led is ready\n$/);
    expect((await apps.get('led')).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'True' }),
    );
    expect(controller.strayOutput).toEqual([]);
  });
});
