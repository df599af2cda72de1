import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { checkOwnership, isOrphan } from '../../src/engine/steps/owner.js';
import { OWNER, deployment, newSetup, settledSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';
import { DEPLOYMENT, MANAGER, WIDGET, applied, failure, ownedBy, widget } from './support/builders.js';
import { recordedFields } from './support/recorded-fields.js';
import { wasAppliedBy } from '../../src/values/projections.js';

const ADOPT_BY = 'reconstruct.kosmos.io/adopt-by';
const EARLIER = '2026-01-01T00:00:00Z';

function updated(manager: string, fieldsV1: object, time = EARLIER): object {
  return { ...applied(manager, fieldsV1), operation: 'Update', time };
}

/** Somebody has made the Deployment, and no watch has told yet. */
function foreign(annotations?: Readonly<Record<string, string>>, entry = updated): AnyObject {
  const object = deployment();
  const metadata = {
    ...object.metadata,
    ...(annotations && { annotations }),
    creationTimestamp: EARLIER,
    managedFields: [entry('kubectl-create', recordedFields(object))],
  };
  return { ...object, metadata };
}

/** The API server as it is about what is at the place. */
const live = ({ server }: Setup): AnyObject | undefined => server.get(DEPLOYMENT, 'shop/web');

function worded(object: AnyObject): string {
  try {
    checkOwnership(object, OWNER);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it belongs to us');
}

describe('Applier, where another writer has made the object behind a watch that lags', () => {
  it.each([
    ['updating', updated],
    ['applying', (manager: string, fields: object) => applied(manager, fields)],
  ])('gives back what was made by %s, and reports whose it is', async (_, entry) => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, foreign(undefined, entry));
    const change = await setup.apply();
    expect(change).toMatchObject({
      action: 'failed',
      error: { reason: 'OwnershipConflict', retry: 'onChange' },
    });
    expect(change.error?.message).toBe(worded(foreign()));
    expect(setup.last()).toMatchObject({
      query: { fieldManager: MANAGER, force: 'false' },
      body: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'shop', uid: 'uid-web' },
      },
    });
    expect(live(setup)?.spec).toEqual(deployment().spec);
    expect(live(setup)?.metadata).toMatchObject({
      labels: { app: 'web' },
      ownerReferences: [],
      annotations: {},
    });
    // What is known is what is there now, so nothing more is sent, and nothing is ours to prune.
    expect(setup.reader.controlledBy(DEPLOYMENT, OWNER.uid)).toEqual([]);
    expect(await setup.apply()).toMatchObject({ error: { reason: 'OwnershipConflict' } });
    expect(setup.server.writes).toHaveLength(2);
  });

  it('gives back, and does not delete, what the plan dropped before it could be given back', async () => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, foreign());
    setup.server.intercept = ({ body }) =>
      (body as AnyObject).spec ? undefined : failure(503, 'ServiceUnavailable', 'later');
    expect(await setup.apply()).toMatchObject({ action: 'failed' });
    setup.server.intercept = () => undefined;
    setup.sync();
    const [taken] = setup.reader.controlledBy(DEPLOYMENT, OWNER.uid);
    expect(await setup.prune(taken!)).toMatchObject({ action: 'configured' });
    expect(live(setup)?.spec).toEqual(deployment().spec);
    expect(live(setup)?.metadata.ownerReferences).toEqual([]);
  });

  it('keeps what was handed over to it', async () => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, foreign({ [ADOPT_BY]: 'Widget/web' }));
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(live(setup)?.metadata.ownerReferences).toEqual([OWNER]);
  });
});

describe('Applier, where its own object is not known', () => {
  it('keeps what it has made itself, where only the answer was lost', async () => {
    const { server } = await settledSetup();
    const setup = newSetup(server);
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(server.writes).toHaveLength(1);
    expect(live(setup)?.metadata.ownerReferences).toEqual([OWNER]);
  });

  it.each([
    ['another intent', step(deployment(3)), []],
    [
      'an annotation of a controller',
      step(),
      [updated('deploy', { 'f:metadata': { 'f:annotations': { 'f:x': {} } } })],
    ],
    ['a status', step(), [applied('kubelet', { 'f:spec': { 'f:replicas': {} } }, 'apps/v1', 'status')]],
    [
      'a field that a controller fills in at once',
      step(),
      [updated('binder', { 'f:spec': { 'f:volume': {} } })],
    ],
  ])('keeps what it has made, with %s', async (_, again, more) => {
    const first = newSetup();
    await first.apply();
    const made = live(first)!;
    const { managedFields } = made.metadata as AnyObject['metadata'] & { managedFields: { time: string }[] };
    const metadata = {
      ...made.metadata,
      creationTimestamp: managedFields[0]!.time,
      managedFields: [...managedFields, ...more],
    };
    first.server.put(DEPLOYMENT, { ...made, metadata });
    const setup = newSetup(first.server);
    first.server.requests.length = 0;
    expect(await setup.apply(again)).toMatchObject({ action: 'configured' });
    expect(first.server.writes).toHaveLength(1);
    expect(live(setup)?.metadata.ownerReferences).toEqual([ownedBy('web')]);
  });
});

describe('an object without a controller', () => {
  const metadata = {
    ...deployment().metadata,
    annotations: { 'reconstruct.kosmos.io/applied-hash': `x ${OWNER.uid}` },
    managedFields: [applied(MANAGER, { 'f:spec': {} })],
  };
  it.each([
    ['that was applied for this owner is an orphan', {}, true],
    ['that has a controller is none', { ownerReferences: [ownedBy('other')] }, false],
    [
      'that was applied for a namesake is none',
      { annotations: { 'reconstruct.kosmos.io/applied-hash': 'x uid-earlier' } },
      false,
    ],
    [
      'that a release applied which recorded no owner is none',
      { annotations: { 'reconstruct.kosmos.io/applied-hash': 'x' } },
      false,
    ],
    ['without our annotation is none', { annotations: {} }, false],
    ['that was copied is none', { managedFields: [updated(MANAGER, { 'f:spec': {} })] }, false],
  ])('%s', (_, change, expected) => {
    const object = { ...deployment(), metadata: { ...metadata, ...change } };
    expect(isOrphan(object, OWNER, wasAppliedBy(MANAGER, object))).toBe(expected);
  });
});

/** A settled child that has gone, and whose owner is still believed to be there. */
async function vanished(owner?: string): Promise<Setup> {
  const setup = await settledSetup();
  const { server, reader } = setup;
  server.remove(WIDGET, 'shop/web');
  if (owner !== undefined)
    server.put(WIDGET, {
      ...widget('web'),
      metadata: { ...widget('web').metadata, uid: owner },
    });
  reader.store(WIDGET).observed({
    ...widget('web'),
    metadata: { ...widget('web').metadata, resourceVersion: '1' },
  });
  const live = server.get(DEPLOYMENT, 'shop/web')!;
  server.remove(DEPLOYMENT, 'shop/web');
  reader
    .store(DEPLOYMENT)
    .observedDeletion({ ...live, metadata: { ...live.metadata, resourceVersion: '900' } });
  server.requests.length = 0;
  return setup;
}

const methods = ({ server }: Setup): string[] => server.requests.map(({ method }) => method);

describe('Applier, a child that has gone', () => {
  it('is recreated once its owner was seen to be there', async () => {
    const setup = await vanished('uid-web');
    expect(await setup.apply()).toMatchObject({ action: 'created' });
    expect(methods(setup)).toEqual(['GET', 'PATCH']);
  });

  it.each([
    ['has gone too', undefined],
    ['was replaced by a namesake', 'uid-other'],
  ])('is left to the garbage collector when its owner %s, and the store knows of it', async (_, owner) => {
    const setup = await vanished(owner);
    expect(await setup.apply()).toMatchObject({
      action: 'failed',
      error: { reason: 'OwnerGone', retry: 'now' },
    });
    expect(methods(setup)).toEqual(['GET']);
    expect(setup.reader.get(WIDGET, 'shop/web')?.metadata.uid).toBe(owner);
  });

  it('is not made of a plan that was made from another generation of its owner', async () => {
    const setup = await vanished('uid-web');
    const restored = { ...widget('web'), metadata: { ...widget('web').metadata, generation: 7 } };
    setup.server.put(WIDGET, restored);
    expect(await setup.apply()).toMatchObject({
      action: 'failed',
      error: { reason: 'Conflict', retry: 'now' },
    });
    expect(methods(setup)).toEqual(['GET']);
    expect(setup.reader.get(WIDGET, 'shop/web')?.metadata.generation).toBe(7);
    expect(await setup.apply()).toMatchObject({ action: 'created' });
  });

  it('is one of many: their owners are listed once, and not read one by one', async () => {
    const setup = newSetup();
    const { server, reader } = setup;
    const names = Array.from({ length: 40 }, (_, n) => `w${n}`);
    const of = (name: string): AnyObject => ({
      ...deployment(),
      metadata: { ...deployment().metadata, name },
    });
    for (const name of names) {
      reader.store(WIDGET).observed(server.put(WIDGET, widget(name)));
      await setup.apply(step(of(name), ownedBy(name)));
    }
    for (const name of names) {
      const live = server.get(DEPLOYMENT, `shop/${name}`)!;
      server.remove(DEPLOYMENT, `shop/${name}`);
      reader.store(DEPLOYMENT).gone(`shop/${name}`, live.metadata.uid);
    }
    server.requests.length = 0;
    const items = names.map((name) => ({ metadata: widget(name).metadata }));
    server.intercept = ({ path }) =>
      path.endsWith('/widgets')
        ? { status: 200, body: { metadata: { resourceVersion: '9' }, items } }
        : undefined;
    const changes = await Promise.all(names.map((name) => setup.apply(step(of(name), ownedBy(name)))));
    expect(new Set(changes.map(({ action }) => action))).toEqual(new Set(['created']));
    const reads = methods(setup).filter((method) => method === 'GET').length;
    expect(reads).toBe(1);
  });
});
