import type { V1EndpointSlice } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const user = 'operator-25';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('metadata'));
  const namespaces = [apps.namespace];
  controller = await startController({ cluster, user, kinds: [appService], namespaces, args: anyRoute });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

const replicaSets = resourceType({ apiVersion: 'apps/v1', kind: 'ReplicaSet' });
const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const endpointSlices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
/** Everything that exists because of an AppService, directly or not. */
const types = [...appService.children, replicaSets, pods, endpointSlices];

const labels = {
  'app.kubernetes.io/instance': 'shop',
  'app.kubernetes.io/managed-by': 'Helm',
  'argocd.argoproj.io/instance': 'shop',
  'helm.sh/chart': 'shop-1.2.3',
  'helm.toolkit.fluxcd.io/name': 'shop',
  'helm.toolkit.fluxcd.io/namespace': 'flux-system',
  'kustomize.toolkit.fluxcd.io/name': 'shop',
  'kustomize.toolkit.fluxcd.io/namespace': 'flux-system',
  team: 'shop',
};
const annotations = {
  'argocd.argoproj.io/sync-wave': '5',
  'argocd.argoproj.io/tracking-id': 'shop:kosmos.io/AppService:shop/web',
  'config.kubernetes.io/origin': 'path: web.yaml',
  'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z',
  'kustomize.toolkit.fluxcd.io/checksum': 'abc',
  'meta.helm.sh/release-name': 'shop',
  'meta.helm.sh/release-namespace': 'shop',
  'example.com/note': 'ours',
};
const spec = {
  ...{ size: 2, image: 'example.com/web:1', ports: [{ port: 80 }], disruption: {} },
  ...{ resources: { requests: { cpu: '100m' } }, autoscaling: { minReplicas: 2, maxReplicas: 4, cpu: 50 } },
  route: { parentRefs: [{ name: 'edge' }] },
};

type EndpointSlice = AnyObject & Pick<V1EndpointSlice, 'endpoints'>;

/** An AppService as Argo CD, Flux, Helm and kubectl leave it, all of them at once. */
async function applied(name: string): Promise<void> {
  const { apiVersion, kind } = appService.type;
  const metadata = { name, namespace: apps.namespace, labels, annotations };
  await cluster.sandbox.kubectl(['apply', '-f', '-'], {
    stdin: JSON.stringify({ apiVersion, kind, metadata, spec }),
  });
  await apps.ready(name);
  await apps.asRendered(name);
}

/** All objects that are there because of one AppService, by kind. */
async function family(name: string): Promise<(AnyObject & { readonly kind: string })[]> {
  const all = await Promise.all(
    types.map(async (type) =>
      (await cluster.list(type, apps.namespace)).map((object) => ({ ...object, kind: type.kind })),
    ),
  );
  return all.flat().filter((object) => object.metadata.labels?.app === name);
}

test('what tools have noted on an AppService is on none of its objects, and on no pod', async () => {
  await applied('noted');
  const { metadata } = await apps.get('noted');
  expect(metadata.labels).toEqual(labels);
  expect(metadata.annotations).toMatchObject(annotations);
  expect(metadata.annotations).toHaveProperty(['kubectl.kubernetes.io/last-applied-configuration']);

  const objects = await eventually(async () => {
    const found = await family('noted');
    expect(new Set(found.map(({ kind }) => kind))).toEqual(new Set(types.map(({ kind }) => kind)));
    return found;
  });

  const own = {
    ...{ app: 'noted', 'app.kubernetes.io/name': 'noted', 'kosmos.io/appservice': 'noted' },
    'app.kubernetes.io/managed-by': 'reconstruct',
  };
  // What Kubernetes itself says of a ReplicaSet, its pods, and the endpoints of a Service.
  const others = [
    'pod-template-hash',
    'endpointslice.kubernetes.io/managed-by',
    'kubernetes.io/service-name',
  ];
  for (const { kind, metadata } of objects) {
    expect(metadata.labels, kind).toMatchObject(own);
    const known = [...Object.keys(own), ...others];
    expect(
      Object.keys(metadata.labels ?? {}).filter((key) => !known.includes(key)),
      kind,
    ).toEqual([]);
    const foreign = Object.keys(metadata.annotations ?? {}).filter(
      (key) => key !== APPLIED_HASH_ANNOTATION && !key.startsWith('deployment.kubernetes.io/'),
    );
    expect(foreign, kind).toEqual(
      kind === 'EndpointSlice' ? [expect.stringContaining('endpoints.kubernetes.io/')] : [],
    );
  }
});

test('to touch what is noted there writes nothing and restarts nothing', async () => {
  // GIVEN
  await applied('touched');
  // The EndpointSlice controller pauses for a second where it has overtaken its own watch.
  await eventually(async () => {
    const slices = (await family('touched')).filter(
      ({ kind }) => kind === 'EndpointSlice',
    ) as readonly EndpointSlice[];
    expect(
      slices.flatMap(({ endpoints = [] }) => endpoints.filter(({ conditions }) => conditions?.ready)),
    ).toHaveLength(2);
  });
  await settled(cluster, user);
  const before = await family('touched');
  const { metadata } = await apps.get('touched');
  const status = async (): Promise<unknown> => (await apps.get('touched')).status;
  const statusBefore = await status();
  const requests = await requestsFromNowOn(cluster, user);

  // WHEN
  const changed = { metadata: { labels: { ...labels, team: 'other' }, annotations } };
  await cluster.merge(apps.place('touched'), changed);
  await cluster.merge(apps.place('touched'), {
    metadata: {
      labels: Object.fromEntries(Object.keys(labels).map((key) => [key, null])),
      annotations: { ...Object.fromEntries(Object.keys(annotations).map((key) => [key, null])), late: 'yes' },
    },
  });
  const { metadata: after } = await apps.get('touched');
  expect(after).toMatchObject({ generation: metadata.generation, annotations: { late: 'yes' } });
  // What comes later on the same watch is done, so what came before is too.
  await apps.create('marker', { size: 0, image: 'example.com/web:1' });
  await apps.ready('marker');
  await settled(cluster, user);

  // THEN
  const about = writes(await requests()).filter(({ objectRef }) => objectRef?.name === 'touched');
  expect(about.map(summary)).toEqual([]);
  expect(await status()).toEqual(statusBefore);
  const versions = (objects: readonly AnyObject[]) =>
    objects.map(({ kind, metadata }) => [kind, metadata.name, metadata.uid, metadata.resourceVersion]);
  // The autoscaler's own status is written each second.
  const still = (objects: readonly AnyObject[]) =>
    objects.filter(({ kind }) => kind !== 'HorizontalPodAutoscaler');
  expect(versions(still(await family('touched')))).toEqual(versions(still(before)));
  const templates = (await family('touched')).filter(({ kind }) => kind === 'ReplicaSet');
  expect(templates).toHaveLength(1);
  expect(controllerOf(templates[0]!)?.kind).toBe('Deployment');
});
