import { describe, expect, it } from 'vitest';
import type { HandOverStep } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { settledSetup } from './support/apply-setup.js';
import { plan } from './support/bench.js';
import { anObject, applied, apply, DEPLOYMENT, widget } from './support/builders.js';
import type { FakeApiServer } from './support/fake-api-server.js';
import { startedRunner } from './support/started-runner.js';

const REPLICAS = 'widget-replicas';
const replicas = (count = 1): HandOverStep => ({
  do: 'handOver',
  object: anObject(DEPLOYMENT, 'web', {}, { spec: { replicas: count } }),
  fieldManager: REPLICAS,
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
});

describe('The runner', () => {
  it('takes a key again at once where its plan asks for it, and only then', async () => {
    const { deliver, reconciled, server } = startedRunner(() =>
      plan({
        steps: [apply('a')],
        conclude: (changes) => ({
          ...{ status: [], events: [] },
          ...(changes.some(({ action }) => action === 'created') && { next: 'now' }),
        }),
      }),
    );
    await deliver(widget('web'));
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
    expect(server.writes).toHaveLength(1);
    await deliver(widget('web'));
    expect(reconciled).toHaveLength(3);
  });
});
