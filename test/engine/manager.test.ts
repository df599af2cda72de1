import { describe, expect, it } from 'vitest';
import type { Controller, Reader, Watch } from '../../src/contract/controller.js';
import type { OwnStep } from '../../src/contract/plan.js';
import type { Plan } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import type { ManagerProps } from '../../src/engine/loop/manager.js';
import type { ApiResponse } from '../../src/client/transport.js';
import { plan } from './support/bench.js';
import { anObject, apply, CONFIG_MAP, configMap, DEPLOYMENT, failure, MANAGER } from './support/builders.js';
import { ownedBy, SERVICE, STATUS_MANAGER, widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { ScriptedStream } from './support/scripted-transport.js';
import { startedManager } from './support/started-manager.js';
import type { StartedManager } from './support/started-manager.js';
import { settled } from './support/virtual-clock.js';

const CHILD = 'PATCH /api/v1/namespaces/shop/configmaps/child';

interface Setup extends StartedManager {
  readonly reconciled: string[];
}

/** Controller of Widgets, and of ConfigMaps that wake nothing. */
async function started(
  prepare: (server: FakeApiServer) => void = () => undefined,
  reconcile: (key: string, reader: Reader) => Plan = () => plan({}),
  props: Pick<Partial<ManagerProps>, 'namespaces' | 'workers'> = {},
  watch: Partial<Watch> = {},
): Promise<Setup> {
  const server = new FakeApiServer();
  server.put(WIDGET, widget('web'));
  prepare(server);
  const reconciled: string[] = [];
  const controller: Controller = {
    ...{ name: 'widget', kind: 'Widget' },
    watches: [
      { type: WIDGET, mapsTo: ({ metadata }) => [`${metadata.namespace ?? ''}/${metadata.name}`] },
      { type: CONFIG_MAP, mapsTo: () => [], ...watch },
    ],
    reconcile: (key, reader) => {
      reconciled.push(key);
      return reconcile(key, reader);
    },
  };
  return { ...(await startedManager({ controllers: [controller], server, ...props })), reconciled };
}

/** Lets the server answer like this for streams of a type, for as long as the condition holds. */
function refuseStreams(
  server: FakeApiServer,
  plural: string,
  { status, body }: ApiResponse,
  refuses = () => true,
): void {
  const open = server.stream.bind(server);
  server.stream = async (request) => {
    if (!refuses() || !request.path.endsWith(`/${plural}`)) return open(request);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return { status, chunks: new ScriptedStream(request).send(text).end().chunks() };
  };
}

const NOT_FOUND: ApiResponse = { status: 404, body: '404 page not found\n' };

function endWatches(server: FakeApiServer, of: string): void {
  for (const { plural, stream } of server.streams) if (plural === of) stream.end();
}

describe('Manager', () => {
  it('takes keys again as soon as the kind that they lacked is installed again', async () => {
    let served = true;
    const { server, clock, reconciled } = await started(
      (fake) => {
        fake.put(WIDGET, widget('fine'));
        fake.intercept = ({ path }) => (!served && path.includes('configmaps') ? NOT_FOUND : undefined);
        refuseStreams(fake, 'configmaps', NOT_FOUND, () => !served);
      },
      (key) => plan(key === 'shop/web' ? { steps: [apply('a')] } : {}),
    );
    await clock.advance(1_000);
    served = false;
    server.remove(CONFIG_MAP, 'shop/a');
    endWatches(server, 'configmaps');
    server.put(WIDGET, widget('web'));
    // By then the pause is longer than it takes the watch to find the kind again.
    await clock.advance(400_000);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
    reconciled.length = 0;

    served = true;
    await clock.advance(30_000);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
    expect(reconciled).not.toContain('shop/fine');
  });

  it('looks at all keys of a controller again on request, behind changes', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `w${n}`);
    const { manager, server, reconciled } = await started(
      (fake) => {
        for (const name of names) fake.put(WIDGET, widget(name));
      },
      undefined,
      { workers: 1 },
    );
    expect(reconciled).toHaveLength(41);
    reconciled.length = 0;
    manager.requeueAll('widget');
    manager.requeueAll('unknown');
    server.put(WIDGET, widget('new'));
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(new Set(reconciled)).toEqual(new Set(['web', 'new', ...names].map((name) => `shop/${name}`)));
    expect(reconciled.indexOf('shop/new')).toBeLessThan(40);
    expect(server.requests).toEqual([]);
  });

  it('watches each of its namespaces by itself, and names what is missing', async () => {
    const { server, manager, reconciled } = await started(
      (fake) => {
        fake.heldBack.add('configmaps');
        fake.put(WIDGET, widget('far', { namespace: 'far' }));
      },
      undefined,
      { namespaces: ['shop', 'blog'] },
    );
    expect(server.streams.map(({ plural, namespace }) => `${plural} ${namespace ?? ''}`).sort()).toEqual([
      ...['configmaps blog', 'configmaps shop', 'widgets blog', 'widgets shop'],
    ]);
    expect(manager.notReady().map(({ what }) => what)).toEqual(['configmaps in shop', 'configmaps in blog']);
    server.openWatches('configmaps');
    await settled();
    await settled();
    expect(reconciled).toEqual(['shop/web']);
  });

  it('finishes what is in flight when it stops, then closes watches and transport', async () => {
    const answer = Promise.withResolvers<undefined>();
    const { server, stop } = await started(
      (fake) => (fake.intercept = () => answer.promise),
      () => plan({ steps: [apply('child')] }),
    );
    const stopping = stop();
    await settled();
    expect(server.closed).toBe(false);
    expect(server.streams.every(({ stream }) => stream.closed)).toBe(false);
    answer.resolve(undefined);
    await stopping;
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
    expect(server.streams.every(({ stream }) => stream.closed)).toBe(true);
    expect(server.closed).toBe(true);
  });

  it('holds a refused write for as long as the API server asks, and nothing else', async () => {
    let overloaded = true;
    const { server, clock, manager, reconciled } = await started(
      (fake) => {
        fake.intercept = ({ method }) =>
          overloaded && method === 'PATCH'
            ? { status: 429, body: { kind: 'Status' }, retryAfterSeconds: 30 }
            : undefined;
      },
      () =>
        plan({
          steps: [apply('child')],
          status: [{ target: widget('web'), fieldManager: STATUS_MANAGER, status: {} }],
        }),
    );
    // The child, and the status that reports it.
    expect(server.writes).toHaveLength(2);
    for (const { stream } of server.streams) stream.break();
    await clock.advance(29_000);
    manager.requeueAll('widget');
    await clock.advance(900);
    expect(server.writes).toHaveLength(2);
    expect(server.streams.length).toBe(4);
    expect(reconciled.length).toBeLessThan(10);
    overloaded = false;
    await clock.advance(7_000);
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });

  it('takes what failed again as soon as an API server is ready that was used before it was', async () => {
    let state: 'well' | 'away' | 'starting' = 'well';
    const { server, clock, manager } = await started(
      (fake) => {
        fake.intercept = ({ method, path }) => {
          if (state === 'away') return Promise.reject(new Error('connect ECONNREFUSED'));
          const fails = state === 'starting' && (path === '/readyz' || method === 'PATCH');
          if (fails) return { status: 500, body: { kind: 'Status', message: 'not ready' } };
          return path === '/readyz' ? { status: 200, body: 'ok' } : undefined;
        };
      },
      () => plan({ steps: [apply('child')] }),
    );
    server.remove(CONFIG_MAP, 'shop/child');
    state = 'away';
    manager.requeueAll('widget');
    await clock.advance(10_000);
    state = 'starting';
    // A minute until requests are sent, and some more until the pause of the key is long.
    await clock.advance(400_000);
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeUndefined();
    state = 'well';
    await clock.advance(6_000);
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
  });

  it('counts objects, requests and waiting keys', async () => {
    const { metrics } = await started();
    const text = await metrics.scrape();
    expect(text).toContain('reconstruct_store_objects{type="Widget.demo.example.com"} 1');
    expect(text).toContain('reconstruct_store_objects{type="ConfigMap"} 0');
    expect(text).toContain('rest_client_requests_total{code="200",method="GET",host="api.test:443"} 2');
    expect(text).toContain('workqueue_depth{name="widget",controller="widget",priority="change"} 0');
  });

  it('applies nothing while the list of children is late, and nothing at all if it is as it should be', async () => {
    const making = (): Plan => plan({ steps: [apply('child')] });
    const before = await started(undefined, making);
    expect(before.writes()).toEqual([CHILD]);
    const { server, clock, writes } = await started((fake) => {
      fake.put(CONFIG_MAP, before.server.get(CONFIG_MAP, 'shop/child')!);
      fake.heldBack.add('configmaps');
    }, making);
    await clock.advance(70_000);
    expect(server.requests).toEqual([]);
    server.openWatches('configmaps');
    for (let turn = 0; turn < 5; turn++) await settled();
    expect(writes()).toEqual([]);
  });
});

describe('Watches of several controllers', () => {
  const GADGET = { ...WIDGET, kind: 'Gadget', plural: 'gadgets' };
  const ofWidgets = ['configmaps', 'services', 'widgets'];
  const ofGadgets = ['configmaps', 'deployments', 'gadgets'];

  /** Widgets need ConfigMaps and Services; Gadgets other parts of ConfigMaps, Services, and Deployments. */
  async function both(prepare: (server: FakeApiServer) => void) {
    const reconciled: string[] = [];
    const controller = (name: string, watches: readonly Omit<Watch, 'mapsTo'>[]): Controller => ({
      ...{ name, kind: name },
      watches: watches.map((watch) => ({ ...watch, mapsTo: () => ['all'] })),
      reconcile: () => {
        reconciled.push(name);
        return plan({});
      },
    });
    const keep = (object: AnyObject): AnyObject => object;
    const server = new FakeApiServer();
    server.put(WIDGET, widget('web'));
    server.put(CONFIG_MAP, configMap('a', '1'));
    prepare(server);
    const stage = await startedManager({
      server,
      controllers: [
        controller('widget', [{ type: WIDGET }, { type: CONFIG_MAP }, { type: SERVICE }]),
        controller('gadget', [
          ...[{ type: GADGET }, { type: CONFIG_MAP, keep }, { type: SERVICE }, { type: DEPLOYMENT }],
        ]),
      ],
    });
    return { ...stage, reconciled, opened: () => server.streams.map(({ plural }) => plural).sort() };
  }

  it('open once their custom resources are listed; equal ones are one stream', async () => {
    const { opened, manager } = await both(() => undefined);
    expect(opened()).toEqual([...ofWidgets, ...ofGadgets].sort());
    expect(manager.notReady()).toEqual([]);
  });

  it('stay closed while their kind is not installed, and open once it is', async () => {
    const { server, clock, opened, reconciled, manager } = await both((fake) => fake.unserved.add('gadgets'));
    expect(opened()).toEqual([...ofWidgets, 'gadgets'].sort());
    expect(reconciled).toEqual(['widget']);
    expect(manager.notReady()).toMatchObject([{ what: 'gadgets.demo.example.com' }]);
    await clock.advance(600_000);
    expect(new Set(opened())).toEqual(new Set([...ofWidgets, 'gadgets']));
    // The CRD is asked for once.
    expect(server.requests.filter(({ path }) => path.includes('customresourcedefinitions'))).toHaveLength(1);
    expect(manager.silentWatches()).toEqual([]);

    server.unserved.delete('gadgets');
    await clock.advance(30_000);
    expect(opened().filter((plural) => plural === 'deployments')).toEqual(['deployments']);
    expect(manager.notReady()).toEqual([]);
    expect(reconciled).toContain('gadget');
  });

  it('wait where the right to read the custom resources is missing, until it is granted', async () => {
    let forbidden = true;
    const { clock, opened, manager } = await both((fake) => {
      refuseStreams(fake, 'gadgets', failure(403, 'Forbidden', 'not yours'), () => forbidden);
    });
    expect(opened()).not.toContain('deployments');
    expect(manager.notReady()).toMatchObject([
      { what: 'gadgets.demo.example.com', why: expect.stringContaining('not yours') as string },
    ]);
    forbidden = false;
    await clock.advance(120_000);
    expect(opened()).toContain('deployments');
    expect(manager.notReady()).toEqual([]);
  });
});

describe('An optional kind', () => {
  const ROUTE = resourceType({ apiVersion: 'gateway.io/v1', kind: 'Route' });
  const REFUSAL =
    "Route shop/web can't be made: the kind Route of the group gateway.io is not installed in this cluster; " +
    'install its CustomResourceDefinition (gateway.io/v1), or remove what asks for it';
  const step = (type: ResourceType): OwnStep => ({
    ...({ do: 'own', object: anObject(type, 'web'), fieldManager: MANAGER } as const),
    owner: ownedBy('web'),
  });

  /** Controller that makes a Route, which need not be installed, and a ConfigMap for each Widget. */
  async function withRoutes(writes?: Watch['writes']) {
    const reconciled: string[] = [];
    const server = new FakeApiServer();
    server.put(WIDGET, widget('web'));
    server.unserved.add('routes');
    const mapsTo = (): string[] => ['shop/web'];
    const controller: Controller = {
      ...{ name: 'widget', kind: 'Widget' },
      watches: [
        { type: WIDGET, keep: (object) => object, mapsTo },
        { type: ROUTE, optional: true, ...(writes && { writes }), mapsTo },
        { type: CONFIG_MAP, mapsTo },
      ],
      reconcile: (key, reader) => {
        reconciled.push(key);
        const target = reader.get(WIDGET, key) as ReturnType<typeof widget>;
        return plan({
          steps: [step(ROUTE), step(CONFIG_MAP)],
          conclude: (changes) => {
            const status = { errors: changes.map(({ error }) => error?.message ?? '') };
            return { status: [{ target, fieldManager: STATUS_MANAGER, status }], events: [] };
          },
        });
      },
    };
    const stage = await startedManager({ server, controllers: [controller] });
    const errors = (): unknown =>
      (server.get(WIDGET, 'shop/web') as { status?: { errors?: unknown } }).status?.errors;
    return { ...stage, reconciled, errors };
  }

  it('that is not installed keeps nothing from starting, and costs no write; the rest is applied', async () => {
    const { manager, errors, writes, clock, server, reconciled } = await withRoutes();
    expect(manager.notReady()).toEqual([]);
    expect(errors()).toEqual([REFUSAL, '']);
    expect(writes('configmaps')).toHaveLength(1);
    await clock.advance(70_000);
    expect(server.streams.filter(({ plural }) => plural === 'routes').length).toBeLessThan(12);
    expect(reconciled.length).toBeLessThan(3);
    expect(writes('routes')).toEqual([]);
  });

  it('is used once it is installed, reported once it is removed, and used once it is back', async () => {
    const { server, clock, errors, writes, manager } = await withRoutes();
    server.unserved.delete('routes');
    await clock.advance(30_000);
    expect(writes('routes')).toHaveLength(1);
    expect(errors()).toEqual(['', '']);
    server.unserved.add('routes');
    server.remove(ROUTE, 'shop/web');
    endWatches(server, 'routes');
    server.requests.length = 0;
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.includes('routes') && server.unserved.has('routes') ? NOT_FOUND : undefined;
    await clock.advance(60_000);
    const tries = writes('routes').length;
    expect(errors()).toEqual([REFUSAL, '']);
    expect(manager.notReady()).toEqual([]);
    await clock.advance(300_000);
    expect(writes('routes')).toHaveLength(tries);
    server.unserved.delete('routes');
    await clock.advance(30_000);
    expect(errors()).toEqual(['', '']);
    expect(server.get(ROUTE, 'shop/web')).toBeDefined();
  });

  /** The CRD is there and serves another version, so nothing is known about the objects. */
  function serveOther(server: FakeApiServer, plural: string): void {
    const crd = { spec: { versions: [{ name: 'v2', served: true }] } };
    server.intercept = ({ path }) =>
      path.includes('/customresourcedefinitions/') ? { status: 200, body: crd } : undefined;
    server.unserved.add(plural);
    endWatches(server, plural);
  }

  it('whose version is not served holds back what names it, and works without a restart', async () => {
    const { server, clock, errors, writes, manager } = await withRoutes();
    server.unserved.delete('routes');
    await clock.advance(30_000);
    serveOther(server, 'routes');
    await clock.advance(1_000);
    server.requests.length = 0;
    server.put(WIDGET, { ...server.get(WIDGET, 'shop/web')!, spec: { other: true } });
    server.remove(CONFIG_MAP, 'shop/web');
    await clock.advance(60_000);
    expect([...writes('routes'), ...writes('configmaps')]).toEqual([]);
    expect(errors()).toEqual([expect.stringContaining('Route is not served as gateway.io/v1'), '']);
    expect(manager.notReady()).toMatchObject([
      { what: 'routes.gateway.io', why: expect.stringContaining('serves v2') as string },
    ]);
    server.unserved.delete('routes');
    await clock.advance(60_000);
    expect(errors()).toEqual(['', '']);
    expect(server.get(CONFIG_MAP, 'shop/web')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });

  it('of which fields of others are set keeps nothing from starting, and holds back everything while it is doubtful', async () => {
    const { server, clock, reconciled, manager, errors } = await withRoutes(['patch']);
    expect(errors()).toEqual([REFUSAL, '']);
    server.unserved.delete('routes');
    await clock.advance(30_000);
    serveOther(server, 'routes');
    await clock.advance(1_000);
    reconciled.length = 0;
    server.put(WIDGET, { ...server.get(WIDGET, 'shop/web')!, spec: { other: true } });
    await clock.advance(5_000);
    expect(reconciled).toEqual([]);
    expect(manager.notReady()).toHaveLength(1);
    server.unserved.delete('routes');
    await clock.advance(60_000);
    expect(errors()).toEqual(['', '']);
  });

  it('holds back everything where the version of the custom resources is not served', async () => {
    const { server, clock, reconciled, manager } = await withRoutes();
    serveOther(server, 'widgets');
    await clock.advance(1_000);
    reconciled.length = 0;
    server.remove(CONFIG_MAP, 'shop/web');
    await clock.advance(60_000);
    expect(reconciled).toEqual([]);
    expect(manager.notReady()).toMatchObject([{ what: 'widgets.demo.example.com' }]);
    server.unserved.delete('widgets');
    await clock.advance(30_000);
    expect(server.get(CONFIG_MAP, 'shop/web')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });
});
