import { describe, expect, it, onTestFinished } from 'vitest';
import type { Controller, Plan, Reader } from '../../src/contract/controller.js';
import { refOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { sleep } from '../../src/engine/clock.js';
import { Manager } from '../../src/engine/manager.js';
import type { ApiRequest } from '../../src/engine/transport.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  anObject,
  CONFIG_MAP,
  configMap,
  failure,
  MANAGER,
  ownedBy,
  recordingLogger,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { leaseOf, putLease } from './support/candidates.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const GADGET = resourceType({ apiVersion: 'demo.example.com/v1', kind: 'Gadget' });
const other = { holderIdentity: 'other', leaseDurationSeconds: 15 };

interface Setup {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
  readonly manager: Manager;
  readonly metrics: Metrics;
  readonly lines: LogLine[];
  readonly reconciled: string[];
  /** Writes other than the lease's. */
  readonly writes: () => string[];
  readonly stop: () => Promise<void>;
}

/** A manager of one controller, in an election. */
async function started(
  prepare: (server: FakeApiServer, clock: VirtualClock) => void = () => undefined,
  reconcile: (key: string, reader: Reader) => Plan = () => plan({}),
  election = true,
): Promise<Setup> {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  server.put(WIDGET, widget('web') as unknown as AnyObject);
  prepare(server, clock);
  const reconciled: string[] = [];
  const lines: LogLine[] = [];
  const metrics = new Metrics();
  const controller: Controller = {
    ...{ name: 'widget', kind: 'Widget' },
    watches: [
      { type: WIDGET, keep: (object) => object, mapsTo: ({ metadata }) => [`shop/${metadata.name}`] },
      { type: CONFIG_MAP, mapsTo: ({ metadata }) => (metadata.name === 'child' ? ['shop/web'] : []) },
      ...(server.unserved.has('gadgets') ? [{ type: GADGET, optional: true, mapsTo: () => [] }] : []),
    ],
    reconcile: (key, reader) => {
      reconciled.push(key);
      return reconcile(key, reader);
    },
  };
  const manager = new Manager({
    ...{ controllers: [controller], transport: server, metrics, clock, instance: 'pod-1', random: () => 0 },
    log: recordingLogger(lines),
    ...(election && { election: { namespace: 'ops', identity: 'me' } }),
  });
  const stopping = new AbortController();
  const running = manager.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
  };
  onTestFinished(async () => {
    server.intercept = () => undefined;
    await stop();
  });
  await settled();
  await settled();
  const writes = (): string[] =>
    server.requests
      .filter(({ method, lease }) => method !== 'GET' && !lease)
      .map(({ method, path }) => `${method} ${path}`);
  return { server, clock, manager, metrics, lines, reconciled, writes, stop };
}

const childOf = (name: string): AnyObject => {
  const { uid, resourceVersion, ...metadata } = configMap(name, '1').metadata;
  return { ...configMap(name, '1'), metadata };
};

const applying = (...names: string[]): Plan['apply'] =>
  names.map((name) => ({ object: childOf(name), fieldManager: MANAGER, owner: ownedBy('web') }));

describe('A manager in an election', () => {
  it('is ready on warm standby, and works as soon as it leads on what there was and what came meanwhile', async () => {
    const { server, clock, manager, metrics, reconciled, lines } = await started((fake) => {
      putLease(fake, other);
    });
    server.put(WIDGET, widget('new') as unknown as AnyObject);
    await clock.advance(14_000);
    expect(manager.notReady()).toEqual([]);
    expect(reconciled).toEqual([]);
    const depths = await metrics.scrape();
    expect(depths).toMatch(/workqueue_depth\{.*priority="initial"\} 1/);
    expect(depths).toMatch(/workqueue_depth\{.*priority="change"\} 1/);
    const requests = server.requests.filter(({ lease }) => !lease).length;
    expect(server.streams).toHaveLength(2);
    await clock.advance(1_000);
    await settled();
    expect(reconciled).toEqual(['shop/new', 'shop/web']);
    expect(lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['Waiting for other', 'Became leader']),
    );
    // Each type was listed once more, since the other one may have acted on what the watches hadn't told yet.
    expect(server.streams.map(({ plural }) => plural).slice(2)).toEqual(['widgets', 'configmaps']);
    expect(server.requests.filter(({ lease }) => !lease)).toHaveLength(requests);
  });

  it('lists nothing twice where it leads at once, and nothing where it regains what nobody else had', async () => {
    const { server, clock, reconciled } = await started((fake, virtual) => {
      putLease(fake, { holderIdentity: '', leaseDurationSeconds: 1 });
      fake.intercept = async ({ lease }) => {
        if (lease) await sleep(virtual, 10, new AbortController().signal);
        return undefined;
      };
    });
    await clock.advance(20);
    expect(reconciled).toEqual(['shop/web']);
    expect(server.streams).toHaveLength(2);
    server.intercept = ({ lease }) => (lease ? failure(500, 'InternalError', 'no') : undefined);
    await clock.advance(11_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    server.put(WIDGET, widget('new') as unknown as AnyObject);
    await clock.advance(2_000);
    expect(reconciled).toEqual(['shop/web']);
    server.intercept = () => undefined;
    await clock.advance(2_000);
    expect(reconciled).toContain('shop/new');
    expect(server.streams).toHaveLength(2);
  });

  it('lists anew where somebody may have had the lease for a moment', async () => {
    const { server, clock } = await started();
    putLease(server, other);
    putLease(server, { holderIdentity: '', leaseDurationSeconds: 1 });
    await clock.advance(2_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    expect(server.streams).toHaveLength(4);
  });

  /** What an earlier generation renders would undo what the leader before has done for the present one. */
  const byGeneration = (_key: string, reader: Reader): Plan => {
    const present = reader.get(WIDGET, 'shop/web')?.metadata.generation === 2;
    const made = reader.get(CONFIG_MAP, 'shop/made');
    return plan({
      apply: applying(present ? 'made' : 'old'),
      delete: !present && made ? [{ object: made }] : [],
    });
  };

  /** A standby whose watch of custom resources tells nothing, while another leads and makes what it renders. */
  const behind = async (): Promise<Setup> => {
    const setup = await started((fake) => {
      putLease(fake, other);
    }, byGeneration);
    const { server } = setup;
    server.heldBack.add('widgets');
    server.put(WIDGET, widget('web', { generation: 2 }) as unknown as AnyObject);
    const made = childOf('made');
    server.put(CONFIG_MAP, { ...made, metadata: { ...made.metadata, ownerReferences: [ownedBy('web')] } });
    return setup;
  };

  it('applies and deletes nothing until it knows the custom resource as the one before knew it', async () => {
    const { server, clock, writes } = await behind();
    await clock.advance(15_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    await clock.advance(3_000);
    expect(writes()).toEqual([]);
    server.openWatches('widgets');
    await settled();
    await settled();
    expect(writes()).toEqual(['PATCH /api/v1/namespaces/shop/configmaps/made']);
    expect(server.get(CONFIG_MAP, 'shop/old')).toBeUndefined();
  });

  it('works on nothing after it has lost the lease, and on all of it once it has regained it', async () => {
    const { server, clock, reconciled } = await started();
    expect(reconciled).toEqual(['shop/web']);
    putLease(server, other);
    await clock.advance(2_000);
    for (const name of ['web', 'one', 'two', 'one']) server.put(WIDGET, widget(name) as unknown as AnyObject);
    await clock.advance(10_000);
    expect(reconciled).toEqual(['shop/web']);
    putLease(server, { holderIdentity: '', leaseDurationSeconds: 1 });
    await clock.advance(2_000);
    expect(reconciled).toEqual(['shop/web', 'shop/web', 'shop/one', 'shop/two']);
  });

  it('puts back what was in work when it lost the lease, and begins it again only when that is over', async () => {
    const answer = Promise.withResolvers<undefined>();
    const { server, clock, reconciled, writes, metrics } = await started(
      (fake) => {
        fake.intercept = ({ method, lease }) => (method === 'PATCH' && !lease ? answer.promise : undefined);
      },
      () => plan({ apply: applying('a', 'b') }),
    );
    expect(writes()).toHaveLength(1);
    putLease(server, other);
    await clock.advance(2_000);
    putLease(server, { holderIdentity: '', leaseDurationSeconds: 1 });
    server.put(WIDGET, widget('new') as unknown as AnyObject);
    await clock.advance(2_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    // Its first write hasn't been answered yet.
    expect(reconciled).toEqual(['shop/web']);
    answer.resolve(undefined);
    await settled();
    await settled();
    expect(new Set(reconciled.slice(1))).toEqual(new Set(['shop/web', 'shop/new']));
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
    expect(server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
    expect(await metrics.scrape()).toContain(
      'controller_runtime_reconcile_errors_total{controller="widget"} 0',
    );
  });

  // Each write of a plan in turn is the last before the process is stopped.
  it.each([
    [1, 'PATCH /api/v1/namespaces/shop/configmaps/a'],
    [2, 'PATCH /api/v1/namespaces/shop/configmaps/b'],
    [3, 'DELETE /api/v1/namespaces/shop/configmaps/old'],
    [4, 'PATCH /apis/demo.example.com/v1/namespaces/shop/widgets/web/status'],
    [5, 'POST /apis/events.k8s.io/v1/namespaces/shop/events'],
  ])('writes nothing after it was stopped for long, be it after its write number %i', async (count, last) => {
    const cr = widget('web');
    const regarding = { ...refOf(cr), uid: 'uid-web' };
    const old = anObject(CONFIG_MAP, 'old', { uid: 'uid-old', ownerReferences: [ownedBy('web')] });
    let left = count;
    const work = (): Plan =>
      plan({
        apply: applying('a', 'b'),
        delete: [{ object: { ...old, metadata: { ...old.metadata, resourceVersion: '102' } } }],
        status: [{ target: cr, fieldManager: STATUS_MANAGER, status: () => ({ ready: true }) }],
        events: [
          { regarding, event: () => ({ type: 'Normal', reason: 'Done', action: 'Do', note: 'Done' }) },
        ],
      });
    const stopAfter = (server: FakeApiServer, clock: VirtualClock) => (request: ApiRequest) => {
      if (request.method === 'GET' || request.lease || --left !== 0) return undefined;
      // Between the write and its answer, while another one takes over.
      clock.stopFor(30_000);
      putLease(server, other);
      return undefined;
    };
    const { clock, writes, metrics } = await started((fake, virtual) => {
      fake.put(CONFIG_MAP, old);
      fake.intercept = stopAfter(fake, virtual);
    }, work);
    await clock.advance(10_000);
    expect(writes()).toHaveLength(count);
    expect(writes().at(-1)).toBe(last);
    if (count < 5) expect(await metrics.scrape()).toMatch(/reconstruct_fenced_writes_total [1-9]/);
  });

  it('gives up after 20 s what does not finish, and lets the lease run out, since it may yet take effect', async () => {
    const { server, clock, stop } = await started(
      (fake) => {
        const never = new Promise<undefined>(() => undefined);
        fake.intercept = ({ method, lease }) => (method === 'PATCH' && !lease ? never : undefined);
      },
      () => plan({ apply: applying('a', 'b') }),
    );
    const stopping = stop();
    await clock.advance(19_999);
    expect(server.closed).toBe(false);
    await clock.advance(1);
    await stopping;
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    expect(server.closed).toBe(true);
  });

  it('renews while it finishes what is in flight, then gives the lease back, and closes the transport at last', async () => {
    const answer = Promise.withResolvers<undefined>();
    const { server, clock, stop } = await started(
      (fake) => {
        fake.intercept = ({ method, lease }) => (method === 'PATCH' && !lease ? answer.promise : undefined);
      },
      () => plan({ apply: applying('a', 'b') }),
    );
    const stopping = stop();
    await clock.advance(16_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me', renewTime: '2026-01-01T00:00:16.000000Z' });
    answer.resolve(undefined);
    const released = Promise.withResolvers<undefined>();
    server.intercept = async ({ lease }) => {
      if (lease) {
        await settled();
        expect(server.closed).toBe(false);
        released.resolve(undefined);
      }
      return undefined;
    };
    await stopping;
    await released.promise;
    expect(server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
    expect(server.requests.at(-1)).toMatchObject({ lease: true, body: { spec: { holderIdentity: '' } } });
    expect(leaseOf(server)).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    expect(server.closed).toBe(true);
  });

  /** The child says which generation it was rendered from. */
  const byContent = (_key: string, reader: Reader): Plan => {
    const owner = reader.get(WIDGET, 'shop/web');
    const data = { generation: String(owner?.metadata.generation) };
    const object = { ...childOf('child'), data };
    return plan({ apply: [{ object, fieldManager: MANAGER, owner: ownedBy('web') }] });
  };

  it.each([
    ['in an election', true],
    ['without an election', false],
  ])(
    'applies nothing of what a restored backup has lost, %s, whichever list comes first',
    async (_, election) => {
      const first = widget('web', { generation: 1 }) as unknown as AnyObject;
      const setup = await started((fake) => void fake.put(WIDGET, first), byContent, election);
      const { server, clock, writes } = setup;
      const data = (): unknown => server.get(CONFIG_MAP, 'shop/child')?.data;
      expect(data()).toEqual({ generation: '1' });
      const restore = server.backup();
      for (const last of ['widgets', 'configmaps']) {
        server.put(WIDGET, { ...first, metadata: { ...first.metadata, generation: 2 } });
        await settled();
        expect(data()).toEqual({ generation: '2' });
        const before = writes().length;
        server.heldBack.add(last);
        restore();
        await clock.advance(5_000);
        server.openWatches(last);
        await clock.advance(5_000);
        expect(data()).toEqual({ generation: '1' });
        expect(writes().slice(before)).toEqual([]);
      }
      server.put(WIDGET, { ...first, metadata: { ...first.metadata, generation: 3 } });
      await settled();
      expect(data()).toEqual({ generation: '3' });
    },
  );

  it.each(['widgets', 'configmaps'])(
    'deletes nothing that a restored backup has brought back, where %s are listed last, and lists each type once more',
    async (last) => {
      const first = widget('web', { generation: 1 }) as unknown as AnyObject;
      const setup = await started(
        (fake) => void fake.put(WIDGET, first),
        (_key, reader) => {
          const made = reader.get(CONFIG_MAP, 'shop/child');
          if (reader.get(WIDGET, 'shop/web')?.metadata.generation !== 2)
            return plan({ apply: applying('child') });
          return plan({ delete: made ? [{ object: made }] : [] });
        },
      );
      const { server, clock, writes } = setup;
      const restore = server.backup();
      server.put(WIDGET, { ...first, metadata: { ...first.metadata, generation: 2 } });
      await settled();
      await settled();
      expect(server.get(CONFIG_MAP, 'shop/child')).toBeUndefined();
      const before = { writes: writes().length, streams: server.streams.length };
      server.heldBack.add(last);
      restore();
      await clock.advance(5_000);
      server.openWatches(last);
      await clock.advance(5_000);
      expect(server.get(CONFIG_MAP, 'shop/child')).toBeDefined();
      expect(writes().slice(before.writes)).toEqual([]);
      // The first list, and one of each type for what may have changed since.
      expect(server.streams.length - before.streams).toBeLessThanOrEqual(4);
    },
  );

  it('works on nothing that it knew before a backup was restored, where it loses the lease and regains it meanwhile', async () => {
    const first = widget('web', { generation: 1 }) as unknown as AnyObject;
    const setup = await started((fake) => void fake.put(WIDGET, first), byContent);
    const { server, clock, writes } = setup;
    const restore = server.backup();
    server.put(WIDGET, { ...first, metadata: { ...first.metadata, generation: 2 } });
    await settled();
    const before = writes().length;
    server.heldBack.add('widgets');
    restore();
    await clock.advance(5_000);
    server.intercept = ({ lease }) => (lease ? failure(500, 'InternalError', 'no') : undefined);
    await clock.advance(13_000);
    server.intercept = () => undefined;
    await clock.advance(4_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    expect(writes().slice(before)).toEqual([]);
    server.openWatches('widgets');
    await clock.advance(5_000);
    expect(writes().slice(before)).toEqual([]);
    expect(server.get(CONFIG_MAP, 'shop/child')?.data).toEqual({ generation: '1' });
  });
});
