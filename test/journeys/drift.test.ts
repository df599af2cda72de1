import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import { beforeAll, expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { loadBundle } from '../support/bundle.js';
import { deployments, eventually, services } from '../support/cluster.js';
import { summary, writes } from '../support/requests.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey, logFromNowOn, operator } from './support/operator.js';
import type { OperatorLog } from './support/operator.js';

const spec = { size: 0, image: 'example.com/web:1', ports: [{ name: 'http', port: 80 }] };
const { kind: bundle } = await loadBundle();
let apps: Subject;
let bundles: Subject;

beforeAll(async () => {
  apps = await journey(appService, 'drift');
  bundles = await journey(bundle, 'drift-bundles');
});

const kubectl = (...args: readonly string[]) =>
  cluster.sandbox.kubectl(['-n', apps.namespace, ...args]).then(({ stdout }) => stdout);

/** The line that tells how a child of this type was put right. */
const corrected = (child: string, log: OperatorLog): Promise<unknown> =>
  log
    .logged((line) => line.action === 'corrected' && line.child === child && line.name === 'edited')
    .then(({ managers, fields }) => ({ managers, fields }));

test('what kubectl changes of ours is corrected, and reported with writer and field', async () => {
  await apps.create('edited', spec);
  await apps.ready('edited');
  const drifts: unknown[] = [];
  for (const [child, ...args] of [
    ['Deployment', 'scale', 'deployment/edited', '--replicas=3'],
    ['Deployment', 'set', 'image', 'deployment/edited', 'edited=example.com/other'],
    ['Deployment', 'label', 'deployment/edited', 'app=other', '--overwrite'],
    ['Service', 'patch', 'service/edited', '-p', '{"spec":{"selector":{"a":"b"}}}'],
    [
      'Service',
      'patch',
      'service/edited',
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/metadata/labels"}]',
    ],
  ] as const) {
    const log = logFromNowOn();
    await kubectl(...args);
    drifts.push(await corrected(child, log));
    await apps.asRendered('edited');
  }

  expect(drifts).toEqual([
    { managers: ['kubectl'], fields: ['.spec.replicas'] },
    { managers: ['kubectl-set'], fields: ['.spec.template.spec.containers[name="edited"].image'] },
    { managers: ['kubectl-label'], fields: ['.metadata.labels.app'] },
    { managers: ['kubectl-patch'], fields: ['.spec.selector'] },
    { managers: [], fields: ['.metadata.labels'] },
  ]);
  await apps.ready('edited');
});

test('what kubectl adds stays, and costs no write', async () => {
  await apps.create('extended', spec);
  await apps.ready('extended');
  await operator.settled(apps.namespace);
  const requests = await operator.requestsFromNowOn(apps.namespace);

  await kubectl('label', 'deployment/extended', 'team=shop');
  await kubectl('annotate', 'service/extended', 'example.com/note=kept');
  await kubectl('set', 'env', 'deployment/extended', 'ADDED=1');
  const sidecar = { name: 'sidecar', image: 'example.com/sidecar' };
  const patch = { spec: { template: { spec: { containers: [sidecar] } } } };
  await kubectl('patch', 'deployment/extended', '-p', JSON.stringify(patch));
  await operator.settled(apps.namespace);

  const written = writes(await requests()).filter(({ objectRef }) => objectRef?.subresource !== 'status');
  expect(written.map(summary)).toEqual([]);
  await apps.edit('extended', { ...spec, image: 'example.com/web:2' });
  await apps.asRendered('extended');
  const live = await cluster.get<Wire<V1Deployment>>(apps.childPlace(deployments, 'extended'));
  const containers = live.spec!.template.spec!.containers;
  const [own, added] = ['extended', 'sidecar'].map((name) => containers.find((item) => item.name === name));
  expect(own).toMatchObject({ image: 'example.com/web:2', env: [{ name: 'ADDED', value: '1' }] });
  expect(added).toMatchObject(sidecar);
  expect(live.metadata!.labels).toHaveProperty('team', 'shop');
  const { metadata } = await cluster.get<Wire<V1Service>>(apps.childPlace(services, 'extended'));
  expect(metadata!.annotations).toHaveProperty('example.com/note', 'kept');
});

test('a Job whose template changes is created again, since its kind allows it', async () => {
  const job = (image: string): object => ({
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'once' } },
    spec: {
      suspend: true,
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image }] } },
    },
  });
  const place = bundles.childPlace(
    bundle.children.find(({ kind }) => kind === 'Job')!,
    'once',
  );
  await bundles.create('once', { objects: [job('example.com/a:1')] });
  const before = await eventually(() => cluster.get(place));

  const log = logFromNowOn();
  await bundles.edit('once', { objects: [job('example.com/a:2')] });

  const after = await eventually(async () => {
    const live = await cluster.get(place);
    expect(live.metadata.uid).not.toBe(before.metadata.uid);
    return live;
  });
  expect(JSON.stringify(after.spec)).toContain('example.com/a:2');
  await log.logged(({ action, name }) => name === 'once' && (action === 'recreated' || action === 'created'));
});
