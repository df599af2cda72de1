import { describe, expect, it, onTestFinished } from 'vitest';
import { Api } from '../../src/engine/api.js';
import type { Scope } from '../../src/engine/api.js';
import { Reflector } from '../../src/engine/reflector.js';
import { SILENCE_LIMIT_MILLISECONDS } from '../../src/engine/silence-limit.js';
import { Store } from '../../src/engine/store.js';
import { CONFIG_MAP, configMap, failure, recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

interface Setup {
  readonly transport: ScriptedTransport;
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly reflector: Reflector;
  readonly lines: LogLine[];
  readonly changes: string[];
  readonly stop: () => Promise<void>;
  readonly names: () => string[];
}

async function started(
  scope: Partial<Scope> = {},
  prepare?: (transport: ScriptedTransport) => void,
): Promise<Setup> {
  const transport = new ScriptedTransport();
  prepare?.(transport);
  const clock = new VirtualClock();
  const store = new Store({ keep: (object) => object, freeze: true });
  const lines: LogLine[] = [];
  const changes: string[] = [];
  store.onChange((before, after) => {
    const verb = before && after ? '~' : after ? '+' : '-';
    changes.push(`${verb}${(after ?? before)?.metadata.name ?? ''}`);
  });
  const reflector = new Reflector({
    api: new Api(transport),
    scope: { type: CONFIG_MAP, ...scope },
    store,
    clock,
    random: () => 0,
    log: recordingLogger(lines),
  });
  const controller = new AbortController();
  const running = reflector.run(controller.signal);
  const stop = async (): Promise<void> => {
    controller.abort();
    await running;
  };
  onTestFinished(stop);
  await settled();
  return { transport, clock, store, reflector, lines, changes, stop, names: () => [...store.keys()].sort() };
}

/** A reflector that has a list and watches from version 100. */
async function watching(scope: Partial<Scope> = {}): Promise<Setup> {
  const setup = await started(scope);
  setup.transport.lastStream
    .event('ADDED', configMap('a', '7'))
    .event('ADDED', configMap('b', '3'))
    .listed('100');
  await settled();
  setup.changes.length = 0;
  return setup;
}

const page = (
  resourceVersion: string,
  items: object[],
  token?: string,
): { status: number; body: object } => ({
  status: 200,
  body: { metadata: { resourceVersion, ...(token !== undefined && { continue: token }) }, items },
});

describe('Reflector, listing', () => {
  it('streams the list and swaps it in at its end', async () => {
    const { transport, store, reflector, names } = await started();
    expect(transport.lastStream.request.query).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '300',
    });
    transport.lastStream
      .event('ADDED', configMap('a', '7'))
      .event('ADDED', configMap('b', '3'))
      .bookmark('90');
    await settled();
    expect(store.size).toBe(0);
    expect(reflector).toMatchObject({ synced: false, state: { phase: 'listing' } });
    transport.lastStream.listed('100');
    await reflector.firstSync;
    expect(names()).toEqual(['shop/a', 'shop/b']);
    expect(reflector).toMatchObject({ synced: true, state: { phase: 'watching', resourceVersion: '100' } });
    expect(transport.requests).toEqual([]);
  });

  it('goes on with changes on the same stream', async () => {
    const { transport, changes, names } = await watching();
    transport.lastStream
      .event('MODIFIED', configMap('a', '101'))
      .event('DELETED', configMap('b', '102'))
      .event('ADDED', configMap('c', '103'));
    await settled();
    expect(changes).toEqual(['~a', '-b', '+c']);
    expect(names()).toEqual(['shop/a', 'shop/c']);
    expect(transport.streams).toHaveLength(1);
  });

  // As client-go's handleAnyWatch does: the server sends what happens between its snapshot and the version that the
  // list has to reach as changes, before the bookmark.
  it('takes changes that come within the list', async () => {
    const { transport, store } = await started();
    transport.lastStream
      .event('ADDED', configMap('a', '7'))
      .event('MODIFIED', configMap('a', '95'))
      .listed('100');
    await settled();
    expect(store.get('shop/a')?.object.metadata.resourceVersion).toBe('95');
  });

  it('takes deletions that come within the list', async () => {
    const { transport, names } = await started();
    transport.lastStream
      .event('ADDED', configMap('a', '7'))
      .event('ADDED', configMap('b', '8'))
      .event('DELETED', configMap('a', '95'))
      .listed('100');
    await settled();
    expect(names()).toEqual(['shop/b']);
  });

  it.each([400, 422])('asks for pages where the server does not stream lists (%i)', async (code) => {
    const { transport, reflector, names } = await started({}, (server) => {
      server.refusals.push(failure(code, 'Invalid', 'sendInitialEvents is forbidden for watch'));
      server.answers.push(page('90', [configMap('a', '7')], 'next'), page('91', [configMap('b', '8')]));
    });
    expect(transport.requests.map(({ query }) => query?.continue)).toEqual([undefined, 'next']);
    expect(names()).toEqual(['shop/a', 'shop/b']);
    expect(reflector.synced).toBe(true);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '91' });
    expect(transport.lastStream.request.query).not.toHaveProperty('sendInitialEvents');
  });

  it('goes on asking for pages once it knows that lists are not streamed', async () => {
    const { transport, clock, names } = await started({}, (server) => {
      server.refusals.push(failure(400, 'BadRequest', 'unknown'));
      server.answers.push(page('90', [configMap('a', '7')]), page('200', [configMap('b', '150')]));
    });
    transport.lastStream.event('ERROR', { code: 410, reason: 'Expired' });
    await clock.advance(800);
    expect(transport.requests).toHaveLength(2);
    expect(names()).toEqual(['shop/b']);
    expect(transport.streams.map(({ request }) => request.query?.resourceVersion)).toEqual([
      undefined,
      '90',
      '200',
    ]);
  });

  it('starts the list anew when a page has expired', async () => {
    const { transport, clock, names } = await started({}, (server) => {
      server.refusals.push(failure(400, 'BadRequest', 'unknown'));
      server.answers.push(page('90', [configMap('a', '7')], 'next'), failure(410, 'Expired', 'too old'));
    });
    expect(names()).toEqual([]);
    transport.answers.push(page('200', [configMap('b', '150')]));
    await clock.advance(800);
    expect(names()).toEqual(['shop/b']);
  });

  it('asks for pages where the server no longer streams lists', async () => {
    const { transport, clock } = await watching();
    transport.respond = () => page('300', [configMap('c', '250')]);
    transport.refusals.push(failure(422, 'Invalid', 'sendInitialEvents is forbidden for watch'));
    transport.lastStream.event('ERROR', { code: 410, reason: 'Expired' });
    await clock.advance(800);
    expect(transport.requests).toHaveLength(1);
  });

  it('lists again when a stream ends within the list, and shows nothing of it', async () => {
    const { transport, clock, store } = await started();
    transport.lastStream.event('ADDED', configMap('a', '7')).end();
    await clock.advance(800);
    expect(store.size).toBe(0);
    expect(transport.streams).toHaveLength(2);
    expect(transport.lastStream.request.query).toHaveProperty('sendInitialEvents');
  });
});

describe('Reflector, watching', () => {
  it('goes on from the last version after a cut, without listing', async () => {
    const { transport, clock, reflector } = await watching();
    transport.lastStream.event('MODIFIED', configMap('a', '105')).break();
    await settled();
    expect(reflector.state).toMatchObject({ phase: 'waiting', resourceVersion: '105' });
    await clock.advance(800);
    expect(transport.streams).toHaveLength(2);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '105' });
    expect(transport.lastStream.request.query).not.toHaveProperty('sendInitialEvents');
    expect(transport.requests).toEqual([]);
  });

  it('goes on from the version of a bookmark', async () => {
    const { transport, clock } = await watching();
    await clock.advance(60_000);
    transport.lastStream.bookmark('500').end();
    await settled();
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '500' });
  });

  it('goes on at once when the server ends a watch in good order', async () => {
    const { transport, clock, lines } = await watching();
    await clock.advance(5_000);
    transport.lastStream.end();
    await settled();
    expect(transport.streams).toHaveLength(2);
    expect(lines).toEqual([]);
  });

  it('never takes the version of an initial event for one to go on from', async () => {
    const { transport, clock } = await started();
    transport.lastStream.event('ADDED', configMap('a', '700')).break();
    await clock.advance(800);
    expect(transport.lastStream.request.query).not.toHaveProperty('resourceVersion');
  });

  it.each([
    [
      'as an event',
      (setup: Setup): unknown => setup.transport.lastStream.event('ERROR', { code: 410, reason: 'Expired' }),
    ],
    [
      'as the answer',
      (setup: Setup): unknown => {
        setup.transport.refusals.push(failure(410, 'Expired', 'too old resource version'));
        return setup.transport.lastStream.event('MODIFIED', configMap('a', '101')).end();
      },
    ],
  ])(
    'lists again when its version is too old, told %s, and serves what it knows meanwhile',
    async (_, expire) => {
      const setup = await watching();
      const { transport, clock, changes, names } = setup;
      expire(setup);
      await clock.advance(800);
      expect(transport.lastStream.request.query).toHaveProperty('sendInitialEvents');
      expect(names()).toEqual(['shop/a', 'shop/b']);
      changes.length = 0;
      transport.lastStream
        .event('ADDED', configMap('b', '3'))
        .event('ADDED', configMap('c', '190'))
        .listed('200');
      await settled();
      expect(changes).toEqual(['-a', '+c']);
      expect(names()).toEqual(['shop/b', 'shop/c']);
    },
  );

  it.each([
    ['429', failure(429, 'TooManyRequests', 'later')],
    ['503', failure(503, 'ServiceUnavailable', 'later')],
    ['no answer', new Error('connect ECONNREFUSED')],
  ])('neither lists nor loses its place when the server is overloaded or away: %s', async (_, refusal) => {
    const { transport, clock } = await watching();
    transport.refusals.push(refusal);
    transport.lastStream.event('MODIFIED', configMap('a', '101')).end();
    await clock.advance(800);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '101' });
    expect(transport.requests).toEqual([]);
  });

  it('comes back when the server says so, and not before', async () => {
    const { transport, clock } = await watching();
    transport.refusals.push({ ...failure(429, 'TooManyRequests', 'later'), retryAfterSeconds: 12 });
    transport.lastStream.event('MODIFIED', configMap('a', '101')).end();
    await clock.advance(11_999);
    expect(transport.streams).toHaveLength(2);
    await clock.advance(1);
    expect(transport.streams).toHaveLength(3);
  });

  it('replaces a connection on which nothing is heard', async () => {
    const { transport, clock } = await watching();
    const silent = transport.lastStream;
    await clock.advance(SILENCE_LIMIT_MILLISECONDS - 1);
    expect(silent.closed).toBe(false);
    await clock.advance(1);
    expect(silent.closed).toBe(true);
    await clock.advance(800);
    expect(transport.lastStream).not.toBe(silent);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '100' });
  });

  it('takes any byte for a sign of life', async () => {
    const { transport, clock } = await watching();
    for (let n = 0; n < 5; n++) {
      await clock.advance(70_000);
      transport.lastStream.send('\n');
      await settled();
    }
    expect(transport.streams).toHaveLength(1);
  });

  // A watch from a version of the future, as after a restored etcd, is answered with 200 and stays silent.
  it('lists again when a watch has delivered nothing at all until the silence limit', async () => {
    const { transport, clock } = await watching();
    for (let n = 0; n < 3; n++) await clock.advance(SILENCE_LIMIT_MILLISECONDS + 60_000);
    expect(
      transport.streams.slice(1).some(({ request }) => request.query?.sendInitialEvents === 'true'),
    ).toBe(true);
  });

  it.each([
    ['garbage', '<html>502 Bad Gateway</html>\n'],
    ['an object without metadata', '{"type":"MODIFIED","object":{}}\n'],
    ['an object that is none', '{"type":"MODIFIED","object":null}\n'],
    ['broken characters', Buffer.from([0x22, 0xff, 0x0a])],
  ])('lists again after %s', async (_, bytes) => {
    const { transport, clock } = await watching();
    transport.lastStream.send(bytes);
    await clock.advance(800);
    expect(transport.streams[0]?.closed).toBe(true);
    expect(transport.lastStream.request.query).toHaveProperty('sendInitialEvents');
  });

  it('covers one namespace by label when told so', async () => {
    const { transport } = await started({ namespace: 'shop', selector: 'a=b' });
    expect(transport.lastStream.request).toMatchObject({
      path: '/api/v1/namespaces/shop/configmaps',
      query: { labelSelector: 'a=b' },
    });
  });
});

describe('Reflector, failing', () => {
  it('takes a watch that ends at once without an event for a failure', async () => {
    const { transport, clock, lines } = await watching();
    await clock.advance(5_000);
    transport.lastStream.end();
    await settled();
    transport.lastStream.end();
    await settled();
    expect(transport.streams).toHaveLength(2);
    expect(lines).toMatchObject([{ level: 'warn', fields: { error: 'The watch ended at once' } }]);
    await clock.advance(800);
    expect(transport.streams).toHaveLength(3);
  });

  it('waits longer after each failure, thirty seconds at most, and never gives up', async () => {
    const { transport, clock, lines } = await watching();
    for (let n = 0; n < 9; n++) transport.refusals.push(new Error('connect ECONNREFUSED'));
    transport.lastStream.break();
    await clock.advance(171_000);
    expect(lines.map(({ fields }) => fields.retryMilliseconds)).toEqual([
      800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000, 30_000,
    ]);
    expect(transport.streams).toHaveLength(2);
  });

  it('forgets its failures after two minutes of health', async () => {
    const { transport, clock, lines } = await watching();
    for (let n = 0; n < 4; n++) {
      transport.lastStream.break();
      await clock.advance(20_000);
    }
    await clock.advance(50_000);
    transport.lastStream.bookmark('101');
    await clock.advance(70_000);
    transport.lastStream.break();
    await settled();
    expect(lines.map(({ fields }) => fields.retryMilliseconds)).toEqual([800, 1600, 3200, 6400, 800]);
  });

  it('does not forget its failures before', async () => {
    const { transport, clock, lines } = await watching();
    for (let n = 0; n < 3; n++) {
      transport.lastStream.break();
      await clock.advance(60_000);
    }
    expect(lines.map(({ fields }) => fields.retryMilliseconds)).toEqual([800, 1600, 3200]);
  });

  it('says what it waits for', async () => {
    const { reflector } = await started({}, (server) => {
      server.refusals.push(failure(403, 'Forbidden', 'configmaps is forbidden'));
    });
    expect(reflector).toMatchObject({
      synced: false,
      state: { phase: 'waiting', error: { message: 'Watch configmaps: 403 configmaps is forbidden' } },
    });
  });

  it('finds a kind that is served only later', async () => {
    const { transport, clock, names } = await started({}, (server) => {
      server.refusals.push({ status: 404, body: '404 page not found\n' });
    });
    await clock.advance(800);
    transport.lastStream.event('ADDED', configMap('a', '7')).listed('100');
    await settled();
    expect(names()).toEqual(['shop/a']);
  });
});

describe('Reflector, stopping', () => {
  it('ends while it watches, and closes its stream', async () => {
    const { transport, clock, stop, lines } = await watching();
    await stop();
    expect(transport.lastStream.closed).toBe(true);
    expect(clock.timers).toBe(0);
    expect(lines).toEqual([]);
  });

  it('ends while it lists', async () => {
    const { transport, stop } = await started();
    await stop();
    expect(transport.lastStream.closed).toBe(true);
  });

  it('ends while it waits', async () => {
    const { transport, clock, stop } = await watching();
    transport.lastStream.break();
    await settled();
    await stop();
    expect(clock.timers).toBe(0);
  });
});
