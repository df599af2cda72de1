import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Found, Query } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { Api } from '../../src/client/api.js';
import type { Store } from '../../src/engine/watch/cache.js';
import { Lookups } from '../../src/engine/watch/lookups.js';
import { Reflector } from '../../src/engine/watch/reflector.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { CONFIG_MAP, configMap, recordingLogger } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const lookup = { type: CONFIG_MAP, keep: (object: AnyObject) => object };

/** @param total number of objects of the namespace */
function newLookups(total: () => number | Promise<number> = () => Infinity) {
  const [transport, clock, woken] = [new ScriptedTransport(), new VirtualClock(), [] as string[]];
  const stores: Store[] = [];
  const common = {
    ...{ api: new Api(transport), clock, random: () => 0, log: recordingLogger([]) },
    ...{ metrics: new Metrics(), label: 'configmaps' },
  };
  const lookups = new Lookups({
    ...{ clock, wake: (key) => woken.push(key), count: async () => total() },
    reflector: (scope, store) => {
      stores.push(store);
      return new Reflector({ ...common, scope, store, optional: true });
    },
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
  return { transport, clock, woken, lookups, ask, stores };
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

describe('Names of one namespace', () => {
  const NAMES = Array.from({ length: 12 }, (_, n) => `n${n}`);
  const version = (name: string, number: string): AnyObject => ({
    ...configMap(name, number),
    data: { number },
  });
  const objectsOf = (number: string): AnyObject[] => NAMES.map((name) => version(name, number));

  /** Each name is asked for by a custom resource of its name. */
  function newNames(total?: () => number | Promise<number>, type = CONFIG_MAP) {
    const stand = newLookups(total);
    const { lookups, transport, woken, clock } = stand;
    const kept: string[] = [];
    const of = {
      type,
      keep: (object: AnyObject) => {
        kept.push(object.metadata.name);
        return object;
      },
    };
    const ask = (name: string): Found =>
      lookups.plan(`shop/${name}`, (finder) => finder.find(of, { namespace: 'shop', name }));
    const versionOf = (name: string): string | undefined => {
      const { objects } = ask(name);
      return objects && (objects[0]?.metadata.resourceVersion ?? 'missing');
    };
    const opened = (name?: string) =>
      transport.streams.filter(
        ({ request, closed }) =>
          !closed && request.query?.fieldSelector === (name && `metadata.name=${name}`),
      );
    /** The names have watches of their own, of which the last leads to one of the namespace. */
    const joining = async () => {
      for (const name of NAMES) {
        ask(name);
        await settled();
        opened(name)[0]?.event('ADDED', version(name, '5')).listed('10');
        await settled();
      }
      expect(opened()).toEqual([]);
      await clock.advance(1_000);
      woken.length = 0;
      return { shared: opened()[0]!, own: NAMES.slice(0, 11).map((name) => opened(name)[0]!) };
    };
    return { ...stand, ask, versionOf, opened, kept, joining };
  }

  it('share one watch where they are many, which takes over once it is complete, and keeps nothing else', async () => {
    const { versionOf, joining, opened, kept, woken, lookups, stores } = newNames(() => 100);
    const { shared, own } = await joining();
    expect(own.map(({ closed }) => closed)).toEqual(Array(11).fill(false));
    // One that is asked for meanwhile waits for it, and so does one that it doesn't list.
    expect(['n0', 'n11', 'late'].map(versionOf)).toEqual(['5', undefined, undefined]);
    kept.length = 0;
    for (const object of objectsOf('5')) shared.event('ADDED', object);
    shared.event('ADDED', version('other', '6'));
    expect(versionOf('n0')).toBe('5');
    shared.listed('12');
    await settled();
    expect(kept).not.toContain('other');
    expect(own.map(({ closed }) => closed)).toEqual(Array(11).fill(true));
    expect([woken, versionOf('n11')]).toEqual([['shop/n11'], '5']);
    expect(['n11', 'late'].map((name) => opened(name).length)).toEqual([0, 1]);
    woken.length = 0;

    shared.event('MODIFIED', version('n3', '13')).event('MODIFIED', version('other', '14'));
    await settled();
    expect([woken, versionOf('n3'), versionOf('n4')]).toEqual([['shop/n3'], '13', '5']);
    shared.event('DELETED', version('n3', '15'));
    await settled();
    expect([woken, versionOf('n3')]).toEqual([['shop/n3', 'shop/n3'], 'missing']);

    const [all] = stores.filter(({ size }) => size > 1);
    expect(all?.size).toBe(11);
    lookups.plan('shop/n4', () => undefined);
    expect(all?.size).toBe(10);
    for (const name of [...NAMES, 'late']) lookups.plan(`shop/${name}`, () => undefined);
    expect([shared.closed, opened()]).toEqual([true, []]);
  });

  it('are answered by their own watch until the shared one has seen as much', async () => {
    const { versionOf, joining, woken, opened } = newNames(() => 12);
    const { shared, own } = await joining();
    for (const object of objectsOf('5')) if (object.metadata.name !== 'n4') shared.event('ADDED', object);
    own[1]!.event('MODIFIED', version('n1', '20'));
    own[2]!.event('DELETED', version('n2', '21'));
    own[3]!.event('DELETED', version('n3', '22')).event('ADDED', version('n3', '23'));
    await settled();
    woken.length = 0;
    // A change that its own watch hasn't delivered yet.
    shared.event('MODIFIED', version('n5', '11')).listed('12');
    await settled();
    const answers = () => ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'].map(versionOf);
    expect(answers()).toEqual(['5', '20', 'missing', '23', 'missing', '11']);
    expect(woken).toEqual(['shop/n4', 'shop/n5', 'shop/n11']);
    expect(own.map(({ closed }) => closed).slice(0, 6)).toEqual([true, false, false, false, true, true]);
    woken.length = 0;
    shared.event('MODIFIED', version('n1', '20'));
    shared.event('DELETED', version('n2', '21'));
    shared.event('DELETED', version('n3', '22'));
    await settled();
    expect(answers()).toEqual(['5', '20', 'missing', '23', 'missing', '11']);
    shared.event('ADDED', version('n3', '23'));
    await settled();
    expect([answers(), woken]).toEqual([['5', '20', 'missing', '23', 'missing', '11'], []]);
    expect(opened()).toEqual([shared]);
    expect(own.filter(({ closed }) => !closed)).toEqual([]);
  });

  it.each<[what: string, total: () => number | Promise<number>]>([
    ['there are many others', () => 121],
    ['they can’t be counted', () => Promise.reject(new Error('forbidden'))],
  ])('each keep their watch where %s', async (_, total) => {
    const { opened, ask, clock } = newNames(total);
    for (const name of NAMES) ask(name);
    await clock.advance(1_000);
    expect(opened()).toEqual([]);
    for (const name of NAMES) expect(opened(name)).toHaveLength(1);
  });

  it('each keep their watch where they are of Secrets', async () => {
    const { opened, ask, clock } = newNames(() => 12, resourceType({ apiVersion: 'v1', kind: 'Secret' }));
    for (const name of NAMES) ask(name);
    await clock.advance(1_000);
    expect(opened()).toEqual([]);
    for (const name of NAMES) expect(opened(name)).toHaveLength(1);
  });

  it('each go on with their watch where the list of all isn’t complete within a minute', async () => {
    const { joining, clock, versionOf, opened } = newNames(() => 12);
    const { shared } = await joining();
    await clock.advance(60_000);
    expect(shared.closed).toBe(true);
    opened('n11')[0]!.event('ADDED', version('n11', '5')).listed('10');
    await settled();
    expect([versionOf('n0'), versionOf('n11')]).toEqual(['5', '5']);
  });

  it('are counted once no more come in a burst', async () => {
    let counts = 0;
    const { ask, opened, clock } = newNames(() => ++counts * 30);
    for (const name of NAMES) ask(name);
    await clock.advance(500);
    for (const name of NAMES) ask(`${name}-later`);
    await clock.advance(500);
    expect([counts, opened()]).toEqual([0, []]);
    await clock.advance(1_000);
    expect([counts, opened().length]).toEqual([1, 1]);
  });

  it('that come later have a watch of their own, until they are worth another list', async () => {
    const { transport, ask, opened, clock } = newNames(() => 100);
    const all = Array.from({ length: 40 }, (_, n) => `n${n}`);
    const answer = async (): Promise<void> => {
      await clock.advance(1_000);
      for (const stream of opened()) stream.listed(String(transport.streams.length + 10));
      await settled();
    };
    for (const name of all) {
      ask(name);
      await answer();
    }
    const lists = transport.streams.filter(({ request }) => request.query?.fieldSelector === undefined);
    expect(lists).toHaveLength(2);
    expect(opened()).toHaveLength(1);
    expect(all.filter((name) => opened(name).length > 0).length).toBe(16);
    // What has gone isn't kept, and is read again.
    expect(ask('n0').objects).toEqual([]);
  });
});

it('watches that can’t be shared are bounded for each namespace', async () => {
  const { lookups, transport } = newLookups();
  const secrets = {
    type: resourceType({ apiVersion: 'v1', kind: 'Secret' }),
    keep: (object: AnyObject) => object,
  };
  const find = (key: string, names: number): readonly Found[] =>
    lookups.plan(key, (finder) =>
      Array.from({ length: names }, (_, n) =>
        finder.find(secrets, { namespace: 'shop', name: `${key}-${n}` }),
      ),
    );
  find('shop/a', 2_500);
  const found = find('shop/b', 600);
  expect(found.filter(({ isTooMuch }) => isTooMuch)).toHaveLength(100);
  expect(find('bank/a', 1)[0]!.isTooMuch).toBeUndefined();
  find('shop/a', 2_400);
  expect(find('shop/b', 600).filter(({ isTooMuch }) => isTooMuch)).toEqual([]);
  await settled();
  expect(transport.streams.filter(({ closed }) => !closed)).toHaveLength(3_001);
});
