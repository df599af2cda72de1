import { describe, expect, it, onTestFinished } from 'vitest';
import type { Controller, Watch } from '../../src/contract/controller.js';
import { Manager } from '../../src/engine/manager.js';
import type { ManagerProps } from '../../src/engine/manager.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  CONFIG_MAP,
  configMap,
  DEPLOYMENT,
  recordingLogger,
  SERVICE,
  widget,
  WIDGET,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { ScriptedStream } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';
import type { AnyObject } from '../../src/contract/object.js';

const GADGET = { ...WIDGET, kind: 'Gadget', plural: 'gadgets' };
const keep = (object: AnyObject): AnyObject => object;

function controller(
  name: string,
  watches: readonly Omit<Watch, 'mapsTo'>[],
  reconciled: string[],
): Controller {
  return {
    ...{ name, kind: name },
    watches: watches.map((watch) => ({ ...watch, mapsTo: () => ['all'] })),
    reconcile: () => {
      reconciled.push(name);
      return plan({});
    },
  };
}

/** Widgets need ConfigMaps and Services, Gadgets other things of ConfigMaps, Services, and Deployments. */
async function started(
  prepare: (server: FakeApiServer) => void,
  namespaces: readonly string[] = [],
  more: Partial<ManagerProps> = {},
) {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  const reconciled: string[] = [];
  server.put(WIDGET, widget('web') as unknown as AnyObject);
  server.put(CONFIG_MAP, configMap('a', '1'));
  prepare(server);
  const manager = new Manager({
    controllers: [
      controller('widget', [{ type: WIDGET }, { type: CONFIG_MAP }, { type: SERVICE }], reconciled),
      controller(
        'gadget',
        [{ type: GADGET }, { type: CONFIG_MAP, keep }, { type: SERVICE }, { type: DEPLOYMENT }],
        reconciled,
      ),
    ],
    ...{ transport: server, metrics: new Metrics(), clock, namespaces },
    ...{ log: recordingLogger([]), instance: 'pod-1', random: () => 0, freeze: true },
    ...more,
  });
  const run = new AbortController();
  const running = manager.run(run.signal);
  onTestFinished(async () => {
    run.abort();
    await running;
  });
  for (let n = 0; n < 5; n++) await settled();
  const opened = (): string[] => server.streams.map(({ plural }) => plural).sort();
  return { server, clock, manager, reconciled, opened };
}

/** Whoever wants to read these is answered 403. */
function forbid(server: FakeApiServer, plural: string, isForbidden: () => boolean): void {
  const open = server.stream.bind(server);
  server.stream = async (request) => {
    if (!isForbidden() || !request.path.endsWith(`/${plural}`)) return open(request);
    server.streams.push({ plural, namespace: undefined, stream: new ScriptedStream(request) });
    const body = JSON.stringify({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'not yours' });
    return { status: 403, chunks: new ScriptedStream(request).send(body).end().chunks() };
  };
}

const ofWidgets = ['configmaps', 'services', 'widgets'];
const ofGadgets = ['configmaps', 'deployments', 'gadgets'];

describe('The watches of a controller', () => {
  it('are open once its custom resources are, and what is watched alike is opened once', async () => {
    const { opened, manager } = await started(() => undefined);

    expect(opened()).toEqual([...ofWidgets, ...ofGadgets].sort());
    expect(manager.notReady()).toEqual([]);
  });

  it('of a kind that is not installed are not opened, and others work', async () => {
    const { server, clock, opened, reconciled, manager } = await started((fake) =>
      fake.unserved.add('gadgets'),
    );

    expect(opened()).toEqual([...ofWidgets, 'gadgets'].sort());
    expect(reconciled).toEqual(['widget']);
    expect(manager.notReady()).toMatchObject([{ what: 'gadgets.demo.example.com' }]);

    await clock.advance(600_000);
    expect(new Set(opened())).toEqual(new Set([...ofWidgets, 'gadgets']));
    // Whether it has a CRD is asked once.
    expect(server.requests.filter(({ path }) => path.includes('customresourcedefinitions'))).toHaveLength(1);
    expect(manager.silentWatches()).toEqual([]);
  });

  it('open once the kind is installed', async () => {
    const { server, clock, opened, reconciled, manager } = await started((fake) =>
      fake.unserved.add('gadgets'),
    );

    server.unserved.delete('gadgets');
    await clock.advance(30_000);
    expect(opened().filter((plural) => plural === 'deployments')).toEqual(['deployments']);
    expect(opened().filter((plural) => plural === 'configmaps')).toHaveLength(2);
    expect(manager.notReady()).toEqual([]);
    expect(reconciled).toContain('gadget');
  });

  it('wait where the right to read the custom resources is missing, until it is given', async () => {
    let forbidden = true;
    const { clock, opened, manager } = await started((fake) => {
      forbid(fake, 'gadgets', () => forbidden);
    });

    expect(opened()).not.toContain('deployments');
    expect(manager.notReady()).toMatchObject([
      { what: 'gadgets.demo.example.com', why: expect.stringContaining('not yours') as string },
    ]);

    forbidden = false;
    await clock.advance(120_000);
    expect(opened()).toContain('deployments');
    expect(manager.notReady()).toEqual([]);
  });

  it('stay open when the kind is removed', async () => {
    const { server, clock, opened, manager } = await started(() => undefined);

    server.unserved.add('gadgets');
    for (const { plural, stream } of server.streams) if (plural === 'gadgets') stream.end();
    await clock.advance(20_000);
    expect(opened().filter((plural) => plural === 'deployments')).toHaveLength(1);
    expect(manager.notReady()).toEqual([]);
  });
});
