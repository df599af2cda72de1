import { expect, test } from 'vitest';
import { controllerOf } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { configMaps, eventually, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** Without a controller manager there is no garbage collector that could be the one which removes something. */
const own = ownControlPlane({ apiOnly: true });

test('what a deleted namesake has left behind is replaced, and nothing else of its is touched', async () => {
  // GIVEN a Service and a ConfigMap of an AppService that is gone
  const { cluster } = own;
  const apps = await Subject.make(cluster, appService, 'leftovers');
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
  await using controller = await startController({ cluster, user: 'operator', kinds: [appService] });

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
