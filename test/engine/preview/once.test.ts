import { describe, expect, it } from 'vitest';
import type { Controller, Reader } from '../../../src/contract/controller.js';
import type { OwnStep, Plan, Step } from '../../../src/contract/plan.js';
import { objectKey } from '../../../src/contract/object.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { carryOutOnce } from '../../../src/engine/plan/once.js';
import type { OnceProps } from '../../../src/engine/plan/once.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/client/transport.js';
import { anObject, CONFIG_MAP, failure, MANAGER, ownedBy, WIDGET, widget } from '../support/builders.js';

const cr = widget('web');

/** As much of an API server as one turn sees. */
class Server implements Transport {
  readonly host = 'api.test';
  readonly writes: string[] = [];
  intercept: (req: ApiRequest) => ApiResponse | undefined = () => undefined;
  private readonly objects = new Map<string, AnyObject>();
  private version = 10;

  constructor(objects: readonly AnyObject[] = []) {
    for (const object of objects) this.put(object);
  }

  put(object: AnyObject): AnyObject {
    const known = this.objects.get(object.metadata.name);
    const metadata = { uid: `uid-${object.metadata.name}`, ...known?.metadata, ...object.metadata };
    const stored = { ...object, metadata: { ...metadata, resourceVersion: String(++this.version) } };
    this.objects.set(object.metadata.name, stored);
    return stored;
  }

  remove(name: string): void {
    this.version++;
    this.objects.delete(name);
  }

  request(req: ApiRequest): Promise<ApiResponse> {
    if (req.method !== 'GET') this.writes.push(`${req.method} ${req.path.split('/').at(-1) ?? ''}`);
    return Promise.resolve(this.intercept(req) ?? this.answer(req));
  }

  stream(): Promise<never> {
    return Promise.reject(new Error('nothing is watched here'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  private answer({ method, path, body }: ApiRequest): ApiResponse {
    if (path.endsWith('/configmaps')) {
      return {
        status: 200,
        body: { metadata: { resourceVersion: String(this.version) }, items: [...this.objects.values()] },
      };
    }
    const name = path.split('/').at(-1) ?? '';
    const known = this.objects.get(name);
    if (method === 'PATCH') return { status: known ? 200 : 201, body: this.put(body as AnyObject) };
    if (!known) return failure(404, 'NotFound', `"${name}" not found`);
    if (method === 'DELETE') this.remove(name);
    return { status: 200, body: method === 'DELETE' ? { kind: 'Status' } : known };
  }
}

const map = (name: string): AnyObject => anObject(CONFIG_MAP, name, {}, { data: { a: '1' } });
const owned = (name: string): AnyObject => ({
  ...map(name),
  metadata: { ...map(name).metadata, ownerReferences: [ownedBy('web')] },
});
const step = (object: AnyObject): OwnStep => ({
  ...({ do: 'own', object, fieldManager: MANAGER } as const),
  owner: ownedBy('web'),
});

/** Makes these, and deletes whatever else the custom resource owns. */
function making(names: readonly string[], more: Partial<Plan> = {}): Controller {
  const mapsTo = ({ metadata }: AnyObject): string[] => [objectKey(metadata.namespace, metadata.name)];
  const reconcile = (_: string, reader: Reader): Plan => ({
    steps: [
      ...names.map((name) => step(map(name))),
      { do: 'barrier' },
      ...reader
        .controlledBy(CONFIG_MAP, cr.metadata.uid ?? '')
        .filter(({ metadata }) => !names.includes(metadata.name))
        .map((object): Step => ({ do: 'prune', object })),
    ],
    ...{ conclude: () => ({ status: [], events: [] }), ...more },
  });
  const watches = [WIDGET, CONFIG_MAP].map((type) => ({ type, mapsTo }));
  return { name: 'widget', kind: 'Widget', watches, reconcile };
}

async function once(server: Server, controller: Controller, props: Partial<OnceProps> = {}) {
  const pauses: number[] = [];
  const outcome = await carryOutOnce(cr, {
    ...{ controller, transport: server, prune: true, now: () => new Date() },
    pause: (tries) => {
      pauses.push(tries);
      return Promise.resolve(tries < 4);
    },
    ...props,
  });
  return { ...outcome, pauses, did: outcome.changes.map(({ ref, action }) => `${action} ${ref.name}`) };
}

describe('One turn', () => {
  it('applies what is planned, deletes what is not made any more, and writes no status', async () => {
    const server = new Server([owned('old')]);
    const { did, kept } = await once(server, making(['a', 'b']));
    expect(did).toEqual(['created a', 'created b', 'deleted old']);
    expect(kept).toEqual([]);
    expect(server.writes).toEqual(['PATCH a', 'PATCH b', 'DELETE old']);
  });

  it('deletes nothing, and goes on with the others, where something belongs to another writer', async () => {
    const server = new Server([map('a'), owned('old')]);
    const { did, changes, pauses } = await once(server, making(['a', 'b']));
    expect(did).toEqual(['failed a', 'created b', 'skipped old']);
    expect(changes[0]?.error?.reason).toBe('OwnershipConflict');
    expect(pauses).toEqual([]);
  });

  it('tries again what may pass by itself, and tells what has come of it in the end', async () => {
    const going = {
      ...owned('a'),
      metadata: { ...owned('a').metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    };
    const server = new Server([going]);
    const { did, pauses } = await once(server, making(['a', 'b']), {
      pause: (tries) => {
        if (tries === 2) server.remove('a');
        return Promise.resolve(tries < 5);
      },
    });
    expect(did).toEqual(['created a', 'created b']);
    expect(pauses).toEqual([]);
  });

  describe('of which an object waits', () => {
    const conditionsOf = (phase: string) => ({
      conditions: [{ type: phase, status: 'True', message: 'not yet' }],
    });
    /** The second waits for the first, whose status says this whenever it is written. */
    function waiting(phase: string) {
      const server = new Server();
      server.intercept = ({ method, path, body }) => {
        if (method !== 'PATCH' || !path.endsWith('/a')) return undefined;
        return { status: 201, body: server.put({ ...(body as AnyObject), status: conditionsOf(phase) }) };
      };
      const steps = [step(map('a')), { ...step(map('b')), waitsFor: [map('a')] }];
      return { server, controller: making(['a', 'b'], { steps }) };
    }

    it('ends, and says for what, unless it is to go on until nothing waits', async () => {
      const { server, controller } = waiting('Reconciling');
      const { did, changes, pauses } = await once(server, controller);
      expect(did).toEqual(['created a', 'skipped b']);
      expect(changes[1]).toMatchObject({
        waitsFor: { ref: { name: 'a' }, readiness: { phase: 'progressing' } },
      });
      expect(pauses).toEqual([]);

      const passing = waiting('Reconciling');
      const waits: number[] = [];
      const pause = (tries: number): Promise<boolean> => {
        waits.push(tries);
        if (tries === 2) passing.server.put({ ...map('a'), status: {} });
        return Promise.resolve(true);
      };
      const outcome = await once(passing.server, passing.controller, { waits: true, pause });
      expect([outcome.did, waits]).toEqual([
        ['created a', 'created b'],
        [1, 2],
      ]);
    });

    it('ends once it would wait in vain, or for too long', async () => {
      const stalled = waiting('Stalled');
      const vain = await once(stalled.server, stalled.controller, { waits: true });
      expect([vain.did, vain.pauses]).toEqual([['created a', 'skipped b'], []]);
      const slow = waiting('Reconciling');
      const late = await once(slow.server, slow.controller, { waits: true });
      expect([late.did, late.pauses]).toEqual([
        ['created a', 'skipped b'],
        [1, 2, 3, 4],
      ]);
    });
  });
});
