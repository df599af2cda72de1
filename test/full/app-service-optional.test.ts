import { beforeAll, expect, test } from 'vitest';
import type { Condition } from '../../src/contract/conditions.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { autoscalers, deployments, eventually, httpRoutes, putStatus } from '../support/cluster.js';
import { gatewayParent } from '../support/gateway.js';
import { anyRoute, startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

/** Children that an AppService has where a field says so. */
const user = 'operator-31';
const cluster = openCluster();
let apps: Subject;
let controller: RunningController;

const start = (args: readonly string[]): Promise<RunningController> =>
  startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace], args });

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'optional');
  controller = await start(anyRoute);
});

/** Renders a Deployment and a Service, and each of the fields below one object more. */
const base = {
  ...{ size: 2, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } },
  ports: [{ port: 80 }],
};
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'other' };
const optional = [
  {
    type: autoscalers,
    field: { autoscaling: { minReplicas: 2, maxReplicas: 3, cpu: 50 } },
    foreignSpec: { scaleTargetRef, maxReplicas: 2 },
  },
  {
    type: resourceType({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }),
    field: { disruption: {} },
    foreignSpec: { maxUnavailable: 2, selector: { matchLabels: { app: 'other' } } },
  },
  {
    type: httpRoutes,
    field: { route: { parentRefs: [{ name: 'edge' }] } },
    foreignSpec: { parentRefs: [{ name: 'other' }] },
  },
].map((each) => ({ ...each, kind: each.type.kind, name: each.type.kind.toLowerCase() }));
const everything = Object.assign({}, base, ...optional.map(({ field }) => field)) as object;

type Optional = (typeof optional)[number];

async function makeForeign({ type, foreignSpec }: Optional, name: string): Promise<void> {
  const { apiVersion, kind } = type;
  const metadata = { name, namespace: apps.namespace };
  await cluster.create(type, { apiVersion, kind, metadata, spec: foreignSpec });
}

/** Returns what only a writer changes: UID, owners and what the object asks for. */
async function state({ type }: Optional, name: string): Promise<object> {
  const { metadata, spec } = await cluster.get(apps.childPlace(type, name));
  const { uid, ownerReferences, annotations, labels } = metadata;
  return { uid, ownerReferences, annotations, labels, spec };
}

test.for(optional)('a field that goes takes its $kind along, and no other', async (each) => {
  const name = `${each.name}-field`;
  const others = optional.filter((other) => other !== each);
  const without = Object.assign({}, base, ...others.map(({ field }) => field)) as object;
  await apps.create(name, everything);
  await apps.asRendered(name);
  await apps.ready(name);
  const uidOf = async ({ type }: Optional): Promise<string | undefined> =>
    (await cluster.find(apps.childPlace(type, name)))?.metadata.uid;
  const before = await Promise.all(optional.map(uidOf));
  const requests = await requestsFromNowOn(cluster, user);

  await apps.edit(name, without);
  await apps.asRendered(name);
  await apps.ready(name);

  const after = await Promise.all(optional.map(uidOf));
  expect(after).toEqual(before.map((uid, index) => (optional[index] === each ? undefined : uid)));
  const deletes = writes(await requests()).filter(({ verb }) => verb === 'delete');
  // Refused with 409 where its own controller has written its status meanwhile: only what was seen is deleted.
  const carriedOut = deletes.filter(({ code }) => code !== 409);
  expect(carriedOut.map(summary)).toEqual([`delete ${each.type.plural} ${apps.namespace}/${name} 200`]);
  expect(new Set(deletes.map(({ objectRef }) => objectRef?.resource))).toEqual(new Set([each.type.plural]));
});

test.for(optional)('a $kind of others is refused, and stays when the field goes', async (each) => {
  const name = `${each.name}-foreign`;
  await makeForeign(each, name);
  const before = await state(each, name);
  await apps.create(name, { ...base, ...each.field });
  await apps.stalled(name, 'OwnershipConflict');
  await apps.edit(name, base);
  await apps.ready(name);

  expect(await state(each, name)).toEqual(before);
});

test.for(optional)('a $kind that has replaced ours unseen is not deleted', async (each) => {
  const names = Array.from({ length: 8 }, (_, index) => `${each.name}-replaced-${index}`);
  for (const name of names) await apps.create(name, { ...base, ...each.field });
  for (const name of names) await apps.asRendered(name);

  controller.signal('SIGSTOP');
  // The edit first, so that it is looked at before the rest is known.
  for (const name of names) {
    await apps.edit(name, base);
    await cluster.delete(apps.childPlace(each.type, name));
    await makeForeign(each, name);
  }
  const before = await Promise.all(names.map((name) => state(each, name)));
  controller.signal('SIGCONT');

  for (const name of names) await apps.ready(name);
  expect(await Promise.all(names.map((name) => state(each, name)))).toEqual(before);
});

const EDGE = { name: 'edge', namespace: 'infra' };
const routed = {
  ...base,
  size: 0,
  route: { parentRefs: [EDGE], hostnames: ['shop.example.com'], path: '/cart' },
};

test('RouteReady mirrors what the gateway reports, and Ready does not wait for it', async () => {
  const place = apps.childPlace(httpRoutes, 'routed');
  const becomes = async (status: Condition['status'], reason: string, message: string): Promise<void> => {
    await apps.condition('routed', { type: 'RouteReady', status, reason, message });
    await apps.ready('routed');
  };
  const pending = 'Gateway infra/edge has yet to accept the route';
  await apps.create('routed', routed);
  await becomes('Unknown', 'Pending', pending);
  expect((await apps.get('routed')).status?.url).toBe('http://shop.example.com/cart');

  const route = await eventually(() => cluster.get(place));
  const parentRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', ...EDGE };
  const accepted = { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' };
  for (const [words, status, reason, message] of [
    [{ Accepted: 'False NotAllowed' }, 'False', 'NotAllowed', 'Gateway infra/edge: NotAllowed it is'],
    [
      { ...accepted, ResolvedRefs: 'False BackendNotFound' },
      ...(['False', 'BackendNotFound', 'Gateway infra/edge: BackendNotFound it is'] as const),
    ],
    [accepted, 'True', 'Accepted', 'Gateway infra/edge has accepted the route'],
  ] as const) {
    await putStatus(cluster, place, { parents: [gatewayParent(route, parentRef, words)] });
    await becomes(status, reason, message);
  }
  await putStatus(cluster, place, { parents: [] });
  await becomes('Unknown', 'Pending', pending);
});

test('an operator without a policy publishes no route, leaves the one that is there, and deletes it with the field', async () => {
  const place = apps.childPlace(httpRoutes, 'published');
  await apps.create('published', routed);
  await apps.ready('published');
  const before = await cluster.get(place);
  await controller.kill();
  controller = await start([]);

  const refused = {
    reason: 'PolicyDenied',
    message:
      'spec.route: is used, and the policy has no gateways and no hostnames for routes; ' +
      "remove it, or ask an admin to list them in the operator's policy (--policy), below appservice",
  };
  await apps.create('new', routed);
  for (const name of ['new', 'published'])
    for (const [type, status] of Object.entries({ Accepted: 'False', Ready: 'False', Stalled: 'True' }))
      await apps.condition(name, { type, status, ...refused } as Condition);
  for (const type of [httpRoutes, deployments])
    expect(await cluster.find(apps.childPlace(type, 'new'))).toBeUndefined();
  expect(await cluster.get(place)).toEqual(before);

  const { route, ...unrouted } = routed;
  await apps.edit('published', unrouted);
  await apps.ready('published');
  expect(await cluster.find(place)).toBeUndefined();
});
