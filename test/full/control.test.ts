import type { V1Deployment } from '@kubernetes/client-node';
import { beforeAll, expect, test } from 'vitest';
import type { Wire } from '../../src/contract/kubernetes-types.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { deployments, eventually, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-54';
const cluster = openCluster();
const spec = { size: 0, image: 'example.com/web:1', ports: [{ name: 'http', port: 80 }] };
let apps: Subject;

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'control');
  await startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace] });
});

const kubectl = (...args: readonly string[]) =>
  cluster.sandbox.kubectl(['-n', apps.namespace, ...args]).then(({ stdout }) => stdout);

const annotate = (name: string, annotation: string, value: string | null): Promise<unknown> =>
  cluster.merge(apps.place(name), {
    metadata: { annotations: { [`reconstruct.kosmos.io/${annotation}`]: value } },
  });

const deploymentOf = (name: string) =>
  cluster.get<Wire<V1Deployment>>(apps.childPlace(deployments, name)).then(({ spec }) => spec!);

/** Waits for a condition, of whatever generation. */
const hasCondition = (name: string, wanted: object, holds = true): Promise<void> =>
  eventually(async () => {
    const all = expect((await apps.get(name)).status?.conditions);
    (holds ? all : all.not).toContainEqual(expect.objectContaining(wanted));
  });

test('while a custom resource is paused, nothing but its status is written; afterwards edits and drift are', async () => {
  await apps.create('paused', spec);
  await apps.ready('paused');
  await annotate('paused', 'paused', 'true');
  await hasCondition('paused', { type: 'Paused', status: 'True' });
  const { generation } = (await apps.get('paused')).metadata;
  const requests = await requestsFromNowOn(cluster, user, apps.namespace);

  await apps.edit('paused', { ...spec, image: 'example.com/web:2' });
  await kubectl('scale', 'deployment/paused', '--replicas=2');
  await kubectl('delete', 'service/paused');
  await hasCondition('paused', { type: 'Ready', status: 'Unknown', reason: 'Paused' });
  await settled(cluster, user, { namespace: apps.namespace });
  expect(new Set(writes(await requests()).map(summary))).toEqual(
    new Set([`patch appservices/status ${apps.namespace}/paused 200`]),
  );
  expect((await apps.get('paused')).status?.observedGeneration).toBe(generation);

  await annotate('paused', 'paused', null);
  await apps.asRendered('paused');
  expect(await deploymentOf('paused')).toMatchObject({
    replicas: 0,
    template: { spec: { containers: [{ image: 'example.com/web:2' }] } },
  });
  await apps.ready('paused');
  await hasCondition('paused', { type: 'Paused' }, false);
});

test('an annotation that says neither true nor false stalls, and changes nothing', async () => {
  await apps.create('unclear', spec);
  await apps.ready('unclear');
  await annotate('unclear', 'paused', 'yes');
  const { message } = await apps.stalled('unclear', 'InvalidAnnotation');
  expect(message).toContain('metadata.annotations["reconstruct.kosmos.io/paused"]: "yes"');
  await cluster.get(apps.childPlace(services, 'unclear'));
  await annotate('unclear', 'paused', 'false');
  await apps.ready('unclear');
});
