import { describe, expect, it } from 'vitest';
import type { ApplyStep } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { carryOut } from '../../src/engine/plan/carry-out.js';
import { settledSetup } from './support/apply-setup.js';
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
