import { beforeAll, expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import type { Kind } from '../../src/contract/kind.js';
import { ApiError } from '../../src/client/api-error.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { loadKind } from '../support/bundle.js';
import { eventually, installCrd, jobs, namespaceType } from '../support/cluster.js';
import { Jobs } from '../support/jobs.js';
import { anyRoute, startController } from '../support/operator.js';
import { requestsFromNowOn } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { ownControlPlane } from '../support/test-clusters.js';

const user = 'operator-39';
const patience = { deadlineMilliseconds: 90_000 };
/** No other test installs CRDs here. */
const own = ownControlPlane();
let apps: Subject;

beforeAll(async () => {
  apps = await Subject.make(own.cluster, appService, 'missing-kinds');
  // There are rights to be given in it.
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ingress-nginx' } };
  await own.cluster.create(namespaceType, namespace);
});

test('kinds that are not installed cost nothing, and work once they are', async () => {
  const { cluster } = own;
  const { namespace } = apps;
  const requests = await requestsFromNowOn(cluster, user);
  const resources = async (): Promise<Set<string>> =>
    new Set((await requests()).map(({ objectRef }) => objectRef?.resource ?? ''));
  const health = `127.0.0.1:${(await choosePorts()).apiServer}`;
  const readyz = async (): Promise<string> => (await fetch(`http://${health}/readyz?verbose`)).text();
  const controller = await startController({
    ...{ cluster, user, kinds: builtInKinds, awaitStart: false },
    args: ['--health-bind-address', health, ...anyRoute],
  });
  const started = ({ name }: Kind) =>
    controller.logged(({ msg, controller: of }) => msg === 'controller started' && of === name);

  await started(appService);
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
  const missing = await eventually(async () => {
    const line = (await readyz()).split('\n').find((each) => each.includes('caches'))!;
    // While one is looked for again, that is reported instead.
    expect(line).toContain('jobwatchers.batch.my.github.com: Watch jobwatchers: 404');
    expect(line).toContain('streamingresses.nginx-stream.jeffthecoder.xyz: Watch streamingresses: 404');
    return line;
  });
  expect(missing.match(/404/g)).toHaveLength(2);

  await installCrd(cluster, jobWatcher);
  await eventually(() => started(jobWatcher), patience);
  const world = new Jobs(cluster, namespace);
  await world.finished('sweeper-done');
  await world.watch('sweeper', { completedTTL: '0s' });
  await eventually(async () => {
    expect(await cluster.list(jobs, namespace)).toEqual([]);
  });

  expect(await resources()).toContain('jobs');
  expect(await resources()).not.toContain('configmaps');
  expect(await readyz()).not.toContain('jobwatchers');
  expect(controller.strayOutput).toEqual([]);
});

test('a kind whose custom resources set fields of what is not installed works for the others, and once it is', async () => {
  const { cluster } = own;
  const { kind, config } = await loadKind('test/support/kinds/marker.config.mjs');
  const markers = await Subject.make(cluster, kind, 'markers');
  await startController({ cluster, user: 'operator-109', kinds: [kind], config });
  await markers.create('plain', {});
  await markers.create('marks', { stream: 'tcp' });
  await markers.create('going', { stream: 'tcp' });
  await markers.ready('plain');
  for (const name of ['marks', 'going'])
    expect(
      (await markers.condition(name, { type: 'Ready', status: 'False', reason: 'KindNotInstalled' })).message,
    ).toContain('the kind StreamIngress of the group nginx-stream.jeffthecoder.xyz is not installed');
  await markers.delete('going');
  await eventually(async () => {
    expect(await cluster.find(markers.place('going'))).toBeUndefined();
  });

  await installCrd(cluster, streamIngress);
  const { apiVersion, kind: name } = streamIngress.type;
  const metadata = { name: 'tcp', namespace: markers.namespace };
  const spec = { listen: 9000, upstream: { service: 'db', port: 5432 } };
  await cluster.create(streamIngress.type, { apiVersion, kind: name, metadata, spec });
  await eventually(() => markers.ready('marks'), patience);
  const place = markers.childPlace(streamIngress.type, 'tcp');
  expect((await cluster.get(place)).metadata.annotations).toMatchObject({ 'test.example.com/mark': 'marks' });
});

test.for([
  ['/apis/none.example.com/v1/foos', true],
  ['/apis/kosmos.io/v9/appservices', true],
  ['/apis/kosmos.io/v1/foos', true],
  ['/apis/apps/v9/deployments', true],
  ['/apis/apps/v1/foos', true],
  ['/api/v9/pods', true],
  ['/api/v1/foos', true],
  ['/apis/apps/v1/namespaces/default/deployments/none', false],
  ['/apis/kosmos.io/v1/namespaces/default/appservices/none', false],
  ['/api/v1/namespaces/none', false],
] as const)('of what there is not, %s is a kind that is not served: %s', async ([path, notServed]) => {
  const { status, body } = await own.cluster.send('GET', path);
  expect(status).toBe(404);
  expect(new ApiError('Read', { status, body }).kindNotServed, JSON.stringify(body)).toBe(notServed);
});
