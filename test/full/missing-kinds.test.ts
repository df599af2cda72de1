import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { choosePorts } from '../../sandbox/ports.js';
import type { Kind } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { jobs } from './support/bundle.js';
import { requestsFromNowOn } from './support/requests.js';
import { namespaceType, Proxy } from './support/stream-proxy.js';
import { Subject } from './support/subject.js';

const user = 'operator-39';
const patience = { deadlineMilliseconds: 90_000 };
/** Of its own: no other test installs CRDs here. */
let sandbox: Sandbox;
let cluster: Cluster;
let proxy: Proxy;
let namespace: string;

beforeAll(async () => {
  sandbox = await startSandbox({ users: [user] });
  cluster = new Cluster(openSandbox(sandbox.handle));
  proxy = new Proxy(cluster, user, undefined, 'ingress-nginx');
  await installCrd(cluster, appService);
  namespace = await cluster.makeNamespace('missing-kinds');
  // There are rights to be given in it.
  await proxy.put({ type: namespaceType, name: proxy.namespace }, {}, 'test');
});
afterAll(async () => {
  await cluster.close();
  await sandbox.stop();
});

interface Operator {
  readonly controller: RunningController;
  readonly readyz: () => Promise<string>;
}

/** An operator of all kinds, which it needn't find. */
async function startOperator(): Promise<Operator> {
  const health = `127.0.0.1:${(await choosePorts()).apiServer}`;
  const controller = await startController({
    ...{ cluster, user, kinds: builtInKinds, awaitStart: false },
    args: ['--health-bind-address', health, ...anyRoute],
  });
  return { controller, readyz: async () => (await fetch(`http://${health}/readyz?verbose`)).text() };
}

test('kinds that are not installed cost nothing, and work once they are', async () => {
  const requests = await requestsFromNowOn(cluster, user);
  const resources = async (): Promise<Set<string>> =>
    new Set((await requests()).map(({ objectRef }) => objectRef?.resource ?? ''));
  const operator = await startOperator();
  await using controller = operator.controller;
  const { readyz } = operator;
  const started = ({ name }: Kind) =>
    controller.logged(({ msg, controller: of }) => msg === 'Controller started' && of === name);

  await started(appService);
  const apps = new Subject(cluster, appService, namespace);
  await apps.create('web', { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] });
  await apps.ready('web');
  // They are looked for again meanwhile, and nothing follows from that.
  await controller.logged(
    ({ resource, retryMilliseconds }) => resource === 'jobwatchers' && Number(retryMilliseconds) > 3_000,
  );

  const asked = await resources();
  expect(asked).toContain('services');
  for (const resource of ['jobs', 'configmaps', 'endpointslices', 'referencegrants'])
    expect(asked).not.toContain(resource);
  // Whether all are ready is asked of what there is, and the missing kinds alone are named.
  const missing = await eventually(async () => {
    const line = (await readyz()).split('\n').find((each) => each.includes('caches'))!;
    // While one is looked for again, that is told instead.
    expect(line).toContain('jobwatchers.batch.my.github.com: Watch jobwatchers: 404');
    expect(line).toContain('streamingresses.nginx-stream.jeffthecoder.xyz: Watch streamingresses: 404');
    return line;
  });
  expect(missing.match(/404/g)).toHaveLength(2);

  await installCrd(cluster, jobWatcher);
  await eventually(() => started(jobWatcher), patience);
  await cluster.create(jobs, {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'done', namespace } },
    spec: {
      template: {
        spec: { containers: [{ name: 'main', image: 'example.com/job:1' }], restartPolicy: 'Never' },
      },
    },
  });
  const { apiVersion, kind } = jobWatcher.type;
  await cluster.create(jobWatcher.type, {
    ...{ apiVersion, kind, metadata: { name: 'sweeper', namespace } },
    spec: { completedTTL: '0s', frequency: '1s' },
  });
  await eventually(async () => {
    expect(await cluster.list(jobs, namespace)).toEqual([]);
  });

  expect(await resources()).toContain('jobs');
  expect(await resources()).not.toContain('configmaps');
  expect(await readyz()).not.toContain('jobwatchers');
  expect(controller.strayOutput).toEqual([]);
});
