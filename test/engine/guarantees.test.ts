import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Manager } from '../../src/engine/manager.js';
import { Store } from '../../src/engine/cache.js';
import { UndiciTransport } from '../../src/engine/transport.js';
import type { Controller } from '../../src/contract/controller.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import type { JobWatcherStatus } from '../../src/kinds/job-watcher/spec.js';
import { render } from '../../src/synth/render.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { anObject, configMap, failure } from './support/builders.js';
import type { ApiRequest, ApiResponse, ApiStream } from '../../src/engine/transport.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';
import { accessTo } from './support/h2-server.js';

const APP = { apiVersion: 'kosmos.io/v1', kind: 'AppService', plural: 'appservices', namespaced: true };
const app = (uid = 'u1') => anObject(APP, 'web', { uid, generation: 1 }, { spec: { size: 1, image: 'a' } });

/** The whole engine, with one kind, on a fake API server. */
async function started(
  server: FakeApiServer,
  controllers: readonly Controller[] = [appService.controller(render)],
  clock = new VirtualClock(),
): Promise<VirtualClock> {
  const manager = new Manager({
    controllers,
    transport: server,
    log: silentLogger,
    metrics: new Metrics(),
    instance: 'pod-1',
    clock,
    random: () => 0,
  });
  const abort = new AbortController();
  const running = manager.run(abort.signal);
  onTestFinished(async () => {
    abort.abort();
    await running;
  });
  for (let turn = 0; turn < 20; turn++) await settled();
  return clock;
}

const appliesOf = (server: FakeApiServer): string[] =>
  server.writes.filter((write) => write.includes('deployments'));

describe('The engine as a whole', () => {
  it.for([
    ['the same text', () => 'failed calling webhook "x": i/o timeout'],
    [
      'a text that differs each time',
      (n: number) => `read tcp 10.0.0.1:${40_000 + n}->10.0.0.2:443: i/o timeout`,
    ],
  ] as const)('keeps its pauses when a failure has %s', async ([, text]) => {
    const server = new FakeApiServer();
    let tries = 0;
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.includes('deployments')
        ? failure(500, 'InternalError', text(tries++))
        : undefined;
    server.put(APP, app());

    const clock = await started(server);

    expect(appliesOf(server)).toHaveLength(1);
    await clock.advance(5);
    expect(appliesOf(server)).toHaveLength(2);
  });

  it('gives a namesake of a refused custom resource its own try', async () => {
    const server = new FakeApiServer();
    let refuse = true;
    server.intercept = ({ method, path }) =>
      refuse && method === 'PATCH' && path.includes('deployments')
        ? failure(422, 'Invalid', 'exceeds the policy')
        : undefined;
    server.put(APP, app('u1'));
    const clock = await started(server);
    expect(appliesOf(server)).toHaveLength(1);
    server.remove(APP, 'shop/web');
    await clock.advance(60_000);
    refuse = false;

    server.put(APP, app('u2'));
    await clock.advance(1_000);

    expect(appliesOf(server)).toHaveLength(2);
  });
});

const JOB = { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs', namespaced: true };
const HOUR = 3_600_000;
let uids = 0;

/** An API server that gives the time with its answers: the time that passes, whatever our wall clock is set to. */
class PunctualServer extends FakeApiServer {
  givesTime = true;

  constructor(private readonly clock: VirtualClock) {
    super();
  }

  private get date(): { dateMilliseconds?: number } {
    return this.givesTime ? { dateMilliseconds: this.clock.monotonic() } : {};
  }

  override async request(request: ApiRequest): Promise<ApiResponse> {
    return { ...(await super.request(request)), ...this.date };
  }

  override async stream(request: ApiRequest): Promise<ApiStream> {
    return { ...(await super.stream(request)), ...this.date };
  }
}

describe.each([
  ['forward', HOUR],
  ['back', -HOUR],
])('A JobWatcher whose operator has its clock set %s by an hour', (_, shift) => {
  /** Jobs that finished at the start, and a JobWatcher that deletes them two hours later. */
  async function setup(more = {}) {
    const clock = new VirtualClock();
    const start = clock.monotonic();
    const server = new PunctualServer(clock);
    const finished = { type: 'Complete', status: 'True', lastTransitionTime: new Date(start).toISOString() };
    const addJob = (name: string): void => {
      server.put(JOB, anObject(JOB, name, { uid: `uid-${++uids}` }, { status: { conditions: [finished] } }));
    };
    const deletions: string[] = [];
    const onDelete = { call: () => undefined };
    server.intercept = ({ method, path }) => {
      if (method === 'DELETE') {
        deletions.push(`${path.split('/').at(-1)} ${((clock.monotonic() - start) / HOUR).toFixed(2)}`);
        onDelete.call();
      }
      // Its streams are silent for too long, so it is asked whether it is there.
      return ['/version', '/readyz'].includes(path) ? { status: 200, body: {} } : undefined;
    };
    addJob('a');
    const watcher = { spec: { completedTTL: '2h', ...more }, status: { observedGeneration: -1 } };
    server.put(jobWatcher.type, anObject(jobWatcher.type, 'sweeper', { generation: 1 }, watcher));
    await started(server, jobWatcher.controllers({ render }), clock);
    return { clock, server, addJob, deletions, onDelete };
  }

  it('deletes each Job when its time has come by the API server, though that gives no time meanwhile', async () => {
    const { clock, server, addJob, deletions } = await setup();
    await clock.advance(HOUR);
    server.givesTime = false;
    clock.setWallBy(shift);
    addJob('b');
    await clock.advance(0.99 * HOUR);
    expect(deletions).toEqual([]);
    await clock.advance(2 * HOUR);
    expect(deletions).toEqual(['a 2.00', 'b 2.00']);
  });

  it('keeps to the times of its limits and of its status, also where it happens in the middle of a run', async () => {
    const { clock, server, addJob, deletions, onDelete } = await setup({
      limits: { maxPerRun: 1, mode: 'Throttle' },
      frequency: '1h',
    });
    addJob('b');
    onDelete.call = () => {
      if (deletions.length === 1) clock.setWallBy(shift);
      return undefined;
    };
    await clock.advance(2.5 * HOUR);
    const { status } = server.get(jobWatcher.type, 'shop/sweeper') as { status?: JobWatcherStatus };
    expect(status?.lastFinished).toBe(
      new Date(clock.monotonic() - 0.5 * HOUR).toISOString().replace('.000', ''),
    );
    await clock.advance(2 * HOUR);
    expect(deletions).toEqual(['a 2.00', 'b 3.00']);
  });

  it('leaves a Job alone that has come back twice within a day, and no longer', async () => {
    const { clock, addJob, deletions } = await setup();
    await clock.advance(2 * HOUR);
    addJob('a');
    await clock.advance(HOUR);
    clock.setWallBy(24 * shift);
    addJob('a');
    await clock.advance(22 * HOUR);
    expect(deletions).toHaveLength(2);
    await clock.advance(3 * HOUR);
    expect(deletions).toHaveLength(3);
  });
});

describe('Store, after the server was put back to a backup', () => {
  it('believes nothing that it knew', () => {
    const store = new Store({ keep: (object) => object });
    store.observed(configMap('a', '5000'));
    store.observed(configMap('gone', '5001'));

    store.replace([store.project(configMap('a', '3000'))], '4000');
    store.observed(configMap('a', '4001'));

    expect(store.get('shop/a')?.object.metadata.resourceVersion).toBe('4001');
    expect(store.get('shop/gone')).toBeUndefined();
  });
});

describe('UndiciTransport', () => {
  it('keeps its connections when the API server rejects the credentials', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((_, answer) => {
      answer.writeHead(401, { 'content-type': 'application/json' }).end('{}');
    });
    server.on('connection', (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const transport = new UndiciTransport(accessTo(url, 'expired'), 'test');

    for (let n = 0; n < 20; n++)
      expect((await transport.request({ method: 'GET', path: '/' })).status).toBe(401);

    expect(sockets.size).toBeLessThan(5);
    await transport.close();
  });
});
