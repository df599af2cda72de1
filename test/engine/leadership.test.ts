import { describe, expect, it } from 'vitest';
import type { Controller, Found, Lookup, Reader } from '../../src/contract/controller.js';
import type { Plan } from '../../src/contract/plan.js';
import { refOf } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { ApiRequest } from '../../src/client/transport.js';
import { plan } from './support/bench.js';
import { anObject, apply, child, CONFIG_MAP, failure, MANAGER, ownedBy } from './support/builders.js';
import { STATUS_MANAGER, widget, WIDGET } from './support/builders.js';
import { leaseOf, putLease } from './support/candidates.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { startedManager } from './support/started-manager.js';
import type { StartedManager } from './support/started-manager.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const other = { holderIdentity: 'other', leaseDurationSeconds: 15 };
const released = { holderIdentity: '', leaseDurationSeconds: 1 };
const SECRETS: Lookup = {
  type: resourceType({ apiVersion: 'v1', kind: 'Secret' }),
  keep: (object) => object,
};
const CHILDREN = '/api/v1/namespaces/shop/configmaps';

interface Setup extends StartedManager {
  readonly reconciled: string[];
}

/** Manager of one controller, in an election. */
async function started(
  prepare: (server: FakeApiServer, clock: VirtualClock) => void = () => undefined,
  reconcile: (reader: Reader, key: string) => Plan = () => plan({}),
  election = true,
): Promise<Setup> {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  server.put(WIDGET, widget('web'));
  prepare(server, clock);
  const reconciled: string[] = [];
  const controller: Controller = {
    ...{ name: 'widget', kind: 'Widget', lookups: [SECRETS] },
    watches: [
      { type: WIDGET, keep: (object) => object, mapsTo: ({ metadata }) => [`shop/${metadata.name}`] },
      { type: CONFIG_MAP, mapsTo: ({ metadata }) => (metadata.name === 'child' ? ['shop/web'] : []) },
    ],
    reconcile: (key, reader) => {
      reconciled.push(key);
      return reconcile(reader, key);
    },
  };
  const stage = await startedManager({
    ...{ controllers: [controller], server, clock, freeze: false },
    ...(election && { election: { namespace: 'ops', identity: 'me' } }),
  });
  return { ...stage, reconciled };
}

/** Holds back the answer to each write but the lease's. */
const holding =
  (answer: Promise<undefined>) =>
  (server: FakeApiServer): void => {
    server.intercept = ({ method, lease }) => (method === 'PATCH' && !lease ? answer : undefined);
  };
const applying = (...names: string[]): Plan => plan({ steps: names.map((name) => apply(name)) });
const generation = (server: FakeApiServer, value: number): void => {
  server.put(WIDGET, widget('web', { generation: value }));
};

describe('A manager in an election', () => {
  it('is ready on warm standby, and works as soon as it leads on what there was and what came meanwhile', async () => {
    const { server, clock, manager, metrics, reconciled, lines } = await started((fake) => {
      putLease(fake, other);
    });
    server.put(WIDGET, widget('new'));
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
      expect.arrayContaining(['waiting for other', 'became leader']),
    );
    // Each type was listed once more, since the other one may have acted on what the watches hadn't delivered yet.
    expect(server.streams.map(({ plural }) => plural).slice(2)).toEqual(['widgets', 'configmaps']);
    expect(server.requests.filter(({ lease }) => !lease)).toHaveLength(requests);
  });

  it('applies and deletes nothing until it knows the custom resource as the one before knew it', async () => {
    // What an earlier generation renders would undo what the leader before has done for the present one.
    const { server, clock, writes } = await started(
      (fake) => {
        putLease(fake, other);
      },
      (reader) => {
        const present = reader.get(WIDGET, 'shop/web')?.metadata.generation === 2;
        const made = reader.get(CONFIG_MAP, 'shop/made');
        const remove = !present && made ? [{ object: made }] : [];
        return { ...applying(present ? 'made' : 'old'), delete: remove };
      },
    );
    // Its watch of custom resources is silent, while another leads and makes what it renders.
    server.heldBack.add('widgets');
    generation(server, 2);
    server.put(CONFIG_MAP, anObject(CONFIG_MAP, 'made', { ownerReferences: [ownedBy('web')] }));
    await clock.advance(18_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    expect(writes()).toEqual([]);
    server.openWatches('widgets');
    await settled();
    await settled();
    expect(writes()).toEqual([`PATCH ${CHILDREN}/made`]);
    expect(server.get(CONFIG_MAP, 'shop/old')).toBeUndefined();
  });

  it('puts back what was in work when it lost the lease, and begins it again only when that is over', async () => {
    const answer = Promise.withResolvers<undefined>();
    const making = (): Plan => applying('a', 'b');
    const { server, clock, reconciled, writes, metrics } = await started(holding(answer.promise), making);
    expect(writes()).toHaveLength(1);
    putLease(server, other);
    await clock.advance(2_000);
    putLease(server, released);
    server.put(WIDGET, widget('new'));
    await clock.advance(2_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    // Its first write hasn't been answered yet.
    expect(reconciled).toEqual(['shop/web']);
    answer.resolve(undefined);
    await settled();
    await settled();
    expect(new Set(reconciled.slice(1))).toEqual(new Set(['shop/web', 'shop/new']));
    for (const name of ['a', 'b']) expect(server.get(CONFIG_MAP, `shop/${name}`)).toBeDefined();
    expect(await metrics.scrape()).toContain('reconcile_errors_total{controller="widget"} 0');
  });

  it('asks again for what was looked up once it leads again, and waits for no lookup that is refused', async () => {
    const found: Found[] = [];
    const { server, clock, reconciled } = await started(
      (fake) => {
        fake.unserved.add('secrets');
        fake.intercept = ({ path }) =>
          path.endsWith('/secrets') ? failure(400, 'BadRequest', 'invalid field selector') : undefined;
      },
      (reader, key) => {
        if (key === 'shop/web') found.push(reader.find(SECRETS, { namespace: 'shop', name: 'a=b' }));
        return plan({});
      },
    );
    putLease(server, other);
    await clock.advance(3_000);
    found.length = 0;
    putLease(server, released);
    await clock.advance(3_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    // What the term before has read is no answer.
    expect(found[0]).toEqual({});
    server.put(WIDGET, widget('innocent'));
    await settled();
    expect(reconciled).toContain('shop/innocent');
  });

  // Each write of a plan in turn is the last before the process is stopped.
  it.each([
    [1, `PATCH ${CHILDREN}/a`],
    [2, `PATCH ${CHILDREN}/b`],
    [3, `DELETE ${CHILDREN}/old`],
    [4, 'PATCH /apis/demo.example.com/v1/namespaces/shop/widgets/web/status'],
    [5, 'POST /apis/events.k8s.io/v1/namespaces/shop/events'],
  ])('writes nothing after it was stopped for long, be it after its write number %i', async (count, last) => {
    const cr = widget('web');
    const old = anObject(CONFIG_MAP, 'old', { uid: 'uid-old', ownerReferences: [ownedBy('web')] });
    let left = count;
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: '102' } };
    const work = (): Plan =>
      plan({
        steps: [...applying('a', 'b').steps, { do: 'barrier' }, { do: 'prune', object }],
        status: [{ target: cr, fieldManager: STATUS_MANAGER, status: { ready: true } }],
        events: [
          {
            regarding: { ...refOf(cr), uid: 'uid-web' },
            event: { type: 'Normal', reason: 'Done', action: 'Do', note: 'Done' },
          },
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
    const never = new Promise<undefined>(() => undefined);
    const { server, clock, stop } = await started(holding(never), () => applying('a', 'b'));
    const stopping = stop();
    await clock.advance(19_999);
    expect(server.closed).toBe(false);
    await clock.advance(1);
    await stopping;
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me' });
    expect(server.closed).toBe(true);
  });

  it('renews while it finishes what is in flight, then releases the lease, and closes the transport at last', async () => {
    const answer = Promise.withResolvers<undefined>();
    const { server, clock, stop } = await started(holding(answer.promise), () => applying('a', 'b'));
    const stopping = stop();
    await clock.advance(16_000);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me', renewTime: '2026-01-01T00:00:16.000000Z' });
    answer.resolve(undefined);
    server.intercept = async ({ lease }) => {
      await settled();
      if (lease) expect(server.closed).toBe(false);
      return undefined;
    };
    await stopping;
    expect(server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
    expect(server.requests.at(-1)).toMatchObject({ lease: true, body: { spec: { holderIdentity: '' } } });
    expect(leaseOf(server)).toMatchObject(released);
    expect(server.closed).toBe(true);
  });

  it.each([
    ['in an election', true],
    ['without an election', false],
  ])(
    'applies nothing of what a restored backup has lost, %s, whichever list comes first',
    async (_, election) => {
      // The child carries the generation from which it was rendered.
      const byContent = (reader: Reader): Plan => {
        const from = String(reader.get(WIDGET, 'shop/web')?.metadata.generation);
        const object = child('child', { generation: from });
        return plan({ steps: [{ do: 'own', object, fieldManager: MANAGER, owner: ownedBy('web') }] });
      };
      const { server, clock, writes } = await started(undefined, byContent, election);
      const data = (): unknown => server.get(CONFIG_MAP, 'shop/child')?.data;
      expect(data()).toEqual({ generation: '1' });
      const restore = server.backup();
      for (const last of ['widgets', 'configmaps']) {
        generation(server, 2);
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
      generation(server, 3);
      await settled();
      expect(data()).toEqual({ generation: '3' });
    },
  );
});
