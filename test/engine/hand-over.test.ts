import { describe, expect, it } from 'vitest';
import type { ApplyStep } from '../../src/contract/controller.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { carryOut } from '../../src/engine/carry-out.js';
import { deployment, edit, newSetup, OWNER, settledSetup, step } from './support/apply-setup.js';
import { newBench, plan } from './support/bench.js';
import {
  anObject,
  applied,
  apply,
  CONFIG_MAP,
  configMap,
  DEPLOYMENT,
  fieldConflict,
  MANAGER,
  ownedBy,
  widget,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { startedRunner } from './support/started-runner.js';

const REPLICAS = 'widget-replicas';
const replicas = (count = 1): ApplyStep => ({
  object: anObject(DEPLOYMENT, 'web', {}, { spec: { replicas: count } }),
  fieldManager: REPLICAS,
  handOver: true,
});

/** The API server merges, which the fake one doesn't: the answer is the object, owned by one more. */
function merging(server: FakeApiServer): void {
  server.intercept = ({ method, query }) => {
    if (method !== 'PATCH' || query?.fieldManager !== REPLICAS) return undefined;
    const live = server.get(DEPLOYMENT, 'shop/web')!;
    const managedFields = [
      ...(live.metadata as { managedFields?: object[] }).managedFields!,
      applied(REPLICAS, { 'f:spec': { 'f:replicas': {} } }, 'apps/v1'),
    ];
    const metadata = { ...live.metadata, managedFields } as AnyObject['metadata'];
    return { status: 200, body: server.put(DEPLOYMENT, { ...live, metadata }) };
  };
}

describe('A hand-over', () => {
  it('is sent as it is planned, without hash and owner, without force, to the object that is known', async () => {
    const setup = await settledSetup();
    merging(setup.server);
    expect(await setup.apply(replicas())).toMatchObject({ action: 'configured' });
    expect(setup.last().query).toEqual({ fieldManager: REPLICAS, force: 'false' });
    const { uid } = setup.server.get(DEPLOYMENT, 'shop/web')!.metadata;
    expect(setup.last().body).toEqual({
      ...replicas().object,
      metadata: { namespace: 'shop', name: 'web', uid },
    });
  });

  it.each([
    ['nobody', undefined],
    ['somebody else', ownedBy('other')],
    ['one who is not its controller', { ...OWNER, controller: false }],
  ])('takes nothing by force of what belongs to %s', async (_, other) => {
    const setup = await settledSetup();
    edit(setup, (live) => ({
      ...live,
      metadata: { ...live.metadata, ownerReferences: other ? [other] : [] },
    }));
    setup.sync();
    await setup.apply({ ...replicas(), force: true, owner: OWNER });
    expect(setup.last().query).toEqual({ fieldManager: REPLICAS, force: 'false' });
  });

  it('sends nothing for what is not there, or is going', async () => {
    const setup = newSetup();
    expect(await setup.apply(replicas())).toMatchObject({ action: 'skipped' });
    expect(setup.server.requests).toEqual([]);
    await setup.apply();
    edit(setup, (live) => ({
      ...live,
      metadata: { ...live.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    }));
    setup.sync();
    setup.server.requests.length = 0;
    expect(await setup.apply(replicas())).toMatchObject({ action: 'skipped' });
    expect(setup.server.requests).toEqual([]);
  });

  it('is followed by an apply that lets go of the field, and that is no correction', async () => {
    const setup = await settledSetup();
    merging(setup.server);
    await setup.apply(replicas());
    const { replicas: _, ...spec } = deployment().spec as Record<string, unknown>;
    const { action } = await setup.apply(step({ ...deployment(), spec }));
    expect(action).toBe('configured');
    expect(setup.last().body.metadata.annotations).toHaveProperty([APPLIED_HASH_ANNOTATION]);
  });

  it('is tried again at once where the value has moved, with the value that it has now', async () => {
    const setup = await settledSetup();
    edit(setup, (live) => ({ ...live, status: { replicas: 7 } }));
    setup.server.intercept = ({ method }) => (method === 'PATCH' ? fieldConflict('hpa') : undefined);
    const { action, error } = await setup.apply(replicas());
    expect(action).toBe('failed');
    expect(error).toMatchObject({ reason: 'FieldConflict', retry: 'now' });
    expect(setup.reader.get(DEPLOYMENT, 'shop/web')?.status).toEqual({ replicas: 7 });
  });
});

describe('A hand-over that fails', () => {
  it('keeps its object from being applied, and no other', async () => {
    const bench = newBench(new FakeApiServer());
    const { uid, resourceVersion, ...metadata } = configMap('a', '1').metadata;
    const child = (name: string): ApplyStep => ({
      object: { ...configMap(name, '1'), metadata: { ...metadata, name } },
      fieldManager: MANAGER,
      owner: ownedBy('web'),
    });
    const old = configMap('a', '1', { ownerReferences: [ownedBy('web')] });
    bench.reader.store(CONFIG_MAP).observed(bench.server.put(CONFIG_MAP, old));
    bench.server.intercept = ({ query }) => (query?.fieldManager === REPLICAS ? fieldConflict() : undefined);
    const handOver = { object: child('a').object, fieldManager: REPLICAS, handOver: true };
    const { changes } = await carryOut(
      plan({ apply: [handOver, child('a'), child('b')] }),
      bench.reader,
      bench.tools,
      new AbortController().signal,
    );
    expect(changes.map(({ ref, action }) => `${ref.name} ${action}`)).toEqual([
      'a failed',
      'a skipped',
      'b created',
    ]);
  });
});

describe('The runner', () => {
  it('takes a key again at once where its plan asks for it, and only then', async () => {
    const { deliver, reconciled, server } = startedRunner(() =>
      plan({
        apply: [apply('a')],
        again: (changes) => changes.some(({ action }) => action === 'created'),
      }),
    );
    await deliver(widget('web'));
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
    expect(server.writes).toHaveLength(1);
    await deliver(widget('web'));
    expect(reconciled).toHaveLength(3);
  });
});
