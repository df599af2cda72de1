import { describe, expect, it, onTestFinished } from 'vitest';
import type { Controller, Plan } from '../../src/contract/controller.js';
import { Manager } from '../../src/engine/manager.js';
import type { ManagerProps } from '../../src/engine/manager.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  CONFIG_MAP,
  configMap,
  MANAGER,
  ownedBy,
  recordingLogger,
  widget,
  WIDGET,
} from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { ScriptedStream } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';
import type { AnyObject } from '../../src/contract/object.js';
import { eventually } from '../../src/testing/eventually.js';

interface Setup {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
  readonly manager: Manager;
  readonly metrics: Metrics;
  readonly reconciled: string[];
  readonly stop: () => Promise<void>;
  readonly stopped: () => boolean;
}

function controller(
  name: string,
  types: (typeof CONFIG_MAP)[],
  reconcile: (key: string) => Plan,
): Controller {
  const watches = types.map((type) => ({
    type,
    mapsTo: ({ metadata }: AnyObject) =>
      type === types[0] ? [`${metadata.namespace ?? ''}/${metadata.name}`] : [],
  }));
  return { name, kind: 'Widget', watches, reconcile };
}

async function started(
  prepare: (server: FakeApiServer) => void = () => undefined,
  props: Partial<ManagerProps> = {},
  reconcile: (key: string) => Plan = () => plan({}),
): Promise<Setup> {
  const server = new FakeApiServer();
  server.put(WIDGET, widget('web') as unknown as AnyObject);
  prepare(server);
  const clock = new VirtualClock();
  const reconciled: string[] = [];
  const metrics = new Metrics();
  const lines: LogLine[] = [];
  const manager = new Manager({
    controllers: [
      controller('widget', [WIDGET, CONFIG_MAP], (key) => {
        reconciled.push(key);
        return reconcile(key);
      }),
    ],
    transport: server,
    log: recordingLogger(lines),
    metrics,
    instance: 'pod-1',
    clock,
    random: () => 0,
    freeze: true,
    ...props,
  });
  const controllerOfRun = new AbortController();
  let ended = false;
  const running = manager.run(controllerOfRun.signal).then(() => (ended = true));
  const stop = async (): Promise<void> => {
    controllerOfRun.abort();
    await running;
  };
  onTestFinished(stop);
  await settled();
  await settled();
  return { server, clock, manager, metrics, reconciled, stop, stopped: () => ended };
}

describe('Manager', () => {
  it('reconciles what is there when it starts, and what comes later', async () => {
    const { server, reconciled } = await started();
    expect(reconciled).toEqual(['shop/web']);
    server.put(WIDGET, widget('new') as unknown as AnyObject);
    await settled();
    expect(reconciled).toEqual(['shop/web', 'shop/new']);
  });

  it('takes keys again as soon as the kind that they lacked is installed again', async () => {
    let served = true;
    const apply = (name: string): Plan['apply'] => {
      const { uid, resourceVersion, ...metadata } = configMap(name, '1').metadata;
      return [
        { object: { ...configMap(name, '1'), metadata }, fieldManager: MANAGER, owner: ownedBy('web') },
      ];
    };
    const { server, clock, reconciled } = await started(
      (fake) => {
        fake.put(WIDGET, widget('fine') as unknown as AnyObject);
        fake.intercept = ({ path }) =>
          !served && path.includes('configmaps') ? { status: 404, body: '404 page not found\n' } : undefined;
        const open = fake.stream.bind(fake);
        fake.stream = async (request) => {
          const missing = !served && request.path.includes('configmaps');
          const chunks = new ScriptedStream(request).send('404 page not found\n').end().chunks();
          return missing ? { status: 404, chunks } : open(request);
        };
      },
      {},
      (key) => plan(key === 'shop/web' ? { apply: apply('a') } : {}),
    );
    await clock.advance(1_000);
    served = false;
    server.remove(CONFIG_MAP, 'shop/a');
    for (const { plural, stream } of server.streams) if (plural === 'configmaps') stream.end();
    server.put(WIDGET, widget('web') as unknown as AnyObject);
    // By then the pause is longer than it takes the watch to find the kind again.
    await clock.advance(400_000);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
    reconciled.length = 0;

    served = true;
    await clock.advance(30_000);

    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
    expect(reconciled).not.toContain('shop/fine');
  });

  it('looks at all keys of a controller again when it is asked to, behind what somebody waits for', async () => {
    const done: string[] = [];
    const note = (name: string) => (key: string) => {
      done.push(`${name} ${key}`);
      return plan({});
    };
    const controllers = ['one', 'two'].map((name) => controller(name, [WIDGET, CONFIG_MAP], note(name)));
    const names = Array.from({ length: 40 }, (_, n) => `w${n}`);
    const { manager, server } = await started(
      (fake) => {
        for (const name of names) fake.put(WIDGET, widget(name) as unknown as AnyObject);
      },
      { controllers, workers: 1 },
    );
    await eventually(() => {
      expect(done).toHaveLength(82);
    });
    done.length = 0;

    manager.lookAgain('one');
    manager.lookAgain('nobody');
    server.put(WIDGET, widget('new') as unknown as AnyObject);

    await eventually(() => {
      expect(done).toHaveLength(43);
    });
    expect(new Set(done)).toEqual(
      new Set([...['web', 'new', ...names].map((name) => `one shop/${name}`), 'two shop/new']),
    );
    expect(done.indexOf('one shop/new')).toBeLessThan(41);
    expect(server.requests).toEqual([]);
  });

  it('watches the namespaces that it is told, each by itself, and names what is missing', async () => {
    const { server, manager, reconciled } = await started(
      (fake) => {
        fake.heldBack.add('configmaps');
        fake.put(WIDGET, widget('far', { namespace: 'far' }) as unknown as AnyObject);
      },
      { namespaces: ['shop', 'blog'] },
    );
    expect(server.streams.map(({ plural, namespace }) => `${plural} ${namespace ?? ''}`).sort()).toEqual([
      'configmaps blog',
      'configmaps shop',
      'widgets blog',
      'widgets shop',
    ]);
    expect(manager.notReady().map(({ what }) => what)).toEqual(['configmaps in shop', 'configmaps in blog']);
    server.openWatches('configmaps');
    await settled();
    await settled();
    expect(reconciled).toEqual(['shop/web']);
  });

  it('says why a watch does not start', async () => {
    const { manager } = await started((fake) => {
      fake.stream = () => Promise.reject(new Error('connect ECONNREFUSED'));
    });
    // The others wait for it.
    expect(manager.notReady()).toEqual([{ what: 'widgets.demo.example.com', why: 'connect ECONNREFUSED' }]);
  });

  it('creates a child, and makes no further request once all is settled', async () => {
    const { uid, resourceVersion, ...metadata } = configMap('child', '1').metadata;
    const object = { ...configMap('child', '1'), metadata };
    const { server, reconciled, clock } = await started(undefined, {}, () =>
      plan({ apply: [{ object, fieldManager: MANAGER, owner: ownedBy('web') }] }),
    );
    expect(server.writes).toEqual(['PATCH /api/v1/namespaces/shop/configmaps/child']);
    server.put(WIDGET, widget('web') as unknown as AnyObject);
    await clock.advance(60_000);
    expect(reconciled.length).toBeGreaterThan(1);
    expect(server.requests).toHaveLength(1);
  });

  it('finishes what is in flight when it stops, then closes watches and transport', async () => {
    const { uid, resourceVersion, ...metadata } = configMap('child', '1').metadata;
    const object = { ...configMap('child', '1'), metadata };
    const gate = Promise.withResolvers<undefined>();
    const { server, stop, stopped } = await started(
      (fake) => (fake.intercept = () => gate.promise),
      {},
      () => plan({ apply: [{ object, fieldManager: MANAGER, owner: ownedBy('web') }] }),
    );
    const stopping = stop();
    await settled();
    expect(stopped()).toBe(false);
    expect(server.closed).toBe(false);
    expect(server.streams.every(({ stream }) => stream.closed)).toBe(false);
    gate.resolve(undefined);
    await stopping;
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
    expect(server.streams.every(({ stream }) => stream.closed)).toBe(true);
    expect(server.closed).toBe(true);
  });

  it('sends the events that wait before it closes the transport', async () => {
    const event = { type: 'Normal', reason: 'Done', action: 'Reconcile', note: 'done' } as const;
    const regarding = { apiVersion: 'v1', kind: 'Widget', namespace: 'shop', uid: 'u' };
    const both = ['a', 'b'].map((name) => ({ regarding: { ...regarding, name }, event: () => event }));
    const answer = Promise.withResolvers<undefined>();
    const { server, stop } = await started(
      (fake) => (fake.intercept = () => answer.promise),
      {},
      () => plan({ events: both }),
    );
    const stopping = stop();
    await settled();
    expect(server.closed).toBe(false);
    answer.resolve(undefined);
    await stopping;
    expect(server.writes).toHaveLength(2);
  });

  it('keeps a refused write for as long as the API server asks, whatever happens, and nothing else', async () => {
    const { apiVersion, kind, metadata } = configMap('child', '');
    const object = { apiVersion, kind, metadata: { name: metadata.name, namespace: 'shop' } };
    let overloaded = true;
    const { server, clock, manager, reconciled } = await started(
      (fake) => {
        fake.intercept = ({ method }) =>
          overloaded && method === 'PATCH'
            ? { status: 429, body: { kind: 'Status' }, retryAfterSeconds: 30 }
            : undefined;
      },
      {},
      () =>
        plan({
          apply: [{ object, fieldManager: MANAGER, owner: ownedBy('web') }],
          status: [{ target: widget('web'), fieldManager: 'widget-status', status: () => ({}) }],
        }),
    );
    // The child, and the status that says so.
    const writes = server.writes.length;
    expect(writes).toBe(2);
    for (const { stream } of server.streams) stream.break();
    await clock.advance(29_000);
    manager.lookAgain('test');
    await clock.advance(900);
    expect(server.writes.length).toBe(writes);
    expect(server.streams.length).toBe(4);
    // Whatever it is taken for, it isn't taken again and again.
    expect(reconciled.length).toBeLessThan(10);
    overloaded = false;
    await clock.advance(7_000);
    expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });

  it('takes what failed again as soon as an API server is ready that was used before it was', async () => {
    const { apiVersion, kind, metadata } = configMap('child', '');
    const object = { apiVersion, kind, metadata: { name: metadata.name, namespace: 'shop' } };
    let server: 'well' | 'away' | 'starting' = 'well';
    const {
      server: fake,
      clock,
      manager,
    } = await started(
      (one) => {
        one.intercept = ({ method, path }) => {
          if (server === 'away') return Promise.reject(new Error('connect ECONNREFUSED'));
          const fails = server === 'starting' && (path === '/readyz' || method === 'PATCH');
          if (fails) return { status: 500, body: { kind: 'Status', message: 'not ready' } };
          return path === '/readyz' ? { status: 200, body: 'ok' } : undefined;
        };
      },
      {},
      () => plan({ apply: [{ object, fieldManager: MANAGER, owner: ownedBy('web') }] }),
    );
    fake.remove(CONFIG_MAP, 'shop/child');
    server = 'away';
    manager.lookAgain('widget');
    await clock.advance(10_000);
    server = 'starting';
    // A minute until requests are sent, and some more until the pause of the key is long.
    await clock.advance(400_000);
    expect(fake.get(CONFIG_MAP, 'shop/child')).toBeUndefined();
    server = 'well';
    await clock.advance(6_000);
    expect(fake.get(CONFIG_MAP, 'shop/child')).toBeDefined();
  });

  it('says why it has no lists yet while the API server is out of reach', async () => {
    const { server, clock, manager } = await started((fake) => {
      fake.stream = () => Promise.reject(new Error('connect ECONNREFUSED'));
      fake.intercept = () => Promise.reject(new Error('connect ECONNREFUSED'));
    });
    await clock.advance(60_000);
    expect(manager.notReady().map(({ why }) => why)).toEqual(['the API server is unreachable']);
    expect(new Set(server.requests.map(({ path }) => path))).toEqual(new Set(['/readyz']));
  });

  it('counts objects, requests and waiting keys when somebody asks', async () => {
    const { metrics } = await started();
    const text = await metrics.scrape();
    expect(text).toContain('reconstruct_store_objects{type="Widget.demo.example.com"} 1');
    expect(text).toContain('reconstruct_store_objects{type="ConfigMap"} 0');
    expect(text).toContain('rest_client_requests_total{code="200",method="GET",host="api.test:443"} 2');
    expect(text).toContain('workqueue_depth{name="widget",controller="widget",priority="change"} 0');
  });
});
