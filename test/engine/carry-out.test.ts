import { describe, expect, it, vi } from 'vitest';
import type { ChangeSet } from '../../src/contract/change.js';
import type { ApplyStep, EventProps } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { OperatorError } from '../../src/contract/error.js';
import { refOf } from '../../src/contract/object.js';
import { carryOut } from '../../src/engine/plan/carry-out.js';
import type { PlanOutcome } from '../../src/engine/plan/carry-out.js';
import { newBench, plan } from './support/bench.js';
import {
  CONFIG_MAP,
  MANAGER,
  STATUS_MANAGER,
  WIDGET,
  configMap,
  failure,
  ownedBy,
  widget,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled } from './support/virtual-clock.js';

const NEVER = new AbortController().signal;
const EVENT: EventProps = { type: 'Warning', reason: 'Why', action: 'Reconcile', note: 'note' };
const SHARED: ApplyStep = {
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: 'b' } },
  fieldManager: MANAGER,
};
const regarding = {
  apiVersion: WIDGET.apiVersion,
  kind: 'Widget',
  namespace: 'shop',
  name: 'web',
  uid: 'uid-web',
};

function setup() {
  const bench = newBench(new FakeApiServer());
  const target = widget('web');
  bench.reader.store(WIDGET).observed(bench.server.put(WIDGET, target));
  const old = bench.server.put(CONFIG_MAP, configMap('old', '1', { ownerReferences: [ownedBy('web')] }));
  bench.reader.store(CONFIG_MAP).observed(old);
  const { uid, resourceVersion, ...metadata } = configMap('x', '1').metadata;
  const apply = (name: string): ApplyStep => ({
    object: { ...configMap(name, '1'), metadata: { ...metadata, name } },
    fieldManager: MANAGER,
    owner: ownedBy('web'),
  });
  const seen: Record<string, ChangeSet> = {};
  const work = plan({
    apply: [apply('a'), apply('b')],
    delete: [{ object: old }],
    status: [
      {
        target,
        fieldManager: STATUS_MANAGER,
        status: (changes) => (
          (seen.status = changes),
          { replicas: bench.reader.controlledBy(CONFIG_MAP, 'uid-web').length }
        ),
      },
    ],
    events: [
      { regarding, event: (changes) => ((seen.event = changes), EVENT) },
      { regarding, event: () => undefined },
    ],
  });
  return { ...bench, work, seen };
}

const actionsOf = ({ changes, statusChanges }: PlanOutcome): string[] =>
  [...changes, ...statusChanges].map(({ action }) => action);

describe('carryOut', () => {
  it('applies, then deletes, then writes the status, then sends events', async () => {
    const { work, reader, tools, server } = setup();
    const outcome = await carryOut(work, reader, tools, NEVER);
    expect(server.writes.map((write) => write.replace(/.*\/namespaces\/shop\//, ''))).toEqual([
      'configmaps/a',
      'configmaps/b',
      'configmaps/old',
      'widgets/web/status',
      'events',
    ]);
    expect(outcome.changes.map(({ action }) => action)).toEqual(['created', 'created', 'deleted']);
    expect(outcome.statusChanges.map(({ action }) => action)).toEqual(['configured']);
  });

  it('deletes nothing when an apply has failed, but goes on with the rest', async () => {
    const { work, reader, tools, server } = setup();
    server.intercept = ({ path }) => (path.endsWith('/a') ? failure(422, 'Invalid', 'no') : undefined);
    const { changes } = await carryOut(work, reader, tools, NEVER);
    expect(changes.map(({ action }) => action)).toEqual(['failed', 'created', 'skipped']);
    expect(server.get(CONFIG_MAP, 'shop/old')).toBeDefined();
    expect(server.writes.at(-1)).toContain('/events');
  });

  it('returns what was changed although an error function of the kind throws, which is a bug of it', async () => {
    const { work, reader, tools } = setup();
    const thrown = (): never => {
      throw new TypeError('no conditions');
    };
    const outcome = await carryOut({ ...work, statusError: thrown }, reader, tools, NEVER);
    expect(actionsOf(outcome)).toEqual(['created', 'created', 'deleted', 'configured']);
    expect(outcome.statusError).toMatchObject({ isBug: true, cause: expect.any(TypeError) as TypeError });
  });

  it('leaves no status in a burst that has news to send, which would be sent with each reconcile until it is written', async () => {
    const { work, reader, tools, server } = setup();
    const policy = { mayDeferStatus: () => true, isTransient: () => false };
    const outcome = await carryOut(work, reader, tools, NEVER, policy);
    expect(outcome.statusLeft).toBeUndefined();
    expect(server.writes.some((write) => write.endsWith('/status'))).toBe(true);
    const quiet = await carryOut({ ...work, events: [], delete: [] }, reader, tools, NEVER, policy);
    expect(quiet.statusLeft).toBeUndefined();
    const waiting = setup();
    const left = await carryOut(
      { ...waiting.work, events: [] },
      waiting.reader,
      waiting.tools,
      NEVER,
      policy,
    );
    expect(left.statusLeft).toBe('busy');
  });

  it.each([
    ['deletes', 'a field of what stays', true],
    ['keeps', 'the creation of what takes its place', false],
  ])('%s what is no longer asked for while %s is contested', async (_, __, isThere) => {
    const { work, reader, tools, server } = setup();
    const { applier } = tools;
    if (isThere) reader.store(CONFIG_MAP).observed(server.put(CONFIG_MAP, configMap('a', '1')));
    const real = applier.apply.bind(applier);
    const error = new OperatorError({ reason: 'FieldContested', message: 'fights', retry: 'backoff' });
    vi.spyOn(applier, 'apply').mockImplementation(async (step, from) =>
      step.object.metadata.name === 'a'
        ? { ref: refOf(step.object), action: 'failed', error }
        : real(step, from),
    );
    expect(actionsOf(await carryOut(work, reader, tools, NEVER))).toEqual([
      ...['failed', 'created', isThere ? 'deleted' : 'skipped', 'configured'],
    ]);
    expect(server.get(CONFIG_MAP, 'shop/old') === undefined).toBe(isThere);
  });

  it('goes on, and reports it in the status, when the API server gives no answer to one request', async () => {
    const { work, reader, tools, server, seen } = setup();
    server.intercept = ({ path }) =>
      path.endsWith('/a') ? Promise.reject(new Error('headers timeout')) : undefined;
    const outcome = await carryOut(work, reader, tools, NEVER);
    expect(actionsOf(outcome)).toEqual(['failed', 'created', 'skipped', 'configured']);
    expect(seen.status?.[0]).toMatchObject({ error: { reason: 'Unreachable' } });
    expect(outcome).not.toHaveProperty('givenUp');
  });
});

describe('carryOut, with a step that waits', () => {
  it('applies the others, asks at its turn, deletes nothing, and reports no failure', async () => {
    const { work, reader, tools, server } = setup();
    const readiness = { phase: 'progressing', reason: 'NotReady', message: 'not yet' } as const;
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'a' };
    const [first, second] = work.apply as [ApplyStep, ApplyStep];
    let isReady = false;
    const waitsFor = () => {
      expect(reader.get(CONFIG_MAP, 'shop/a')).toBeDefined();
      return isReady ? undefined : { ref, readiness };
    };
    const waiting = { ...work, apply: [first, { ...second, waitsFor }] };
    const outcome = await carryOut(waiting, reader, tools, NEVER);
    expect(actionsOf(outcome)).toEqual(['created', 'skipped', 'skipped', 'configured']);
    expect(outcome.changes[1]).toMatchObject({ waitsFor: { ref, readiness } });
    isReady = true;
    expect(actionsOf(await carryOut(waiting, reader, tools, NEVER))).toEqual([
      ...['unchanged', 'created', 'deleted', 'unchanged'],
    ]);
    expect(server.writes.filter((write) => write.startsWith('DELETE'))).toHaveLength(1);
  });
});

describe('carryOut, given up', () => {
  const late = new OperatorError({ reason: 'ReconcileTimeout', message: 'too long', retry: 'backoff' });

  it('stops waiting for the step that is under way, which goes on, and begins no other', async () => {
    const { work, reader, tools, server } = setup();
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    const abort = new AbortController();
    const carrying = carryOut(work, reader, tools, abort.signal);
    await settled();
    abort.abort(late);
    const outcome = await carrying;
    expect(actionsOf(outcome)).toEqual(['failed', 'skipped', 'skipped', 'skipped']);
    let ended = false;
    void outcome.pending?.then(() => (ended = true));
    await settled();
    expect(ended).toBe(false);
    answer.resolve(undefined);
    await settled();
    expect(ended).toBe(true);
    expect(server.writes).toHaveLength(1);
    expect(reader.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  });

  it('applies a shared object in the light of what became of the steps before it', async () => {
    const { reader, tools, server } = setup();
    const shared = (name: string): ApplyStep => ({
      ...SHARED,
      object: { ...SHARED.object, metadata: { name } },
    });
    const seen: ChangeSet[] = [];
    const revise = (changes: ChangeSet): AnyObject => {
      seen.push([...changes]);
      return { ...shared('c').object, data: { revised: 'yes' } };
    };
    const work = plan({
      apply: [
        shared('a'),
        { ...shared('b'), shared: { revise: () => undefined } },
        { ...shared('c'), shared: { revise } },
      ],
    });
    const outcome = await carryOut(work, reader, tools, NEVER);
    expect(actionsOf(outcome)).toEqual(['created', 'skipped', 'created']);
    expect(seen).toEqual([outcome.changes.slice(0, 2)]);
    expect(server.get(CONFIG_MAP, 'c')?.data).toEqual({ revised: 'yes' });
  });

  it.each([
    [
      'throws',
      (): AnyObject => {
        throw new TypeError('a bug of the kind');
      },
    ],
    ['gives another object', (): AnyObject => ({ ...SHARED.object, metadata: { name: 'other' } })],
  ])('fails of a shared object alone whose revise %s, and goes on', async (_, revise) => {
    const { reader, tools, server } = setup();
    const y = { ...SHARED, object: { ...SHARED.object, metadata: { name: 'y' } } };
    const outcome = await carryOut(
      plan({ apply: [{ ...SHARED, shared: { revise } }, y] }),
      reader,
      tools,
      NEVER,
    );
    expect(actionsOf(outcome)).toEqual(['failed', 'created']);
    expect(outcome.changes[0]?.error).toMatchObject({ reason: 'ReconcileFailed', isBug: true });
    expect(server.get(CONFIG_MAP, 'x')).toBeUndefined();
  });
});

describe('Twins', () => {
  const OWNER = ownedBy('web');
  const TWIN = { ...ownedBy('web', 'uid-twin'), apiVersion: 'other.example.com/v1' };
  const NEVER = new AbortController().signal;

  function step(name: string, data = '1'): ApplyStep {
    const metadata = { name, namespace: 'shop' };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value: data } };
    return { object, fieldManager: MANAGER, owner: OWNER };
  }

  function setup() {
    const bench = newBench(new FakeApiServer());
    const { server, reader, tools } = bench;
    const put = (name: string, owner = TWIN) =>
      server.put(CONFIG_MAP, configMap(name, '1', { ownerReferences: [owner] }));
    return {
      ...bench,
      put,
      known: (name: string, owner = TWIN) => {
        reader.store(CONFIG_MAP).observed(put(name, owner));
      },
      run: async (...apply: readonly ApplyStep[]) => {
        const { changes } = await carryOut(plan({ apply }), reader, tools, NEVER);
        return changes.map(({ action, error }) => error?.reason ?? action);
      },
    };
  }

  describe('a plan of which an object belongs to one of the same kind and name in another group', () => {
    it('makes nothing, not even what comes before that object', async () => {
      const { run, known, server } = setup();
      known('b');

      expect(await run(step('a'), step('b'), step('c'))).toEqual(['skipped', 'OwnershipConflict', 'skipped']);
      expect(server.requests).toEqual([]);
    });
  });
});
