import { describe, expect, it } from 'vitest';
import { APPLY } from '../../src/client/api.js';
import { touches } from '../../src/engine/steps/managed-fields.js';
import { REFUSAL_MILLISECONDS } from '../../src/client/retry.js';
import {
  deployment,
  edit,
  newSetup,
  OWNER,
  settledSetup,
  shared,
  step,
  putOwner,
} from './support/apply-setup.js';
import {
  applied,
  DEPLOYMENT,
  failure,
  fieldConflict,
  MANAGER,
  ownedBy,
  WIDGET,
  widget,
} from './support/builders.js';
import { recordedFields } from './support/recorded-fields.js';
import type { FieldsV1, ManagedFieldsEntry } from '../../src/contract/object.js';

describe('Applier', () => {
  it('creates what is missing, with its owner and its hash, and without force', async () => {
    const { apply, server, last } = newSetup();
    expect(await apply()).toEqual({
      ref: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' },
      action: 'created',
    });
    expect(last().query).toEqual({ fieldManager: MANAGER, force: 'false' });
    expect(last().body.metadata).toEqual({
      namespace: 'shop',
      name: 'web',
      labels: { app: 'web' },
      annotations: {
        'reconstruct.kosmos.io/applied-hash': expect.stringMatching(/^[0-9a-f]{32} uid-web$/) as unknown,
      },
      ownerReferences: [OWNER],
    });
    expect(server.writes).toHaveLength(1);
  });

  it('sends nothing for what it has applied', async () => {
    const { apply, server } = await settledSetup();
    expect(await apply()).toMatchObject({ action: 'unchanged' });
    expect(server.requests).toEqual([]);
  });

  it('sends nothing for what an earlier process has applied', async () => {
    const { server } = await settledSetup();
    const restarted = newSetup(server);
    restarted.sync();
    expect(await restarted.apply()).toMatchObject({ action: 'unchanged' });
    expect(server.requests).toEqual([]);
  });

  it('applies another intent by force, with the UID of the object that it knows', async () => {
    const { apply, last } = await settledSetup();
    expect(await apply(step(deployment(3)))).toMatchObject({ action: 'configured' });
    expect(last().query.force).toBe('true');
    expect(last().body.metadata.uid).toBe('uid-web');
    expect(await apply(step(deployment(3)))).toMatchObject({ action: 'unchanged' });
  });

  it('corrects what another writer took from us', async () => {
    const setup = await settledSetup();
    const owned = recordedFields(setup.server.get(DEPLOYMENT, 'shop/web')!) as { 'f:spec': object };
    const { 'f:spec': spec, ...others } = owned;
    const { 'f:replicas': replicas, ...rest } = spec as Record<string, object>;
    edit(setup, (live) => ({ ...live, spec: { ...(live.spec as object), replicas: 9 } }), {
      ...others,
      'f:spec': rest,
    });
    expect(await setup.apply()).toMatchObject({
      action: 'corrected',
      drift: { managers: [], fields: ['.spec.replicas'] },
    });
    expect(setup.server.get(DEPLOYMENT, 'shop/web')?.spec).toMatchObject({ replicas: 1 });
    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    expect(setup.server.writes).toHaveLength(1);
  });

  it('leaves alone what others add', async () => {
    const setup = await settledSetup();
    edit(setup, (live) => ({
      ...live,
      metadata: { ...live.metadata, labels: { ...live.metadata.labels, x: 'y' } },
      status: { replicas: 1 },
    }));
    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    expect(setup.server.requests).toEqual([]);
  });
});

describe('Applier, ownership', () => {
  it('looks before it creates something while changes are not delivered, and touches no other’s', async () => {
    const { server, reader, apply } = newSetup();
    reader.store(DEPLOYMENT).setFollowed(undefined, false);
    server.put(DEPLOYMENT, deployment());
    const change = await apply();
    expect(change).toMatchObject({ action: 'failed', error: { reason: 'OwnershipConflict' } });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
  });

  it('makes anew what a deleted namesake has left behind', async () => {
    const { server, reader, apply } = newSetup();
    server.put(WIDGET, widget('web', { uid: OWNER.uid }));
    const leftover = {
      ...deployment().metadata,
      uid: 'uid-leftover',
      ownerReferences: [ownedBy('web', 'uid-old')],
    };
    reader.store(DEPLOYMENT).observed(server.put(DEPLOYMENT, { ...deployment(), metadata: leftover }));
    expect(await apply()).toMatchObject({ action: 'created' });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'DELETE', 'PATCH']);
    expect(server.get(DEPLOYMENT, 'shop/web')?.metadata.ownerReferences).toEqual([OWNER]);
  });

  it('does not take a successor’s object for a leftover when its own view is old', async () => {
    const { server, reader, apply } = newSetup();
    server.put(WIDGET, widget('web', { uid: 'uid-new' }));
    const metadata = { ...deployment().metadata, ownerReferences: [ownedBy('web', 'uid-new')] };
    reader.store(DEPLOYMENT).observed(server.put(DEPLOYMENT, { ...deployment(), metadata }));
    expect(await apply()).toMatchObject({
      action: 'failed',
      error: { reason: 'WaitingForGarbageCollection' },
    });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
  });

  it.each([
    [
      'has no owner',
      [],
      'OwnershipConflict',
      'give "reconstruct adopt widget web -n shop" or annotate the object with reconstruct.kosmos.io/adopt-by=Widget/web',
    ],
    ['belongs to somebody else', [ownedBy('other')], 'OwnershipConflict', 'controlled by Widget other'],
    [
      'only has the owner among its owners',
      [{ ...OWNER, controller: false }],
      'OwnershipConflict',
      'has no owner',
    ],
    [
      'is left over from a namesake, and has another owner',
      [ownedBy('web', 'uid-old'), { ...ownedBy('other'), controller: false }],
      'WaitingForGarbageCollection',
      'earlier Widget web',
    ],
    [
      'belongs to a kind of the same name in another group',
      [{ ...ownedBy('web', 'uid-x'), apiVersion: 'other.io/v1' }],
      'OwnershipConflict',
      'controlled by',
    ],
  ])('does not touch what %s', async (_, ownerReferences, reason, message) => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, {
      ...deployment(),
      metadata: { ...deployment().metadata, ownerReferences },
    });
    setup.sync();
    const change = await setup.apply();
    expect(change).toMatchObject({ action: 'failed', error: { reason } });
    expect(change.error?.message).toContain(message);
    expect(setup.server.requests).toEqual([]);
  });

  it('takes over what was handed over to it, by force', async () => {
    const setup = newSetup();
    const annotations = { 'reconstruct.kosmos.io/adopt-by': 'Widget/web' };
    const path = ['f:metadata', 'f:annotations', 'f:reconstruct.kosmos.io/adopt-by'];
    const offer = path.reduceRight<FieldsV1>((inner, segment) => ({ [segment]: inner }), {});
    const managedFields = [
      applied('kubectl-create', { 'f:spec': { 'f:paused': {} } }, 'apps/v1'),
      applied('kubectl-annotate', offer, 'apps/v1'),
    ];
    const metadata = { ...deployment().metadata, annotations, managedFields };
    setup.server.put(DEPLOYMENT, { ...deployment(), metadata });
    setup.sync();
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(setup.last().query.force).toBe('true');
    expect(setup.server.get(DEPLOYMENT, 'shop/web')?.metadata.ownerReferences).toEqual([OWNER]);
    // The apply that doesn't name the offer removes it, since no one else owns it.
    const [read, write, apply, ...more] = setup.server.requests;
    expect([read?.method, apply?.method, more]).toEqual(['GET', 'PATCH', []]);
    const record = (write?.body as { value: ManagedFieldsEntry[] }[])[1]!.value;
    const owners = record.filter(({ fieldsV1 = {} }) => touches(fieldsV1, path));
    expect(owners).toMatchObject([{ manager: MANAGER, operation: 'Apply' }]);
  });

  it('reports no drift where it takes over what was refused before', async () => {
    const setup = newSetup();
    const annotations = { 'reconstruct.kosmos.io/adopt-by': 'Widget/web' };
    const managedFields = [applied('kubectl-create', recordedFields(deployment()))];
    const metadata = { ...deployment().metadata, annotations, managedFields };
    setup.server.put(DEPLOYMENT, { ...deployment(), metadata });
    setup.sync();
    setup.server.intercept = ({ contentType }) =>
      contentType === APPLY ? failure(422, 'Invalid', 'spec.replicas: Invalid value: 3') : undefined;
    expect(await setup.apply(step(deployment(3)))).toMatchObject({ error: { reason: 'Invalid' } });
    setup.server.intercept = () => undefined;
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
  });

  it('waits for what is being deleted', async () => {
    const setup = await settledSetup();
    edit(setup, (live) => ({
      ...live,
      metadata: { ...live.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    }));
    expect(await setup.apply(step(deployment(3)))).toMatchObject({
      error: { reason: 'Terminating', retry: 'backoff' },
    });
    expect(setup.server.requests).toEqual([]);
  });

  it('finds out that another writer created the object a moment ago, and says whose it is', async () => {
    const { server, apply } = newSetup();
    server.put(DEPLOYMENT, {
      ...deployment(),
      metadata: { ...deployment().metadata, ownerReferences: [ownedBy('other')] },
    });
    server.intercept = ({ method }) => (method === 'PATCH' ? fieldConflict() : undefined);
    expect(await apply()).toMatchObject({ error: { reason: 'OwnershipConflict', retry: 'onChange' } });
    await apply();
    expect(server.requests.map(({ method }) => method)).toEqual(['PATCH', 'GET']);
  });

  it('applies what is shared without force, new or known', async () => {
    const { apply, last } = newSetup();
    expect(await apply(shared())).toMatchObject({ action: 'created' });
    expect(last().body.metadata).not.toHaveProperty('ownerReferences');
    expect(await apply(shared(deployment(2)))).toMatchObject({ action: 'configured' });
    expect(last().query.force).toBe('false');
    expect(last().body.metadata.uid).toBe('uid-web');
  });
});

describe('Applier, failures', () => {
  it('does not bring back what was deleted meanwhile, and makes it anew on the next try', async () => {
    const setup = await settledSetup();
    const { server, apply, reader } = setup;
    putOwner(setup);
    server.remove(DEPLOYMENT, 'shop/web');
    expect(await apply(step(deployment(3)))).toMatchObject({ error: { reason: 'Conflict', retry: 'now' } });
    expect(reader.store(DEPLOYMENT).size).toBe(0);
    expect(await apply(step(deployment(3)))).toMatchObject({ action: 'created' });
  });

  it('reads the object when it has changed meanwhile', async () => {
    const { server, apply, reader } = await settledSetup();
    server.intercept = ({ method }) =>
      method === 'PATCH' ? failure(409, 'Conflict', 'modified') : undefined;
    const { resourceVersion } = server.put(DEPLOYMENT, server.get(DEPLOYMENT, 'shop/web')!).metadata;
    expect(await apply(step(deployment(3)))).toMatchObject({ error: { retry: 'now' } });
    expect(reader.get(DEPLOYMENT, 'shop/web')?.metadata.resourceVersion).toBe(resourceVersion);
    server.intercept = () => undefined;
    expect(await apply(step(deployment(3)))).toMatchObject({ action: 'configured' });
  });

  it('does not send again what was refused for good', async () => {
    const { server, apply } = newSetup();
    server.intercept = () => failure(422, 'Invalid', 'spec.replicas: must be positive');
    const first = await apply();
    expect(first).toMatchObject({ action: 'failed', error: { reason: 'Invalid', retry: 'onChange' } });
    expect(await apply()).toEqual(first);
    expect(server.writes).toHaveLength(1);
  });

  it('sends it again when its time is up', async () => {
    const { server, apply, clock } = newSetup();
    server.intercept = () => failure(422, 'Invalid', 'no');
    await apply();
    await clock.advance(REFUSAL_MILLISECONDS - 1);
    await apply();
    expect(server.writes).toHaveLength(1);
    await clock.advance(1);
    await apply();
    expect(server.writes).toHaveLength(2);
  });
});
