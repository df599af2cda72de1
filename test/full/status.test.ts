import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWatchdog } from '../../sandbox/watchdog.js';
import type { StatusDocument } from '../../src/cli/tree/model.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { accountKubeconfig, eventually, grant, installCrd } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { Jobs } from '../support/jobs.js';
import { bundle, startController } from '../support/operator.js';
import { requestsFromNowOn, summary } from '../support/requests.js';
import { IngressNginx, makeUpstream } from '../support/streams.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const operator = 'operator-65';
const viewer = 'operator-66';
const cluster = openCluster();
const kinds = [appService, jobWatcher, streamIngress];
const web = { size: 1, image: 'example.com/web:1' };
let apps: Subject;
let folder: string;
let namespace: string;
let status: Reconstruct;
let kubeconfig: string;

beforeAll(async () => {
  await installCrd(cluster, ...kinds);
  namespace = await cluster.makeNamespace('status');
  folder = await mkdtemp(join(tmpdir(), 'status-'));
  apps = new Subject(cluster, appService, namespace);
  await new IngressNginx(cluster, operator, undefined, namespace, 'proxy').makeService();
  await makeUpstream(cluster, namespace);
  const policy = join(folder, 'policy.yaml');
  const targets = [{ name: 'own', ingressNamespace: namespace, ingressService: 'proxy' }];
  const streamingress = { defaultClass: 'own', targets };
  await writeFile(policy, JSON.stringify({ streamingress }));
  const namespaces = [namespace];
  const args = ['--policy', policy];
  await startController({ cluster, user: operator, kinds, namespaces, args });
  await may([
    ['kosmos.io', 'appservices'],
    ['batch.my.github.com', 'jobwatchers'],
    ['nginx-stream.jeffthecoder.xyz', 'streamingresses'],
    ['apps', 'deployments'],
    ['', 'services'],
    ['', 'pods'],
    ['autoscaling', 'horizontalpodautoscalers'],
    ['policy', 'poddisruptionbudgets'],
    ['gateway.networking.k8s.io', 'httproutes'],
    ['events.k8s.io', 'events'],
  ]);
  kubeconfig = await accountKubeconfig(cluster, viewer);
  status = new Reconstruct('status', kubeconfig, ['-n', namespace]);
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Rights in the namespace. */
async function may(resources: readonly (readonly [group: string, resource: string])[], user = viewer) {
  const rules = resources.map(([group, resource]) => ({
    ...{ apiGroups: [group], resources: [resource], verbs: ['list', 'watch'] },
  }));
  await grant(cluster, { user, namespaces: [namespace], rules });
}

async function json(...args: string[]): Promise<StatusDocument> {
  const { code, stdout, stderr } = await status.run(...args, '-o', 'json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as StatusDocument;
}

describe('one custom resource', () => {
  test('that is ready shows its children and their pods, and costs one list of each type', async () => {
    await apps.create('web', { ...web, size: 2, ports: [{ port: 80 }] });
    await apps.ready('web');
    const requests = await requestsFromNowOn(cluster, viewer);

    const { code, stdout, stderr } = await status.run('appsvc/web');

    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(
      new RegExp(`^AppService ${namespace}/web +\\d+[sm]  Ready Available, for \\d+[sm]$`),
    );
    expect(lines[1]).toMatch(/^├─ Deployment web +\d+[sm] {2}Ready, 2 of 2 pods are available$/);
    expect(lines[2]).toMatch(/^│ {2}├─ Pod web-\S+ +\d+[sm] {2}1\/1 Running$/);
    expect(lines[3]).toMatch(/^│ {2}└─ Pod web-\S+ +\d+[sm] {2}1\/1 Running$/);
    expect(lines[4]).toMatch(/^└─ Service web +\d+[sm] {2}Ready$/);
    expect(stdout).toContain("Whether an operator is there can't be seen");
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const sent = (await requests()).map(summary);
    // Beside the version: the AppService, five types of children, pods, events, and in vain the operator.
    expect(sent.filter((line) => !line.startsWith('list '))).toEqual(['get  / 200']);
    expect(sent).toHaveLength(10);
  });

  test('that is stuck shows why, down to the pod, and its events', async () => {
    await apps.create('stuck', { ...web, image: 'sandbox.invalid/no-image' });
    await apps.condition('stuck', { type: 'Ready', status: 'False', reason: 'ImagePullBackOff' });
    await eventually(async () => {
      const { resources } = await json('AppService/stuck');
      expect(resources[0]).toMatchObject({
        verdict: { word: 'Reconciling', reason: 'ImagePullBackOff', current: true },
        children: [{ kind: 'Deployment', pods: [{ ready: false, state: 'ImagePullBackOff' }] }],
      });
      expect(resources[0]!.events.map(({ reason }) => reason)).toContain('Scheduled');
    });
    const { code, stdout } = await status.run('appservices/stuck');
    expect(code).toBe(0);
    expect(stdout).toMatch(/Pod stuck-\S+ +\d+[sm] {2}0\/1 ImagePullBackOff/);
    expect(stdout).toMatch(/^ +\d+[sm] {2}Scheduled: Pod stuck-\S+$/m);
  });
});

describe('all of every kind', () => {
  test('shows those without children by what their status says', async () => {
    const upstream = { service: 'db', port: 5432 };
    const at = (name: string) => ({ name, namespace });
    await cluster.create(streamIngress.type, {
      ...{ apiVersion: streamIngress.type.apiVersion, kind: 'StreamIngress', metadata: at('db') },
      spec: { listen: 9000, upstream },
    });
    await cluster.create(jobWatcher.type, {
      ...{ apiVersion: jobWatcher.type.apiVersion, kind: 'JobWatcher', metadata: at('old') },
      spec: { completedTTL: '1h', frequency: '1s' },
    });
    await new Jobs(cluster, namespace).finished('pi', { ago: 0 });

    await eventually(async () => {
      const { code, stdout } = await status.run();
      expect(code).toBe(0);
      expect(stdout).toMatch(/^StreamIngress \S+\/db /m);
      expect(stdout).toMatch(/^ +Accepted: True$/m);
      expect(stdout).toMatch(/^ +Programmed: (True|False)/m);
      expect(stdout).toMatch(/^ +Class: own$/m);
      expect(stdout).toMatch(/^JobWatcher \S+\/old +\d+[sm] {2}Ready Watching/m);
      expect(stdout).toMatch(/^ +Deleted: 0$/m);
      expect(stdout).toMatch(/^ +Next: 20/m);
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    });
  });
});

test('--watch appends what changes until it is interrupted', async () => {
  await apps.create('watched', web);
  await apps.ready('watched');
  const args = ['status', 'appservice/watched', '--watch', '-n', namespace];
  const guard = await startWatchdog();
  const child = spawn(process.execPath, [bundle, ...args, '--kubeconfig', kubeconfig], {
    ...{ detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  guard.watch(child.pid!);
  let shown = '';
  child.stdout.on('data', (chunk) => (shown += String(chunk)));
  await eventually(() => {
    expect(shown).toContain('1 of 1 pods are available');
  });
  const until = shown.length;

  await apps.edit('watched', { ...web, image: 'sandbox.invalid/no-image' });

  await eventually(() => {
    const news = shown.slice(until);
    expect(news).toMatch(/^20\S+Z Pod \S+\/watched-\S+: 0\/1 ImagePullBackOff: image/m);
    expect(news).toMatch(/^20\S+Z AppService \S+\/watched: Reconciling ImagePullBackOff: /m);
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  child.kill('SIGINT');
  expect((await ended)[0]).toBe(0);
  guard.forget(child.pid!);
});
