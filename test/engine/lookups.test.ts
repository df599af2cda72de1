import { expect, it, onTestFinished, vi } from 'vitest';
import type { Found, Query } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Api } from '../../src/client/api.js';
import { Lookups } from '../../src/engine/watch/lookups.js';
import { Reflector } from '../../src/engine/watch/reflector.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { CONFIG_MAP, configMap, recordingLogger } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const lookup = { type: CONFIG_MAP, keep: (object: AnyObject) => object };

function newLookups() {
  const [transport, clock, woken] = [new ScriptedTransport(), new VirtualClock(), [] as string[]];
  const common = {
    ...{ api: new Api(transport), clock, random: () => 0, log: recordingLogger([]) },
    ...{ metrics: new Metrics(), label: 'configmaps' },
  };
  const lookups = new Lookups({
    ...{ clock, wake: (key) => woken.push(key) },
    reflector: (scope, store) => new Reflector({ ...common, scope, store, optional: true }),
  });
  onTestFinished(() => {
    lookups.stop();
  });
  /** The answer to the only query of a key. */
  const ask = async (key: string, query: Query): Promise<Found> => {
    const found = lookups.plan(key, (finder) => finder.find(lookup, query));
    await settled();
    return found;
  };
  return { transport, clock, woken, lookups, ask };
}

const large = (name: string, version: string, size: number): AnyObject => ({
  ...configMap(name, version),
  data: { text: 'x'.repeat(size) },
});

const query = { namespace: 'shop', selector: 'app=web' };
const MIB = 1024 * 1024;

it.each<[what: string, objects: readonly AnyObject[], why: RegExp]>([
  [
    'too many objects',
    Array.from({ length: 1_500 }, (_, n) => configMap(`c${n}`, String(n))),
    /^it has more than 1,000 objects$/,
  ],
  [
    'too large ones',
    Array.from({ length: 40 }, (_, n) => large(`c${n}`, String(n), 0.9 * MIB)),
    /^all that is referred to from the namespace shop has more than 16 MiB$/,
  ],
  [
    'many small values',
    ['a', 'b'].map((name, n) => ({
      ...configMap(name, String(n)),
      items: Array.from({ length: 300_000 }, () => ({})),
    })),
    /^all that is referred to from the namespace shop has more than 16 MiB$/,
  ],
])('a query that finds %s is given up, and asked again after a minute', async (_, objects, why) => {
  const { transport, clock, woken, ask } = newLookups();
  await ask('shop/web', query);
  for (const object of objects) transport.lastStream.event('ADDED', object);
  await vi.waitFor(() => {
    expect(woken).toEqual(['shop/web']);
  }, PATIENCE);
  expect(transport.lastStream.closed).toBe(true);
  expect(await ask('shop/web', query)).toMatchObject({
    why: expect.stringMatching(why) as string,
    isTooMuch: true,
  });
  await clock.advance(59_000);
  await ask('shop/other', query);
  expect(transport.streams).toHaveLength(1);

  await clock.advance(1_000);
  expect(await ask('shop/web', query)).toEqual({});
  transport.lastStream.event('ADDED', configMap('a', '1')).listed('1');
  await settled();
  expect((await ask('shop/web', query)).objects).toHaveLength(1);
});

/** The only object that a query by name finds, which is asked for once before. */
async function found(
  { transport, ask }: ReturnType<typeof newLookups>,
  key: string,
  query: { readonly namespace?: string; readonly name: string },
): Promise<Found> {
  await ask(key, query);
  const { metadata, ...object } = large(query.name, '1', 9 * MIB);
  const { namespace, ...rest } = metadata;
  transport.lastStream.event('ADDED', { ...object, metadata: { ...rest, ...query } }).listed('1');
  await settled();
  return ask(key, query);
}

it.each<[where: string, namespace: { readonly namespace?: string }]>([
  ['in one namespace', { namespace: 'common' }],
  ['in the cluster', {}],
])('what is referred to from one namespace is bounded together, and no other by it, %s', async (_, where) => {
  const lookups = newLookups();
  const { ask } = lookups;
  expect((await found(lookups, 'shop/a', { ...where, name: 'a' })).objects).toHaveLength(1);
  expect(await found(lookups, 'shop/b', { ...where, name: 'b' })).toMatchObject({ isTooMuch: true });
  expect((await found(lookups, 'bank/c', { ...where, name: 'c' })).objects).toHaveLength(1);
  // What others have looked up counts for those who refer to it, too.
  expect((await ask('shop/d', { ...where, name: 'a' })).objects).toHaveLength(1);
  expect(await ask('shop/d', { ...where, name: 'c' })).toMatchObject({ isTooMuch: true });
  expect((await ask('bank/c', { ...where, name: 'c' })).objects).toHaveLength(1);
  // Asked for by name in another namespace, it makes room.
  await ask('shop/a', { namespace: 'bank', name: 'd' });
  await ask('shop/d', { namespace: 'bank', name: 'd' });
  expect((await found(lookups, 'shop/e', { ...where, name: 'e' })).objects).toHaveLength(1);
});

it('what is referred to from one cluster-scoped custom resource takes no room from another', async () => {
  const lookups = newLookups();
  const where = { namespace: 'common' };
  expect((await found(lookups, 'a', { ...where, name: 'a' })).objects).toHaveLength(1);
  expect((await found(lookups, 'b', { ...where, name: 'b' })).objects).toHaveLength(1);
  expect(await lookups.ask('a', { ...where, name: 'b' })).toEqual({
    why: 'all that is referred to from a has more than 16 MiB',
    isTooMuch: true,
  });
});

/** Many MiB are parsed, which may take long on a busy machine. */
const PATIENCE = { timeout: 30_000 };

it('a query that was refused stays so for the others, whichever key leaves', async () => {
  const { transport, clock, ask } = newLookups();
  await ask('shop/a', query);
  await ask('shop/b', query);
  for (let n = 0; n < 20; n++) transport.lastStream.event('ADDED', large(`c${n}`, String(n), MIB));
  await vi.waitFor(() => {
    expect(transport.lastStream.closed).toBe(true);
  }, PATIENCE);
  for (const key of ['shop/a', 'shop/b']) expect(await ask(key, query)).toMatchObject({ isTooMuch: true });
  await ask('shop/a', { namespace: 'shop', name: 'a' });
  expect(await ask('shop/b', query)).toMatchObject({ isTooMuch: true });
  expect(transport.streams).toHaveLength(2);
  await clock.advance(60_000);
  expect(await ask('shop/b', query)).toEqual({});
});

it('what shrinks or goes makes room', async () => {
  const { transport, ask } = newLookups();
  const finds = async (...names: readonly string[]): Promise<void> => {
    await vi.waitFor(async () => {
      const { objects = [] } = await ask('shop/web', query);
      expect(objects.map(({ metadata: { name, resourceVersion } }) => `${name}${resourceVersion}`)).toEqual(
        names,
      );
    }, PATIENCE);
  };
  await ask('shop/web', query);
  const { lastStream } = transport;
  lastStream.event('ADDED', large('a', '1', 9 * MIB)).listed('1');
  await finds('a1');
  lastStream.event('MODIFIED', large('a', '2', 1));
  for (const version of ['3', '5', '7']) {
    lastStream.event('ADDED', large(`b${version}-`, version, 9 * MIB));
    await finds('a2', `b${version}-${version}`);
    lastStream.event('DELETED', large(`b${version}-`, String(Number(version) + 1), 1));
    await finds('a2');
  }
});

it('asks for small pages by labels, of which each object may be large', async () => {
  const { transport, ask } = newLookups();
  transport.refusals.push({ status: 400, body: 'no streams' });
  transport.respond = () => ({ status: 200, body: { metadata: { resourceVersion: '1' }, items: [] } });
  await ask('a', query);
  expect(transport.requests[0]?.query).toMatchObject({ limit: '50', labelSelector: 'app=web' });
});
