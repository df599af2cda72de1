import { readFileSync } from 'node:fs';
import { afterAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Container } from './image/container.js';
import { accountKubeconfig } from './support/accounts.js';
import { Cluster, deployments } from './support/cluster.js';
import { startController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { Subject } from './support/subject.js';

const user = 'operator-73';
const cluster = new Cluster(openSandbox(inject('sandbox')));

afterAll(() => cluster.close());

test('the controller of the image works as nobody on a file system that it cannot write to, and ends in order', async () => {
  await installCrd(cluster, appService);
  const apps = new Subject(cluster, appService, await cluster.makeNamespace('image'));
  const kubeconfig = '/files/kubeconfig';
  using container = new Container({
    [kubeconfig]: readFileSync(await accountKubeconfig(cluster, user), 'utf8'),
  });

  await using controller = await startController({
    ...{ cluster, user, kubeconfig, kinds: [appService], namespaces: [apps.namespace] },
    // As the Deployment has it, but for the ports.
    ...{ electionNamespace: apps.namespace, program: (args) => container.command(...args) },
  });
  await apps.create('web', { size: 1, image: 'example.com/web:1' });

  await eventually(() => cluster.get({ type: deployments, namespace: apps.namespace, name: 'web' }));
  expect(await controller.stop()).toBe(0);
  expect(controller.strayOutput).toEqual([]);
  expect(controller.log.filter(({ level }) => level === 'error')).toEqual([]);
});
