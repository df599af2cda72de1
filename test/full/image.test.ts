import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { accountKubeconfig, deployments, eventually, installCrd } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';
import { Container } from './image/container.js';

const user = 'operator-73';
const cluster = openCluster();

test('the controller of the image works as the user nobody on a file system that it cannot write to, and ends in order', async () => {
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
