import { describe, expect, it, onTestFinished } from 'vitest';
import { Api } from '../../src/client/api.js';
import type { Scope } from '../../src/client/api.js';
import { measureReflectors, Reflector } from '../../src/engine/watch/reflector.js';
import type { ReflectorProps } from '../../src/engine/watch/reflector.js';
import { WATCH } from '../../src/client/retry.js';
import { Store } from '../../src/engine/watch/cache.js';
import { ServerTime } from '../../src/client/clock.js';
import { definitionType } from '../../src/contract/resource.js';
import { SharedApi } from '../../src/engine/watch/installed.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { CONFIG_MAP, configMap, failure, recordingLogger, WIDGET } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import type { Answer, ScriptedStream } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

interface Setup {
  readonly transport: ScriptedTransport;
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly reflector: Reflector;
  readonly metrics: Metrics;
  readonly lines: LogLine[];
  readonly changes: string[];
  readonly stop: () => Promise<void>;
  readonly names: () => string[];
}

async function started(
  scope: Partial<Scope> = {},
  prepare?: (transport: ScriptedTransport) => void,
  props: Partial<ReflectorProps> = {},
): Promise<Setup> {
  const metrics = new Metrics();
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
    metrics,
    label: 'configmaps',
    ...props,
  });
  const controller = new AbortController();
  const running = reflector.run(controller.signal);
  const stop = async (): Promise<void> => {
    controller.abort();
    await running;
  };
  onTestFinished(stop);
  await settled();
  return {
    ...{ transport, clock, store, reflector, metrics, lines, changes, stop },
    names: () => [...store.keys()].sort(),
  };
}

/** A reflector that has a list and watches from version 100. */
async function watching(scope: Partial<Scope> = {}, props: Partial<ReflectorProps> = {}): Promise<Setup> {
  const setup = await started(scope, undefined, props);
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
    expect(reflector).toMatchObject({ synced: false, lastResourceVersion: undefined });
    transport.lastStream.listed('100');
    await reflector.firstSync;
    expect(names()).toEqual(['shop/a', 'shop/b']);
    expect(reflector).toMatchObject({ synced: true, lastResourceVersion: '100' });
    expect(transport.requests).toEqual([]);
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

  it('asks for pages after a streamed list that broke, as behind a proxy that cuts it each time', async () => {
    const { transport, clock, reflector, names } = await started();
    transport.answers.push(page('91', [configMap('b', '8')]));
    transport.lastStream.event('ADDED', configMap('a', '7')).break();
    await settled();
    expect(reflector.failure?.message).toBe('the watch ended within the list: other side closed');
    await clock.advance(1_600);
    expect(names()).toEqual(['shop/b']);
    expect(reflector.synced).toBe(true);
  });

  it('is not silent while pages of a long list come', async () => {
    const second = Promise.withResolvers<Answer>();
    const { clock, reflector } = await started({}, (server) => {
      server.refusals.push(failure(400, 'BadRequest', 'sendInitialEvents is forbidden for watch'));
      server.answers.push(page('90', [configMap('a', '7')], 'next'), second.promise);
    });
    await clock.advance(200_000);
    second.resolve(page('91', []));
    await settled();
    expect(reflector.silentForMilliseconds(clock.monotonic())).toBe(0);
  });
});

describe('Reflector, watching', () => {
  it('goes on from the last version after a cut, without listing', async () => {
    const { transport, clock, reflector } = await watching();
    transport.lastStream.event('MODIFIED', configMap('a', '105')).break();
    await settled();
    expect(reflector).toMatchObject({
      failure: { message: 'other side closed' },
      lastResourceVersion: '105',
    });
    await clock.advance(800);
    expect(transport.streams).toHaveLength(2);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '105' });
    expect(transport.lastStream.request.query).not.toHaveProperty('sendInitialEvents');
    expect(transport.requests).toEqual([]);
  });

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

  it('resumes soon after each cut, however many there were, where each watch has been at work for a while', async () => {
    const { transport, clock } = await watching();
    for (let cut = 1; cut <= 20; cut++) {
      await clock.advance(15_000);
      transport.lastStream.event('MODIFIED', configMap('a', String(100 + cut))).break();
      await clock.advance(1_600);
      expect(transport.streams).toHaveLength(1 + cut);
    }
  });

  it('replaces a connection on which nothing is heard', async () => {
    const { transport, clock } = await watching();
    const silent = transport.lastStream;
    await clock.advance(WATCH.silence - 1);
    expect(silent.closed).toBe(false);
    await clock.advance(1);
    expect(silent.closed).toBe(true);
    await clock.advance(800);
    expect(transport.lastStream).not.toBe(silent);
    expect(transport.lastStream.request.query).toMatchObject({ resourceVersion: '100' });
  });

  // A watch from a version of the future, as after a restored etcd, is answered with 200 and stays silent.
  it('lists again when a watch has delivered nothing at all until the silence limit', async () => {
    const { transport, clock, lines } = await watching();
    for (let n = 0; n < 3; n++) await clock.advance(WATCH.silence + 60_000);
    expect(
      transport.streams.slice(1).some(({ request }) => request.query?.sendInitialEvents === 'true'),
    ).toBe(true);
    // An idle server may be silent for as long as nothing changes; not while it lists.
    const said = lines.map(({ level, fields }) => [level, fields.error]);
    expect(said.slice(0, 2)).toEqual([
      ['debug', 'nothing heard for 75 s'],
      ['debug', 'nothing heard for 75 s'],
    ]);
  });

  it.each([
    ['silent watches that should have delivered changes', true, 1],
    ['silent watches of an idle type', false, 0],
  ])('warns once of %s', async (_, isChanged, warnings) => {
    const { transport, clock, lines } = await watching();
    for (let round = 1; round <= 4; round++) {
      // The watch behind the list, and the one from its version.
      await clock.advance(2 * (WATCH.silence + 800));
      expect(transport.lastStream.request.query).toMatchObject({ sendInitialEvents: 'true' });
      transport.lastStream
        .event('ADDED', configMap('a', isChanged ? String(100 + round) : '7'))
        .event('ADDED', configMap('b', '3'))
        .listed(String(200 + round));
      await settled();
    }
    const said = lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(said).toEqual(
      Array(warnings).fill('watches deliver no events, so changes are found late, by lists'),
    );
  });

  it.each([
    ['', WATCH.initializingTries, 0],
    ['', WATCH.initializingTries + 1, 1],
    [': conversion webhook for example.com/v1 failed', 1, 1],
  ])('warns of a server that fills its cache%s %i times in a row %i times', async (why, times, warnings) => {
    const { transport, clock, lines } = await started({}, ({ refusals }) => {
      const refusal = failure(429, 'TooManyRequests', `storage is (re)initializing${why}`);
      for (let n = 0; n < times; n++) refusals.push({ ...refusal, retryAfterSeconds: 1 });
    });
    await clock.advance(60_000);
    expect(transport.refusals).toEqual([]);
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(warnings);
  });

  it.each([500, 502, 504])(
    'asks for the same watch again for half a minute when the server is in trouble (%i), then lists',
    async (code) => {
      const { transport, clock } = await watching();
      for (let n = 0; n < 6; n++) transport.refusals.push(failure(code, 'InternalError', 'etcd is away'));
      transport.lastStream.event('ERROR', { code, reason: 'InternalError' });
      await clock.advance(90_000);
      const asked = transport.streams.map(({ request }) => request.query?.resourceVersion);
      expect(asked).toEqual([undefined, '100', '100', '100', '100', '100', '100', undefined]);
    },
  );
});

describe('Reflector, from time to time', () => {
  const HOUR = 3_600_000;

  /** Lets watches end in good order, each after a bookmark, as the server does. */
  async function rotate({ transport, clock }: Setup, milliseconds: number): Promise<void> {
    for (let past = 0; past < milliseconds; past += 60_000) {
      await clock.advance(60_000);
      const { request } = transport.lastStream;
      const version = String(1_000 + transport.streams.length);
      if (request.query?.sendInitialEvents) transport.lastStream.listed(version);
      else transport.lastStream.bookmark(version);
      if ((past / 60_000) % 5 === 4) transport.lastStream.end();
      await settled();
    }
  }

  const lists = ({ transport }: Setup): number =>
    transport.streams.filter(({ request }) => request.query?.sendInitialEvents).length;

  it('lists anew when its list is ten hours old and its watch ends, which mends what was lost', async () => {
    const setup = await watching();
    await rotate(setup, 9.9 * HOUR);
    expect(lists(setup)).toBe(1);
    await rotate(setup, 0.2 * HOUR);
    expect(lists(setup)).toBe(2);
    expect(setup.names()).toEqual([]);
    await rotate(setup, 9.5 * HOUR);
    expect(lists(setup)).toBe(2);
  });
});

describe('Reflector, measured', () => {
  it('tells how often it listed and watched, and where it stands', async () => {
    const { transport, clock, metrics, reflector } = await watching();
    await clock.advance(5_000);
    transport.lastStream.end();
    await settled();
    transport.lastStream.end();
    await clock.advance(800);
    await clock.advance(4_200);
    measureReflectors(metrics, clock, [reflector]);
    const text = await metrics.scrape();
    expect(text).toContain('reflector_lists_total{name="configmaps"} 1\n');
    expect(text).toContain('reflector_list_duration_seconds_count{name="configmaps"} 1\n');
    expect(text).toContain('reflector_watches_total{name="configmaps"} 3\n');
    expect(text).toContain('reflector_short_watches_total{name="configmaps"} 1\n');
    expect(text).toContain('reflector_last_resource_version{name="configmaps"} 100\n');
    expect(text).toContain('reconstruct_watch_silence_seconds{name="configmaps"} 4.2\n');
    expect(reflector.silentForMilliseconds(clock.monotonic())).toBe(4_200);
  });

  it('shows the longest silence of those that share a name, whatever can not be watched', async () => {
    const clock = new VirtualClock();
    const metrics = new Metrics();
    const label = 'configmaps in other namespaces';
    const shared = [undefined, 200_000].map((silence) => ({
      ...{ label, watches: silence !== undefined, lastResourceVersion: undefined },
      silentForMilliseconds: () => silence ?? 300_000,
    }));
    measureReflectors(metrics, clock, shared);
    const text = await metrics.scrape();
    expect(text).toContain('reconstruct_watch_silence_seconds{name="configmaps in other namespaces"} 200\n');
  });
});

describe('Reflector, of a server that is in an older state', () => {
  /** Its watch, at version 100, has ended, and it lists. */
  async function relisting(props: Partial<ReflectorProps> = {}): Promise<Setup> {
    const setup = await started({}, undefined, props);
    setup.transport.lastStream
      .event('ADDED', configMap('a', '7'))
      .event('ADDED', configMap('b', '3'))
      .listed('90')
      .event('MODIFIED', configMap('a', '100'))
      .event('ERROR', { code: 410, reason: 'Expired' });
    await setup.clock.advance(800);
    setup.changes.length = 0;
    setup.lines.length = 0;
    return setup;
  }

  const older = ({ lastStream }: ScriptedTransport): ScriptedStream =>
    lastStream.event('ADDED', configMap('a', '7')).listed('95');

  /** Each list is older, for so long. */
  async function stayOlder({ transport, clock }: Setup, milliseconds: number): Promise<void> {
    const until = clock.monotonic() + milliseconds;
    let answered: ScriptedStream | undefined;
    while (clock.monotonic() < until) {
      if (answered !== transport.lastStream) answered = older(transport);
      await clock.advance(Math.min(200, until - clock.monotonic()));
    }
  }

  it('does not believe a list that is older than what it has seen, says so once, and lists again', async () => {
    const setup = await relisting();
    const { transport, clock, changes, lines, reflector } = setup;
    const before = transport.streams.length;
    await stayOlder(setup, 100_000);
    expect(transport.streams.length - before).toBeGreaterThan(4);
    expect(transport.streams.slice(before).every(({ request }) => request.query?.sendInitialEvents)).toBe(
      true,
    );
    expect(changes).toEqual([]);
    expect(reflector.synced).toBe(true);
    expect(lines.filter(({ level }) => level !== 'debug')).toMatchObject([
      {
        level: 'warn',
        fields: { error: expect.stringMatching(/^the list is older/) as string },
        message: 'watch failed, listing again',
      },
    ]);
    await clock.advance(30_000);
    transport.lastStream.event('ADDED', configMap('a', '100')).event('ADDED', configMap('b', '3'));
    transport.lastStream.listed('101');
    await settled();
    expect(changes).toEqual([]);
    expect(reflector).toMatchObject({ failure: undefined, lastResourceVersion: '101' });
  });
});

describe('Reflector, failing', () => {
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
});

describe('Reflector, of a kind that is not served', () => {
  const missing = { status: 404, body: '404 page not found\n' };

  /** A kind that has a CRD, unless the API server says that it has none. */
  const scope = { type: WIDGET };
  const uninstalled = (transport: ScriptedTransport): void => {
    transport.respond = () => failure(404, 'NotFound', 'customresourcedefinitions "widgets" not found');
  };

  /** Nothing but this answer from now on. */
  const always = (transport: ScriptedTransport, answer: Answer, times = 50): void => {
    for (let n = 0; n < times; n++) transport.refusals.push(answer);
  };

  it('looks for it every half minute at most, for ever, and says so once', async () => {
    const { transport, clock, lines } = await started(
      scope,
      (server) => {
        uninstalled(server);
        always(server, missing, 200);
      },
      { random: () => 1 },
    );
    await clock.advance(3_600_000);
    expect(transport.streams.length).toBeGreaterThan(120);
    expect(transport.requests).toHaveLength(1);
    expect(lines.filter(({ level }) => level !== 'debug')).toMatchObject([
      {
        level: 'warn',
        fields: {
          resource: 'widgets',
          hint: expect.stringMatching(/^Install the CRD of this kind: `reconstruct install/) as string,
        },
        message: 'the kind is not served, will look for it again',
      },
    ]);
  });

  it('is asked for once by all who follow it, and followed by all once it is served', async () => {
    const [clock, transport] = [new VirtualClock(), new ScriptedTransport()];
    uninstalled(transport);
    always(transport, missing, 10_000);
    const api = new SharedApi(transport, new ServerTime(clock), clock);
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, n) => started({ ...scope, name: `w${n}` }, undefined, { api, clock })),
    );
    expect([transport.streams.length, transport.requests.length]).toEqual([1, 1]);
    await clock.advance(300_000);
    expect(transport.streams.length).toBeLessThan(65);
    expect(transport.requests).toHaveLength(1);
    expect(all.every(({ store }) => store.unservedIn(undefined) === 'missing')).toBe(true);

    transport.refusals.length = 0;
    const before = transport.streams.length;
    await clock.advance(30_000);
    expect(transport.streams.length - before).toBe(100);
  });

  it('asks once what the schema of a kind is', async () => {
    const [clock, transport] = [new VirtualClock(), new ScriptedTransport()];
    transport.respond = () => ({ status: 200, body: { paths: {} } });
    const api = new SharedApi(transport, new ServerTime(clock), clock);
    await Promise.all([api.schemaHash('a/v1'), api.schemaHash('a/v1')]);
    expect(transport.requests).toHaveLength(1);
    await clock.advance(WATCH.askedAgain);
    await api.schemaHash('a/v1');
    expect(transport.requests).toHaveLength(2);
  });

  it('asks for each object of one name by itself', async () => {
    const [clock, transport] = [new VirtualClock(), new ScriptedTransport()];
    transport.respond = ({ path }) => ({ status: 200, body: { path } });
    const api = new SharedApi(transport, new ServerTime(clock), clock);
    const [definition, object] = await Promise.all([api.get(definitionType, 'a'), api.get(WIDGET, 'a')]);
    expect(definition).not.toEqual(object);
  });

  it('has no objects any more once it was removed, and tells so', async () => {
    const { transport, changes, names, reflector, lines } = await watching(scope);
    uninstalled(transport);
    always(transport, missing);
    transport.lastStream.end();
    await settled();
    expect(transport.requests.map(({ path }) => path)).toEqual([
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.demo.example.com',
    ]);
    expect(changes.sort()).toEqual(['-a', '-b']);
    expect(names()).toEqual([]);
    expect(reflector).toMatchObject({ synced: true, doubtful: undefined });
    expect(lines.map(({ message }) => message)).toContain(
      'the kind has been removed, and its objects with it',
    );
  });

  const crd = {
    spec: {
      versions: [
        { name: 'v1', served: false },
        { name: 'v2', served: true },
      ],
    },
  };
  it.each<readonly [string, Partial<Scope>, Answer, RegExp]>([
    ['its CRD serves another version', scope, { status: 200, body: crd }, /not served as demo.*serves v2/],
    ['its CRD may not be read', scope, failure(403, 'Forbidden', 'not yours'), /not yours.*grant get on/],
    ['a proxy answers for the CRD too', scope, { status: 404, body: 'not found' }, /can't be read/],
    ['nothing answers for the CRD', scope, new Error('ECONNRESET'), /ECONNRESET/],
    [
      'it is built into the API server',
      {},
      failure(404, 'NotFound', 'no CRD'),
      /as v1: run a version of the operator/,
    ],
  ])('keeps its objects for as long as it lasts, and names it, where %s', async (_, of, answer, why) => {
    const told: boolean[] = [];
    const onDoubt = (isDoubtful: boolean) => void told.push(isDoubtful);
    const { transport, clock, changes, reflector, store } = await watching(of, { onDoubt });
    transport.respond = () => answer;
    always(transport, missing, 60);
    transport.lastStream.end();
    await clock.advance(600_000);
    expect(store.unservedIn(undefined)).toBe('doubtful');
    expect(reflector.doubtful).toMatch(why);
    expect(told).toEqual([true]);
    transport.refusals.length = 0;
    await clock.advance(30_000);
    transport.lastStream
      .event('ADDED', configMap('a', '7'))
      .event('ADDED', configMap('b', '3'))
      .listed('200');
    await settled();
    expect(changes).toEqual([]);
    expect(reflector.doubtful).toBeUndefined();
    expect(told).toEqual([true, false]);
  });
});

describe('Reflector, of a kind whose CRD has changed', () => {
  const scope = { type: WIDGET };
  const hashes = (hash: string): Answer => ({
    status: 200,
    body: {
      paths: { 'apis/demo.example.com/v1': { serverRelativeURL: `/openapi/v3/apis/demo?hash=${hash}` } },
    },
  });

  /** The server ends the watch, the next goes on, and ten seconds later the hash is this. */
  async function cut({ transport, clock }: Setup, hash: string): Promise<void> {
    transport.respond = () => hashes(hash);
    await clock.advance(60_000);
    transport.lastStream.end();
    await settled();
    await clock.advance(10_000);
  }

  it('is listed anew, by content, where a watch has ended early and the hash is another one', async () => {
    const setup = await watching(scope);
    const { transport, store, changes } = setup;
    await cut(setup, 'A');
    transport.lastStream
      .event('ADDED', { ...configMap('a', '7'), data: { by: 'default' } })
      .event('ADDED', configMap('b', '3'))
      .listed('100');
    await settled();
    expect(changes).toEqual(['~a']);
    expect(store.get('shop/a')?.object).toMatchObject({ data: { by: 'default' } });

    // The same once more is no change, and costs no list.
    const streams = transport.streams.length;
    await cut(setup, 'A');
    expect(transport.streams).toHaveLength(streams + 1);
    expect(transport.lastStream.request.query).not.toHaveProperty('sendInitialEvents');

    await cut(setup, 'B');
    expect(transport.lastStream.request.query).toHaveProperty('sendInitialEvents');
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
});
