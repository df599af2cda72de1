import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { controllerOf } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Cluster, configMaps } from './support/cluster.js';
import { startController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { Subject } from './support/subject.js';

const services = appService.children.find(({ kind }) => kind === 'Service')!;
const user = 'operator';
let sandbox: Sandbox;
let cluster: Cluster;

/** Without a controller manager there is no garbage collector that could be the one who removes something. */
beforeAll(async () => {
  sandbox = await startSandbox({ users: [user], apiOnly: true });
  cluster = new Cluster(sandbox);
  await installCrd(cluster, appService);
});
afterAll(async () => {
  await cluster.close();
  await sandbox.stop();
});

test('what a deleted namesake has left behind is made anew, and nothing else of its is touched', async () => {
  // GIVEN a Service and a ConfigMap of an AppService that is gone
  const apps = new Subject(cluster, appService, await cluster.makeNamespace('leftovers'));
  const gone = { ...appService.type, name: 'web', uid: '00000000-0000-4000-8000-000000000000' };
  const { apiVersion, kind, name, uid } = gone;
  const metadata = {
    name: 'web',
    namespace: apps.namespace,
    ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
  };
  const spec = { ports: [{ port: 1 }] };
  const leftover = await cluster.create(services, { apiVersion: 'v1', kind: 'Service', metadata, spec });
  await cluster.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  await using controller = await startController({ cluster, user, kinds: [appService] });

  // WHEN one of the same name is created
  const cr = await apps.create('web', { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] });

  // THEN its Service is another one, and the type that the kind doesn't make stays
  await eventually(async () => {
    const live = await cluster.get(apps.childPlace(services, 'web'));
    expect(live.metadata.uid).not.toBe(leftover.metadata.uid);
    expect(controllerOf(live)?.uid).toBe(cr.metadata.uid);
  });
  await apps.asRendered('web');
  expect(await cluster.find(apps.childPlace(configMaps, 'web'))).toBeDefined();
  expect(await controller.stop()).toBe(0);
});
