import { writeStatus } from '../../src/engine/steps/apply.js';
import { statusOrError } from '../../src/values/origin.js';
import { describe, expect, it } from 'vitest';
import type { Change } from '../../src/contract/change.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { newBench, plan } from './support/bench.js';
import type { Bench } from './support/bench.js';
import {
  STATUS_MANAGER,
  WIDGET,
  applied,
  apply,
  child,
  failure,
  ownedBy,
  widget,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { recordedFields } from './support/recorded-fields.js';
import type { Plan, StatusWrite } from '../../src/contract/plan.js';
import { startedRunner } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';

const READY = { type: 'Ready', status: 'True', reason: 'Available', message: 'all is well' };
const STATUS = { observedGeneration: 1, replicas: 1, conditions: [READY] };

interface Setup extends Bench {
  readonly write: (status: StatusWrite['status']) => Promise<Change>;
  /** Somebody else writes the status; `owned` is what is left to us. */
  readonly edit: (status: object, owned: object) => void;
}

function setup(): Setup {
  const bench = newBench(new FakeApiServer());
  const { server, reader, hand } = bench;
  const target = widget('web');
  reader.store(WIDGET).observed(server.put(WIDGET, target));
  return {
    ...bench,
    write: (status) => writeStatus({ target, fieldManager: STATUS_MANAGER, status }, hand),
    edit: (status, owned) => {
      const live = server.get(WIDGET, 'shop/web')!;
      const fieldsV1 = recordedFields({ metadata: {}, status: owned });
      const managedFields = [applied(STATUS_MANAGER, fieldsV1, 'demo/v1', 'status')];
      const metadata = { ...live.metadata, managedFields };
      reader.store(WIDGET).observed(server.put(WIDGET, { ...live, metadata, status }));
    },
  };
}

async function written(status: object = STATUS): Promise<Setup> {
  const made = setup();
  await made.write(status);
  made.server.requests.length = 0;
  return made;
}

describe('A status', () => {
  it('applies the status by force, under its own name, to the object that is meant', async () => {
    const { server, write } = setup();
    expect(await write(STATUS)).toMatchObject({ action: 'configured' });
    expect(server.requests).toMatchObject([
      {
        method: 'PATCH',
        path: '/apis/demo.example.com/v1/namespaces/shop/widgets/web/status',
        query: { fieldManager: STATUS_MANAGER, force: 'true' },
        body: {
          kind: 'Widget',
          metadata: { namespace: 'shop', name: 'web', uid: 'uid-web' },
          status: STATUS,
        },
      },
    ]);
    expect((server.requests[0]?.body as AnyObject).spec).toBeUndefined();
  });

  it.each([
    ['a value', { ...STATUS, replicas: 2 }],
    ['a new field', { ...STATUS, readyReplicas: 1 }],
    ['a field that is gone', { observedGeneration: 1, conditions: [READY] }],
    ['a condition', { ...STATUS, conditions: [{ ...READY, status: 'False' }] }],
    ['a new condition', { ...STATUS, conditions: [READY, { ...READY, type: 'Stalled' }] }],
    ['a condition that is gone', { ...STATUS, conditions: [] }],
  ])('writes %s', async (_, status) => {
    const { server, write } = await written();
    expect(await write(status)).toMatchObject({ action: 'configured' });
    expect(await write(status)).toMatchObject({ action: 'unchanged' });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['changed', { ...STATUS, replicas: 9 }, { observedGeneration: 1, conditions: [READY] }],
    ['wiped', {}, {}],
    ['changed under our name', { ...STATUS, replicas: 9 }, STATUS],
  ])('puts right what others have %s', async (_, status, owned) => {
    const { write, edit, server } = await written();
    edit(status, owned);
    expect(await write(STATUS)).toMatchObject({ action: 'configured' });
    expect(server.get(WIDGET, 'shop/web')?.status).toEqual(STATUS);
  });

  // An atomic list is owned as a whole, so our entry stays the same when it shrinks: only its value tells.
  it.each([
    ['is emptied', [{ port: 80 }], []],
    ['shrinks, with items of different types', [{ type: 'a' }, { type: 'b' }], [{ type: 'a' }]],
    ['has an item that loses a field', [{ port: 80, error: 'taken' }], [{ port: 80 }]],
  ])('writes an atomic list that %s', async (_, before, after) => {
    const { write } = await written({ claims: before });
    expect(await write({ claims: after })).toMatchObject({ action: 'configured' });
  });

  it.each([
    ['grows', [{ port: 80 }], [{ port: 80 }, { port: 81 }]],
    ['changes its order', [{ port: 80 }, { port: 81 }], [{ port: 81 }, { port: 80 }]],
  ])('writes an atomic list that %s', async (_, before, after) => {
    const { write } = await written({ claims: before });
    expect(await write({ claims: after })).toMatchObject({ action: 'configured' });
  });

  it('does not write to a successor of the one that is meant, nor where there is none', async () => {
    const { write, reader, server } = setup();
    reader.store(WIDGET).observed(widget('web', { uid: 'new', resourceVersion: '900' }));
    expect(await write(STATUS)).toMatchObject({ action: 'skipped' });
    reader.store(WIDGET).gone('shop/web');
    expect(await write(STATUS)).toMatchObject({ action: 'skipped' });
    expect(server.requests).toEqual([]);
  });

  it.each([
    ['is gone', failure(404, 'NotFound', 'widgets "web" not found')],
    ['is another one', failure(409, 'Conflict', 'uid mismatch')],
  ])('lets it be when the object %s by the time the server looks', async (_, answer) => {
    const { write, server, reader } = setup();
    server.intercept = ({ method }) => (method === 'PATCH' ? answer : undefined);
    server.remove(WIDGET, 'shop/web');
    expect(await write(STATUS)).toMatchObject({ action: 'skipped' });
    // The watch may have missed it, and nothing is to be made for what is gone.
    expect(reader.get(WIDGET, 'shop/web')).toBeUndefined();
  });

  it('fails with the error for which there is no status, and no request', async () => {
    const { write, server } = setup();
    const status = statusOrError({ ...WIDGET, name: 'web' }, () => {
      throw new TypeError('cr.spec.ports is undefined');
    });
    const change = await write(status);
    expect(change).toMatchObject({ action: 'failed', error: { reason: 'StatusFailed', retry: 'backoff' } });
    expect(change.error?.message).toContain('cr.spec.ports is undefined');
    expect(server.requests).toEqual([]);
  });
});

describe('Deferred', () => {
  const COUNT = 30;
  const names = Array.from({ length: COUNT }, (_, index) => `w${index}`);

  /** A child each, and a status that says so. */
  function planFor(key: string, parts: Partial<Plan> = {}): Plan {
    const name = key.replace('shop/', '');
    const target: CustomResource = widget(name);
    return plan({
      steps: [{ ...apply(name), owner: ownedBy(name) }],
      status: [{ target, fieldManager: STATUS_MANAGER, status: { phase: 'Made' } }],
      ...parts,
    });
  }

  /** All of them at once, one worker, and a server that takes 20 ms for each write. */
  async function burst(
    reconcile: (key: string) => Plan,
    answer: FakeApiServer['intercept'] = () => undefined,
  ): Promise<StartedRunner> {
    const setup = startedRunner(reconcile, 1);
    const { server, clock, runner } = setup;
    server.intercept = async (request) => {
      await new Promise<void>((resolve) => clock.setTimer(20, resolve));
      return answer(request);
    };
    runner.queue.hold('test');
    for (const name of names) await setup.deliver(widget(name));
    runner.queue.release('test');
    await clock.advance(5_000);
    return setup;
  }

  const kindsOf = ({ server }: StartedRunner): string[] =>
    server.requests
      .filter(({ method }) => method === 'PATCH')
      .map(({ path }) => (path.endsWith('/status') ? 'status' : 'child'));

  describe('Runner, in a burst', () => {
    it('makes the children first, gives each status its turn, and writes each once', async () => {
      const kinds = kindsOf(await burst((key) => planFor(key)));
      expect(kinds.filter((kind) => kind === 'child')).toHaveLength(COUNT);
      expect(kinds.filter((kind) => kind === 'status')).toHaveLength(COUNT);
      const statusesBefore = kinds.slice(0, kinds.lastIndexOf('child')).filter((kind) => kind === 'status');
      expect(statusesBefore.length).toBeGreaterThan(0);
      // Every sixteenth key.
      expect(statusesBefore.length).toBeLessThanOrEqual(2);
    });

    it('tells at once that a child was refused', async () => {
      const setup = await burst(
        (key) => planFor(key),
        ({ method, path }) =>
          method === 'PATCH' && path.endsWith('/w0') ? failure(422, 'Invalid', 'no') : undefined,
      );
      expect(kindsOf(setup).slice(0, 2)).toEqual(['child', 'status']);
    });
  });

  describe('Runner, while a custom resource is edited', () => {
    /** A server that takes 20 ms for each write, and this many edits, one each 10 ms. */
    async function edited(edits: number): Promise<StartedRunner> {
      const setup = startedRunner((_, count) => {
        const edit = `${count}`;
        return plan({
          steps: [{ ...apply('w0'), object: child('w0', { edit }), owner: ownedBy('w0') }],
          status: [{ target: widget('w0'), fieldManager: STATUS_MANAGER, status: { edit } }],
        });
      });
      const { server, clock, deliver } = setup;
      server.intercept = async () => {
        await new Promise<void>((resolve) => clock.setTimer(20, resolve));
        return undefined;
      };
      for (let generation = 1; generation <= edits; generation++) {
        const { metadata, ...rest } = widget('w0');
        await deliver({ ...rest, metadata: { ...metadata, generation } });
        await clock.advance(10);
      }
      await clock.advance(100);
      return setup;
    }

    it('applies the edit before it writes a status, which is that of the edit', async () => {
      expect(kindsOf(await edited(2))).toEqual(['child', 'child', 'status']);
    });

    it('writes a status now and then if that goes on', async () => {
      const kinds = kindsOf(await edited(100));
      const statuses = kinds.filter((kind) => kind === 'status').length;
      expect(statuses).toBeGreaterThan(4);
      expect(statuses).toBeLessThan(kinds.length / 4);
    });
  });
});
