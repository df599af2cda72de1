import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { checkOwnership } from '../../src/engine/ownership.js';
import { deployment, newSetup, OWNER, settledSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';
import { applied, DEPLOYMENT, failure, MANAGER, ownedBy } from './support/builders.js';
import { recordedFields } from './support/recorded-fields.js';

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

describe('Applier, where somebody has made the object behind a watch that lags', () => {
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

  it('keeps what was handed over to it', async () => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, foreign({ [ADOPT_BY]: 'Widget/web' }));
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(live(setup)?.metadata.ownerReferences).toEqual([OWNER]);
  });

  it('gives back later what it could not give back at once, and does not report it as its own meanwhile', async () => {
    const setup = newSetup();
    setup.server.put(DEPLOYMENT, foreign());
    let writes = 0;
    setup.server.intercept = ({ method }) =>
      method === 'PATCH' && ++writes > 1 ? failure(503, 'ServiceUnavailable', 'later') : undefined;
    for (let n = 0; n < 2; n++)
      expect(await setup.apply()).toMatchObject({ action: 'failed', error: { reason: 'ServerOverloaded' } });
    setup.server.intercept = () => undefined;
    expect(await setup.apply()).toMatchObject({ error: { reason: 'OwnershipConflict' } });
    expect(live(setup)?.metadata.ownerReferences).toEqual([]);
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
