import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually, kubeconfigOf, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { LogLine, RunningController } from '../support/operator.js';
import { requestsFromNowOn, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

/** Two processes with Roles alone, each as a user of its own, so that the audit log distinguishes them. */
const firstUser = 'operator-12';
const secondUser = 'operator-13';
const spec = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };

const cluster = openCluster();
let apps: Subject;
let electionNamespace: string;
let first: RunningController;
let second: RunningController;

const start = (user: string): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], electionNamespace },
  });

/** As a Pod with a kubeconfig, whose context names the namespace: no option mentions an election. */
async function startInPod(user: string): Promise<RunningController> {
  const kubeconfig = await kubeconfigOf(cluster, user, { namespace: electionNamespace });
  const election = ['--leader-elect', '--leader-election-namespace', electionNamespace];
  return startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], electionNamespace, kubeconfig },
    program: (args) => ({
      file: process.execPath,
      args: [join(repoFolder(), 'lib/cli/main.js'), ...args.filter((arg) => !election.includes(arg))],
      env: { ...process.env, KUBERNETES_SERVICE_HOST: '10.0.0.1' },
    }),
  });
}

const leads = ({ msg }: LogLine): boolean => msg === 'became leader';
const waits = ({ msg }: LogLine): boolean => msg.startsWith('waiting for ');

function report(what: string, since: number, line: LogLine): void {
  const seconds = ((Date.parse(line.time) - since) / 1000).toFixed(1);
  process.stdout.write(`Leader election: ${what}: takeover after ${seconds} s\n`);
}

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'election');
  electionNamespace = await cluster.makeNamespace('election-lease');
  first = await start(firstUser);
  await first.logged(leads);
  second = await startInPod(secondUser);
  await second.logged(waits);
});

test('the second, a Pod with a kubeconfig, waits, ready to work, and works once the first is killed', async () => {
  const idle = await requestsFromNowOn(cluster, secondUser);
  await apps.create('web', spec);
  await apps.create('other', spec);
  await apps.ready('web');
  await apps.ready('other');
  expect(writes(await idle()).map(summary)).toEqual([]);

  const killedAt = Date.now();
  await first.kill();
  await apps.edit('web', { ...spec, image: 'example.com/web:2' });
  await apps.create('late', spec);

  report('SIGKILL', killedAt, await second.logged(leads));
  for (const name of ['web', 'other', 'late']) await apps.asRendered(name);
  expect(second.log.filter(({ level }) => level === 'error')).toEqual([]);
});

test('a leader that is stopped in the middle of its work, and wakes when another one leads, writes nothing more', async () => {
  first = await start(firstUser);
  await first.logged(waits);
  const names = Array.from({ length: 40 }, (_, index) => `burst-${index}`);
  const created = Promise.all(names.map((name) => apps.create(name, spec)));
  await apps.hasSome(services, 'burst-', 3);
  const stoppedAt = Date.now();
  second.signal('SIGSTOP');
  await created;

  report('SIGSTOP', stoppedAt, await first.logged(leads));
  // What was under way when it was stopped has arrived by now.
  const woken = await requestsFromNowOn(cluster, secondUser);
  await apps.edit('web', { ...spec, image: 'example.com/web:3' });
  await apps.edit('burst-39', { ...spec, image: 'example.com/web:3' });
  for (const name of ['web', 'other', 'late', ...names]) await apps.asRendered(name);
  await eventually(() => {
    if (Date.now() - stoppedAt < 30_000) throw new Error('It is to be stopped for longer');
  });
  const from = second.log.length;
  second.signal('SIGCONT');

  await second.logged(({ msg }) => msg === 'lost the lease', from);
  await second.logged(waits, from);
  // It goes on following what happens, and leaves it to the other.
  await apps.edit('web', { ...spec, image: 'example.com/web:4' });
  for (const name of ['web', 'other', 'late', ...names]) await apps.asRendered(name);
  expect(writes(await woken()).map(summary)).toEqual([]);
  expect((await woken()).length).toBeGreaterThan(0);
});

test('a leader that is stopped by SIGTERM hands over, and the one that was woken works again', async () => {
  const from = second.log.length;
  const endedAt = Date.now();
  expect(await first.stop()).toBe(0);
  expect(first.log.map(({ msg }) => msg).slice(-2)).toEqual(['released the lease', 'stopped']);
  await apps.edit('web', spec);
  await apps.delete('late');

  report('SIGTERM', endedAt, await second.logged(leads, from));
  await apps.asRendered('web');
  expect(await second.stop()).toBe(0);
});
