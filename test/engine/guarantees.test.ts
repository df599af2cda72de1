import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Manager } from '../../src/engine/manager.js';
import { Store } from '../../src/engine/store.js';
import { UndiciTransport } from '../../src/engine/undici-transport.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { render } from '../../src/synth/render.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { anObject, configMap, failure } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const APP = { apiVersion: 'kosmos.io/v1', kind: 'AppService', plural: 'appservices', namespaced: true };
const app = (uid = 'u1') => anObject(APP, 'web', { uid, generation: 1 }, { spec: { size: 1, image: 'a' } });

/** The whole engine, with the kind AppService, on a fake API server. */
async function started(server: FakeApiServer): Promise<VirtualClock> {
  const clock = new VirtualClock();
  const manager = new Manager({
    controllers: [appService.controller(render)],
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
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromOptions({
      clusters: [
        {
          name: 'c',
          server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          skipTLSVerify: true,
        },
      ],
      users: [{ name: 'u', token: 'expired' }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
      currentContext: 'x',
    });
    const transport = new UndiciTransport(kubeConfig, 'test');

    for (let n = 0; n < 20; n++)
      expect((await transport.request({ method: 'GET', path: '/' })).status).toBe(401);

    expect(sockets.size).toBeLessThan(5);
    await transport.close();
  });
});
