import { describe, expect, it } from 'vitest';
import type { Change, ChangeSet } from '../../src/contract/change.js';
import type { OwnStep, StatusWrite, Plan } from '../../src/contract/plan.js';
import type { OperatorError } from '../../src/contract/error.js';
import type { AnyObject, FieldsV1 } from '../../src/contract/object.js';
import { Fights, Memory } from '../../src/engine/steps/memory.js';
import type { FieldPath } from '../../src/engine/steps/managed-fields.js';
import { Observer } from '../../src/engine/preview/observe.js';
import { handlersOf } from '../../src/engine/plan/interpret.js';
import { writeStatus } from '../../src/engine/steps/apply.js';
import { deployment, newSetup, putOwner, settledSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';
import { plan } from './support/bench.js';
import { applied, DEPLOYMENT, MANAGER, recordingLogger } from './support/builders.js';
import { STATUS_MANAGER, WIDGET, widget } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';
import { isAppliedBy, managedFieldsOf } from '../../src/values/projections.js';

const REPLICAS = ['f:spec', 'f:replicas'];
const CONTAINER = ['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"web"}'];

const setOf = (path: FieldPath): FieldsV1 =>
  path.reduceRight<FieldsV1>((below, segment) => ({ [segment]: below }), {});

const withoutSubtree = (fields: FieldsV1, [segment = '', ...rest]: FieldPath): FieldsV1 => {
  const { [segment]: child, ...others } = fields;
  return rest.length === 0 || !child ? others : { ...others, [segment]: withoutSubtree(child, rest) };
};

/** Another manager changes fields of ours, as the API server records it. */
function take(setup: Setup, manager: string, paths: readonly FieldPath[], operation = 'Update'): void {
  const live = setup.server.get(DEPLOYMENT, 'shop/web')!;
  const theirs = paths.map((path) => ({ ...applied(manager, setOf(path), 'apps/v1'), operation }));
  const ours = managedFieldsOf(live).map((entry) =>
    isAppliedBy(MANAGER, entry)
      ? { ...entry, fieldsV1: paths.reduce<FieldsV1>(withoutSubtree, entry.fieldsV1 ?? {}) }
      : entry,
  );
  const metadata = { ...live.metadata, managedFields: [...ours, ...theirs] } as AnyObject['metadata'];
  setup.server.put(DEPLOYMENT, { ...live, metadata });
  setup.sync();
}

/** Another manager changes a field of ours, which is then put right, so many times. */
async function fight(setup: Setup, rounds: number): Promise<Change[]> {
  const changes: Change[] = [];
  for (let round = 0; round < rounds; round++) {
    take(setup, 'rival', [REPLICAS]);
    changes.push(await setup.apply());
  }
  return changes;
}

const writes = (setup: Setup): number => setup.server.writes.length;

/** An observer that leaves drift, and what it logs. */
function observed({ hand, server }: Setup) {
  const lines: LogLine[] = [];
  const { clock, metrics, reader, writer, signal, stopping } = hand;
  const own = { clock, metrics, memory: new Memory(clock), log: recordingLogger(lines) };
  const observer = new Observer({ ...own, transport: server, controller: 'widget', drift: 'warn' });
  const observe = (what: Plan) => observer.observe(what, reader, handlersOf(), { writer, signal, stopping });
  return { observe, lines };
}

describe('Applier, drift', () => {
  it('tells who changed what', async () => {
    const setup = await settledSetup();
    take(setup, 'kubectl-edit', [REPLICAS, [...CONTAINER, 'f:image']]);
    expect(await setup.apply()).toMatchObject({
      action: 'corrected',
      drift: {
        managers: ['kubectl-edit'],
        fields: ['.spec.replicas', '.spec.template.spec.containers[name="web"].image'],
      },
    });
  });

  it.each(['correct', 'warn', 'ignore'] as const)(
    'is no edit back to what this process applied before another one led, with drift: %s',
    async (drift) => {
      const setup = await settledSetup();
      const other = newSetup(setup.server);
      other.sync();
      await other.apply(step(deployment(2)));
      setup.sync();
      expect(await setup.apply({ ...step(), drift })).toMatchObject({ action: 'configured' });
      expect(setup.server.get(DEPLOYMENT, 'shop/web')?.spec).toMatchObject({ replicas: 1 });
    },
  );

  it('is no edit that follows a restored backup', async () => {
    const setup = await settledSetup();
    const backup = setup.server.get(DEPLOYMENT, 'shop/web')!;
    await setup.apply(step(deployment(2)));
    setup.server.put(DEPLOYMENT, backup);
    setup.sync();
    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    expect(await setup.apply({ ...step(deployment(2)), drift: 'warn' })).toMatchObject({
      action: 'configured',
    });
  });

  it('is no drift when our own intent has changed', async () => {
    const setup = await settledSetup();
    take(setup, 'kubectl-edit', [REPLICAS]);
    const change = await setup.apply(step(deployment(3)));
    expect(change.action).toBe('configured');
    expect(change).not.toHaveProperty('drift');
  });
});

describe('Applier, drift that is left', () => {
  const warn: OwnStep = { ...step(), drift: 'warn' };
  const requests = ({ server }: Setup): string[] =>
    server.requests.splice(0).map(({ method, query }) => `${method}${query?.dryRun ? ' dry run' : ''}`);

  it('is named by a dry run, once, and reported for as long as it lasts', async () => {
    const setup = await settledSetup();
    take(setup, 'rival', [REPLICAS]);
    requests(setup);
    const drifted = {
      action: 'drifted',
      drift: { managers: ['rival'], fields: ['.spec.replicas'] },
    };
    expect(await setup.apply(warn)).toMatchObject(drifted);
    expect(requests(setup)).toEqual(['GET', 'PATCH dry run']);
    expect(await setup.apply(warn)).toMatchObject({ ...drifted, isKnown: true });
    expect(requests(setup)).toEqual([]);

    take(setup, 'editor', [[...CONTAINER, 'f:image']]);
    expect(await setup.apply(warn)).toMatchObject({
      drift: { fields: ['.spec.replicas', '.spec.template.spec.containers[name="web"].image'] },
    });
    requests(setup);
    expect(await setup.apply()).toMatchObject({ action: 'corrected' });
    expect(await setup.apply(warn)).toMatchObject({ action: 'unchanged' });
    expect(requests(setup)).toEqual(['PATCH']);
  });

  it('is left without a request and a word, where it is ignored', async () => {
    const setup = await settledSetup();
    take(setup, 'rival', [REPLICAS]);
    requests(setup);
    expect(await setup.apply({ ...step(), drift: 'ignore' })).toMatchObject({ action: 'unchanged' });
    expect(requests(setup)).toEqual([]);
  });

  it('is in the status that an observer expects, so it announces no write of one that says so', async () => {
    const setup = await settledSetup();
    const { reader, server, clock, hand } = setup;
    reader.store(WIDGET).observed(server.put(WIDGET, widget('web')));
    const status = (changes: ChangeSet): StatusWrite => ({
      ...{ target: widget('web'), fieldManager: STATUS_MANAGER },
      status: { drift: changes.map(({ drift }) => drift?.fields) },
    });
    take(setup, 'rival', [REPLICAS]);
    // By the operator beside it.
    const beside = { ...hand, memory: new Memory(clock) };
    expect(await writeStatus(status([await setup.apply(warn)]), beside)).toMatchObject({
      action: 'configured',
    });
    const { observe, lines } = observed(setup);
    const conclude = (changes: ChangeSet) => ({ status: [status(changes)], events: [] });
    await observe(plan({ steps: [step()], conclude }));
    expect(lines.map(({ message }) => message)).toEqual([]);
  });

  it('is no edit that an observer sees, however often, and nothing of its dry run is kept', async () => {
    const setup = await settledSetup();
    const { reader, server } = setup;
    reader.store(WIDGET).observed(server.put(WIDGET, widget('web')));
    const before = reader.store(DEPLOYMENT).get('shop/web');
    const actions: string[] = [];
    const conclude = (changes: ChangeSet) => {
      actions.push(...changes.map(({ action }) => action));
      return { status: [], events: [] };
    };
    const { observe, lines } = observed(setup);
    const other = step({ ...deployment(), metadata: { ...deployment().metadata, name: 'other' } });
    for (let round = 0; round < 3; round++)
      await observe(plan({ steps: [step(deployment(2)), other], conclude }));
    expect(lines.map(({ message }) => message)).toEqual([
      'Deployment shop/web would be changed',
      'Deployment shop/other would be created',
    ]);
    expect(new Set(actions)).toEqual(new Set(['unchanged']));
    expect(reader.store(DEPLOYMENT).get('shop/web')).toBe(before);
    expect(reader.store(DEPLOYMENT).get('shop/other')).toBeUndefined();
  });

  it('gives way to an edit, also where the hash was removed, and to a deletion', async () => {
    const setup = await settledSetup();
    take(setup, 'rival', [REPLICAS]);
    const live = setup.server.get(DEPLOYMENT, 'shop/web')!;
    setup.server.put(DEPLOYMENT, { ...live, metadata: { ...live.metadata, annotations: {} } });
    setup.sync();
    await setup.apply({ ...warn, object: deployment(3) });
    expect(setup.server.get(DEPLOYMENT, 'shop/web')?.spec).toMatchObject({ replicas: 3 });
    putOwner(setup);
    setup.server.remove(DEPLOYMENT, 'shop/web');
    setup.reader.store(DEPLOYMENT).gone('shop/web');
    expect(await setup.apply(warn)).toMatchObject({ action: 'created' });
  });

  it('is none where the API server records something else than was sent', async () => {
    const setup = await settledSetup();
    const restarted = newSetup(setup.server);
    const live = setup.server.get(DEPLOYMENT, 'shop/web')!;
    // As of an empty value that it drops.
    const entries = managedFieldsOf(live).map((entry) => ({
      ...entry,
      fieldsV1: withoutSubtree(entry.fieldsV1 ?? {}, REPLICAS),
    }));
    setup.server.put(DEPLOYMENT, {
      ...live,
      metadata: { ...live.metadata, managedFields: entries } as AnyObject['metadata'],
    });
    restarted.sync();
    setup.server.intercept = ({ query }) =>
      query?.dryRun ? { status: 200, body: setup.server.get(DEPLOYMENT, 'shop/web') } : undefined;
    expect(await restarted.apply(warn)).toMatchObject({ action: 'unchanged' });
    requests(setup);
    expect(await restarted.apply(warn)).toMatchObject({ action: 'unchanged' });
    expect(requests(setup)).toEqual([]);
  });
});

describe('Applier, fights', () => {
  it('puts right what is changed five times, and then waits', async () => {
    const setup = await settledSetup();
    const changes = await fight(setup, 10);
    expect(changes.map(({ action }) => action)).toEqual([
      ...Array.from({ length: 4 }, () => 'corrected'),
      ...Array.from({ length: 6 }, () => 'failed'),
    ]);
    expect(writes(setup)).toBe(5);
    const [first, ...others] = changes.slice(4).map(({ error }) => error);
    expect(first).toMatchObject({
      reason: 'FieldContested',
      retry: 'backoff',
      retryAfterMilliseconds: 10_000,
    });
    expect(first?.message).toContain('Deployment shop/web: rival keeps changing .spec.replicas');
    for (const other of others) expect(other?.message).toBe(first?.message);
  });

  it('corrects the field when the pause is over, and is at peace when no one changes it again', async () => {
    const setup = await settledSetup();
    await fight(setup, 6);
    setup.clock.jump(10_000);
    expect(await setup.apply()).toMatchObject({ error: { reason: 'FieldContested' } });
    expect(writes(setup)).toBe(6);
    expect(setup.server.get(DEPLOYMENT, 'shop/web')?.spec).toMatchObject({ replicas: 1 });
    expect(await setup.apply()).toMatchObject({
      error: { reason: 'FieldContested', retryAfterMilliseconds: 10_000 },
    });
    setup.clock.jump(10_000);
    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    expect(writes(setup)).toBe(6);
  });

  it('creates what another writer deletes five times, and then waits; not what we have deleted, nor another intent', async () => {
    const setup = await settledSetup();
    const { server, reader } = setup;
    putOwner(setup);
    const remove = (): void => {
      const { uid } = server.get(DEPLOYMENT, 'shop/web')!.metadata;
      server.remove(DEPLOYMENT, 'shop/web');
      reader.store(DEPLOYMENT).gone('shop/web', uid);
    };
    for (let round = 0; round < 10; round++) {
      await setup.prune(server.get(DEPLOYMENT, 'shop/web')!);
      expect(await setup.apply()).toMatchObject({ action: 'created' });
    }
    const actions: string[] = [];
    for (let round = 0; round < 4; round++) {
      remove();
      actions.push((await setup.apply()).action);
    }
    expect(actions).toEqual(['created', 'created', 'created', 'created']);
    remove();
    const error = { reason: 'FieldContested', retry: 'backoff', retryAfterMilliseconds: 10_000 };
    expect(await setup.apply()).toMatchObject({ action: 'failed', error });
    remove();
    const { error: waiting } = await setup.apply();
    expect(waiting).toMatchObject(error);
    expect(waiting?.message).toContain('Deployment shop/web: another writer keeps deleting it');
    expect(server.get(DEPLOYMENT, 'shop/web')).toBeUndefined();
    expect(await setup.apply(step(deployment(2)))).toMatchObject({ action: 'created' });
  });

  it('brakes a writer that deletes thousands of objects in turn, as it does for one', () => {
    const fights = new Fights(new VirtualClock());
    const created = (id: string): string | undefined => {
      try {
        fights.wasCreated(id, deployment(), 'h');
      } catch (error) {
        return (error as OperatorError).reason;
      }
      return undefined;
    };
    const ids = Array.from({ length: 5_000 }, (_, n) => `shop/web-${n}`);
    const rounds = Array.from({ length: 6 }, () => new Set(ids.map(created)));
    expect(rounds.map((reasons) => [...reasons])).toEqual([
      ...Array<unknown>(5).fill([undefined]),
      ['FieldContested'],
    ]);
  });

  it('brakes a duel with another process that applies another intent with the same field manager', async () => {
    const setup = await settledSetup();
    const other = newSetup(setup.server);
    for (let round = 0; round < 20; round++) {
      other.sync();
      await other.apply(step(deployment(2)));
      setup.sync();
      await setup.apply();
    }
    expect(await setup.apply()).toMatchObject({ error: { reason: 'FieldContested' } });
    expect(writes(setup)).toBeLessThanOrEqual(2 * 6);
  });

  it('takes no return to an earlier intent for a correction, also where the server records the one between otherwise', async () => {
    const setup = await settledSetup();
    // The server owns no `value` to an empty string.
    const between = step(deployment(1, { env: [{ name: 'A', value: '' }] }));
    setup.server.intercept = ({ body, ...request }) => {
      setup.server.intercept = () => undefined;
      return setup.server.request({
        ...request,
        body: JSON.parse(JSON.stringify(body).replace(',"value":""', '')),
      });
    };
    expect(await setup.apply(between)).toMatchObject({ action: 'configured' });
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
  });

  it('sends at most a write per five minutes in a fight that goes on for two hours', async () => {
    const setup = await settledSetup();
    for (let second = 0; second < 7_200; second += 10) {
      await fight(setup, 1);
      setup.clock.jump(10_000);
    }
    expect(writes(setup)).toBeLessThan(5 + 6 + 7_200 / 300);
  });
});
