import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary } from './support/requests.js';
import { Subject } from './support/subject.js';

/** With a control plane of its own, so that its API server can be stopped; here the controller watches all namespaces. */
const user = 'operator';
const spec = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };
let sandbox: Sandbox;
let cluster: Cluster;
let apps: Subject;
let controller: RunningController;

const start = (kubeconfig?: string): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [appService], args: anyRoute },
    ...(kubeconfig !== undefined && { kubeconfig }),
  });

beforeAll(async () => {
  sandbox = await startSandbox({ users: [user] });
  cluster = new Cluster(sandbox);
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('resilience'));
  controller = await start();
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
  await sandbox.stop();
});

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

async function createAll(wanted: readonly string[]): Promise<void> {
  await Promise.all(wanted.map((name) => apps.create(name, spec)));
}

/** Waits until some of the custom resources have both children. */
async function inTheMiddle(prefix: string): Promise<void> {
  await eventually(
    async () => {
      const live = await cluster.list(services, apps.namespace);
      const done = live.filter(({ metadata }) => metadata.name.startsWith(prefix)).length;
      if (done < 5) throw new Error(`${done} Services are there`);
    },
    { intervalMilliseconds: 5 },
  );
}

/** Waits until all custom resources of the namespace are as rendered, and nothing else is there. */
async function converged(wanted: readonly string[]): Promise<void> {
  for (const name of wanted) await apps.asRendered(name);
  for (const name of wanted) await apps.ready(name);
  const all = (await cluster.list(apps.kind.type, apps.namespace))
    .map(({ metadata }) => metadata.name)
    .sort();
  for (const type of [deployments, services]) {
    const live = await cluster.list(type, apps.namespace);
    expect(live.map(({ metadata }) => metadata.name).sort()).toEqual(all);
  }
}

/**
 * What the API server wouldn't do; 504 is what it notes where nobody waits for its answer any more. The Gateway API isn't
 * installed here, and is looked for now and then; Roles can't give the right to look at its CRDs.
 */
const UNSEEN = new Set(['httproutes', 'customresourcedefinitions']);

function refused(entries: readonly AuditEntry[]): string[] {
  return entries
    .filter(
      ({ code = 0, objectRef }) => code >= 400 && code !== 504 && !UNSEEN.has(objectRef?.resource ?? ''),
    )
    .map(summary);
}

test('SIGTERM in the middle of its work lets a controller finish what it has begun, and exit with 0', async () => {
  const wanted = names('stopped', 50);
  const requests = await requestsFromNowOn(cluster, user);
  const created = createAll(wanted);
  await inTheMiddle('stopped');

  expect(await controller.stop()).toBe(0);
  await created;

  expect(controller.log.slice(-1)).toMatchObject([{ level: 'info', msg: 'Stopped' }]);
  expect(controller.log).toContainEqual(
    expect.objectContaining({ msg: 'Stopping: finishing what is in flight' }),
  );
  expect(controller.strayOutput).toEqual([]);
  // What was begun was finished: whoever got a Deployment has its Service and its status too.
  for (const { metadata } of await cluster.list(deployments, apps.namespace))
    expect(await cluster.find(apps.childPlace(services, metadata.name)), metadata.name).toBeDefined();
  expect(refused(await requests())).toEqual([]);

  controller = await start();
  await converged(wanted);
});
