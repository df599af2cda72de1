import { describe, expect, it, onTestFinished } from 'vitest';
import type { Controller, Reader } from '../../src/contract/controller.js';
import { objectKey } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { Manager } from '../../src/engine/manager.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  anObject,
  CONFIG_MAP,
  configMap,
  MANAGER,
  ownedBy,
  recordingLogger,
  SERVICE,
  widget,
  WIDGET,
} from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const child = (data: string): AnyObject => anObject(CONFIG_MAP, 'child', {}, { data: { value: data } });

/** One ConfigMap per Widget; Services are read, and deleted where the Widget controls one. */
function controller(props: { optional?: ResourceType; keep?: (object: AnyObject) => AnyObject }): Controller {
  const owner = ({ metadata }: AnyObject): string[] =>
    (metadata.ownerReferences ?? []).map(({ name }) => objectKey(metadata.namespace, name));
  return {
    ...{ name: 'widget', kind: 'Widget' },
    watches: [
      { type: WIDGET, mapsTo: ({ metadata }) => [objectKey(metadata.namespace, metadata.name)] },
      { type: CONFIG_MAP, mapsTo: owner, ...(props.keep && { keep: props.keep }) },
      ...(props.optional ? [{ type: props.optional, mapsTo: owner, optional: true }] : []),
    ],
    reconcile: (key: string, reader: Reader) => {
      if (!reader.get(WIDGET, key)) return plan({});
      const former = props.optional ? reader.controlledBy(props.optional, 'uid-web') : [];
      return plan({
        apply: [{ object: child('a'), fieldManager: MANAGER, owner: ownedBy('web') }],
        delete: former.map((object) => ({ object })),
      });
    },
  };
}

interface Setup {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
  readonly manager: Manager;
  readonly lines: LogLine[];
}

async function started(
  prepare: (server: FakeApiServer) => void,
  props: Parameters<typeof controller>[0] = {},
): Promise<Setup> {
  const server = new FakeApiServer();
  server.put(WIDGET, widget('web') as unknown as AnyObject);
  prepare(server);
  const clock = new VirtualClock();
  const lines: LogLine[] = [];
  const manager = new Manager({
    ...{ controllers: [controller(props)], transport: server, log: recordingLogger(lines) },
    ...{ metrics: new Metrics(), instance: 'pod-1', clock, random: () => 0, freeze: true },
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  await settled();
  await settled();
  return { server, clock, manager, lines };
}

/** No kind of this plural is served until the returned function is called. */
function unserved(server: FakeApiServer, plural: string): () => void {
  const stream = server.stream.bind(server);
  server.stream = async (request) =>
    request.path.endsWith(`/${plural}`)
      ? { status: 404, chunks: text('404 page not found\n') }
      : stream(request);
  return () => {
    server.stream = stream;
  };
}

// eslint-disable-next-line @typescript-eslint/require-await -- a stream of bytes
async function* text(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content);
}

describe('Before the first lists', () => {
  it('nothing is applied while the list of a child is late, and nothing at all if it shows that all is well', async () => {
    // What a former process has applied.
    const before = await started(() => undefined);
    expect(before.server.writes).toEqual(['PATCH /api/v1/namespaces/shop/configmaps/child']);
    const settledChild = before.server.get(CONFIG_MAP, 'shop/child')!;

    const { server, clock } = await started((fake) => {
      fake.put(CONFIG_MAP, settledChild);
      fake.heldBack.add('configmaps');
    });
    await clock.advance(70_000);
    expect(server.requests).toEqual([]);
    server.openWatches('configmaps');
    await settled();
    await settled();
    expect(server.writes).toEqual([]);
  });

  it('an optional kind that is not served is not waited for, and its objects are found once it is', async () => {
    let install = (): void => undefined;
    const { server, clock, manager } = await started((fake) => (install = unserved(fake, 'services')), {
      optional: SERVICE,
    });
    await clock.advance(20_000);
    expect(manager.notReady()).toEqual([]);
    expect(server.writes).toEqual(['PATCH /api/v1/namespaces/shop/configmaps/child']);
    server.put(SERVICE, anObject(SERVICE, 'old', { ownerReferences: [ownedBy('web')] }));
    install();
    await clock.advance(30_000);
    expect(server.writes).toEqual([
      'PATCH /api/v1/namespaces/shop/configmaps/child',
      'DELETE /api/v1/namespaces/shop/services/old',
    ]);
  });
});

describe('A kind with a bug in what it keeps', () => {
  it('does not hold up others, lists once, and maps what is left', async () => {
    const { server, clock, lines, manager } = await started(
      (fake) => {
        fake.put(CONFIG_MAP, configMap('bad', '1', { ownerReferences: [ownedBy('other')] }));
      },
      {
        keep: (object) => {
          if (object.metadata.name === 'bad') throw new Error('bug');
          return object;
        },
      },
    );
    await clock.advance(60_000);
    expect(manager.notReady()).toEqual([]);
    expect(server.writes).toEqual(['PATCH /api/v1/namespaces/shop/configmaps/child']);
    expect(server.streams.filter(({ plural }) => plural === 'configmaps')).toHaveLength(1);
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});
