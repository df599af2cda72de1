import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { paths } from '../../sandbox/layout.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { FaultProxy } from '../scenarios/support/fault-proxy.js';
import { Gate } from '../scenarios/support/faults.js';
import { writesTo } from '../scenarios/support/proxied-request.js';
import { anyRoute } from './support/any-route.js';
import { Cluster, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { httpRouteCrd } from './support/http-route-crd.js';
import { kubeconfigLike } from './support/kubeconfigs.js';
import { requestsFromNowOn, summary } from './support/requests.js';
import { Subject } from './support/subject.js';

/** With a control plane of its own, so that its API server can be stopped; here the controller watches all namespaces. */
const user = 'operator';
const spec = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };
const withRoute = { ...spec, route: { hostnames: ['shop.example.com'], parentRefs: [{ name: 'public' }] } };
const httpRoutes = resourceType({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' });
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

async function startProxy(): Promise<FaultProxy> {
  const ca = readFileSync(paths(sandbox).ca, 'utf8');
  const key = readFileSync(join(paths(sandbox).certificates, 'apiserver.key'), 'utf8');
  return FaultProxy.start({ url: sandbox.url, ca }, { certificate: ca, key });
}

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

test('a route where there is no Gateway API stalls, and everything else is made', async () => {
  await apps.create('routed', withRoute);

  await apps.condition('routed', { type: 'Stalled', status: 'True', reason: 'KindNotInstalled' });
  await apps.condition('routed', { type: 'RouteReady', status: 'False', reason: 'KindNotInstalled' });
  for (const type of [deployments, services])
    expect(await cluster.find(apps.childPlace(type, 'routed'))).toBeDefined();

  await apps.edit('routed', spec);
  await apps.ready('routed');
});

test('a controller that is killed in the middle of its work is replaced by one that finishes it', async () => {
  const wanted = names('killed', 50);
  await using proxy = await startProxy();
  expect(await controller.stop()).toBe(0);
  controller = await start(await kubeconfigLike(cluster, user, { server: proxy.url }));
  // One request never arrives, so that there is something left to do, however fast the rest was.
  const gate = new Gate();
  proxy.on(writesTo('services', 'killed-7'), gate.fault);
  const requests = await requestsFromNowOn(cluster, user);
  const created = createAll(wanted);
  await inTheMiddle('killed');
  await eventually(() => {
    expect(gate.held).toBe(1);
  });

  await controller.kill();
  await created;
  expect(await cluster.find(apps.childPlace(services, 'killed-7'))).toBeUndefined();
  controller = await start();

  await converged(wanted);
  // Made once each: nothing that was there has been made a second time, or refused.
  const made = (await requests()).filter(({ verb, code, objectRef }) => {
    return verb === 'patch' && code === 201 && objectRef?.subresource === undefined;
  });
  expect(new Set(made.map(summary)).size).toBe(made.length);
  expect(refused(await requests())).toEqual([]);
});

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

test('an API server that restarts in the middle of the work costs nothing but time', async () => {
  const wanted = names('outage', 30);
  const before = names('before', 4);
  await createAll(before);
  for (const name of before) await apps.asRendered(name);
  // Some of them meet a server that is going down.
  const created = createAll(wanted.slice(0, 20)).catch(() => undefined);
  await inTheMiddle('outage');

  await sandbox.stopApiServer();
  await created;
  await sandbox.startApiServer();
  await cluster.merge(apps.childPlace(deployments, 'before-0'), { spec: { replicas: 3 } });
  await cluster.delete(apps.childPlace(services, 'before-1'));
  await apps.edit('before-2', { ...spec, image: 'example.com/web:2' });
  await apps.edit('before-3', { size: 0, image: 'example.com/web:1' });
  const there = new Set(
    (await cluster.list(apps.kind.type, apps.namespace)).map(({ metadata }) => metadata.name),
  );
  await createAll(wanted.filter((name) => !there.has(name)));

  // What it refuses before it knows anybody's rights is tried again after a minute.
  for (const name of [...before, ...wanted]) await apps.asRendered(name, { deadlineMilliseconds: 150_000 });
  await apps.edit('before-3', spec);
  await converged([...wanted, ...before]);
});

test('a Gateway API that is installed later brings the route', async () => {
  await apps.create('patient', withRoute);
  await apps.condition('patient', { type: 'RouteReady', status: 'False', reason: 'KindNotInstalled' });

  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });

  await eventually(
    async () => {
      expect(await cluster.find(apps.childPlace(httpRoutes, 'patient'))).toBeDefined();
    },
    { deadlineMilliseconds: 60_000 },
  );
  await apps.condition('patient', { type: 'RouteReady', status: 'Unknown', reason: 'Pending' });
  await apps.ready('patient');
  await apps.asRendered('patient');
});

test('the watches go on after the outage', async () => {
  await apps.create('afterwards', spec);
  await apps.ready('afterwards');
  await cluster.delete(apps.childPlace(deployments, 'afterwards'));
  await apps.asRendered('afterwards');

  expect(await controller.stop()).toBe(0);
});
