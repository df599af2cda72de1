import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { Condition } from '../../src/contract/conditions.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster, deployments } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { Subject } from './support/subject.js';

const user = 'operator-30';
const image = 'example.com/web:1';
const httpRoutes = resourceType({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' });
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('route'));
  controller = await start(anyRoute);
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

function start(args: readonly string[]): Promise<RunningController> {
  return startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace], args });
}

const EDGE = { name: 'edge', namespace: 'infra' };

function routed(parentRefs: readonly object[], more: object = {}): object {
  return { size: 0, image, ports: [{ port: 80 }], route: { parentRefs, ...more } };
}

/** What a gateway's controller says of a route that it was asked to serve. */
function verdict(parentRef: object, said: Readonly<Record<string, string>>, generation: number): object {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  return {
    parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', ...parentRef },
    controllerName: 'example.com/gateway',
    conditions: Object.entries(said).map(([type, words]) => {
      const [status, reason] = words.split(' ') as [string, string];
      return {
        ...{ type, status, reason, message: `${reason} it is` },
        ...{ observedGeneration: generation, lastTransitionTime },
      };
    }),
  };
}

const ACCEPTED = { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' };

async function generationOf(name: string): Promise<number> {
  return eventually(async () => {
    const { metadata } = await cluster.get(apps.childPlace(httpRoutes, name));
    return metadata.generation!;
  });
}

async function report(name: string, ...parents: readonly object[]): Promise<void> {
  const path = `/apis/${httpRoutes.apiVersion}/namespaces/${apps.namespace}/httproutes/${name}/status`;
  const contentType = 'application/merge-patch+json';
  const answer = await cluster.send('PATCH', path, { body: { status: { parents } }, contentType });
  expect(answer.status, String(answer.body.message)).toBe(200);
}

/** Waits for what is told, and for its words where they are given. */
async function routeReady(
  name: string,
  status: Condition['status'],
  reason: string,
  message?: string,
): Promise<void> {
  await apps.condition(name, { type: 'RouteReady', status, reason, ...(message && { message }) });
}

describe('RouteReady', () => {
  test('is Unknown until the gateway speaks, then what it says, and Ready does not wait for it', async () => {
    const name = 'one';
    await apps.create(name, routed([EDGE], { hostnames: ['shop.example.com'], path: '/cart' }));
    await routeReady(name, 'Unknown', 'Pending', 'Gateway infra/edge has yet to accept the route');
    await apps.ready(name);
    expect((await apps.get(name)).status?.url).toBe('http://shop.example.com/cart');
    const generation = await generationOf(name);

    await report(name, verdict(EDGE, { Accepted: 'False NotAllowedByListeners' }, generation));
    await routeReady(
      name,
      'False',
      'NotAllowedByListeners',
      'Gateway infra/edge: NotAllowedByListeners it is',
    );
    await apps.ready(name);

    await report(name, verdict(EDGE, { ...ACCEPTED, ResolvedRefs: 'False BackendNotFound' }, generation));
    await routeReady(name, 'False', 'BackendNotFound', 'Gateway infra/edge: BackendNotFound it is');

    await report(name, verdict(EDGE, ACCEPTED, generation));
    await routeReady(name, 'True', 'Accepted', 'Gateway infra/edge has accepted the route');

    await report(name);
    await routeReady(name, 'Unknown', 'Pending');
    await apps.ready(name);
  });
});

test('an operator without a policy publishes no route, leaves the one that is there, and deletes it with the field', async () => {
  const published = routed([EDGE], { hostnames: ['shop.example.com'] });
  const place = apps.childPlace(httpRoutes, 'published');
  await apps.create('published', published);
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
  await apps.create('new', published);
  for (const name of ['new', 'published'])
    for (const [type, status] of [
      ['Accepted', 'False'],
      ['Ready', 'False'],
      ['Stalled', 'True'],
    ] as const)
      await apps.condition(name, { type, status, ...refused });
  for (const type of [httpRoutes, deployments])
    expect(await cluster.find(apps.childPlace(type, 'new'))).toBeUndefined();
  expect(await cluster.get(place)).toEqual(before);

  await apps.edit('published', { size: 0, image, ports: [{ port: 80 }] });
  await apps.ready('published');
  expect(await cluster.find(place)).toBeUndefined();
});
