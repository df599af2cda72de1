import { describe, expect, it, onTestFinished } from 'vitest';
import type { ApplyStep, Controller } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { Manager } from '../../src/engine/manager.js';
import { Store } from '../../src/engine/cache.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  anObject,
  CONFIG_MAP,
  MANAGER,
  ownedBy,
  recordingLogger,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const ROUTE = resourceType({ apiVersion: 'gateway.io/v1', kind: 'Route' });

const step = (type: typeof ROUTE): ApplyStep => ({
  object: anObject(type, 'web'),
  fieldManager: MANAGER,
  owner: ownedBy('web'),
});

/** A controller that makes a Route, which need not be installed, and a ConfigMap for each Widget. */
function controller(reconciled: string[]): Controller {
  return {
    name: 'widget',
    kind: 'Widget',
    watches: [
      { type: WIDGET, keep: (object) => object, mapsTo: () => ['shop/web'] },
      { type: ROUTE, optional: true, mapsTo: () => ['shop/web'] },
      { type: CONFIG_MAP, mapsTo: () => ['shop/web'] },
    ],
    reconcile: (key, reader) => {
      reconciled.push(key);
      const target = reader.get(WIDGET, key) as unknown as ReturnType<typeof widget>;
      return plan({
        apply: [step(ROUTE), step(CONFIG_MAP)],
        status: [
          {
            target,
            fieldManager: STATUS_MANAGER,
            status: (changes) => ({ told: changes.map(({ error }) => error?.message ?? '') }),
          },
        ],
      });
    },
  };
}

async function started() {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  const reconciled: string[] = [];
  server.put(WIDGET, widget('web') as unknown as AnyObject);
  server.unserved.add('routes');
  const manager = new Manager({
    ...{ controllers: [controller(reconciled)], transport: server, metrics: new Metrics(), clock },
    ...{ log: recordingLogger([]), instance: 'pod-1', random: () => 0, freeze: true },
  });
  const run = new AbortController();
  const running = manager.run(run.signal);
  onTestFinished(async () => {
    run.abort();
    await running;
  });
  for (let n = 0; n < 5; n++) await settled();
  const told = (): unknown =>
    (server.get(WIDGET, 'shop/web') as { status?: { told?: unknown } }).status?.told;
  const writesOf = (plural: string): string[] => server.writes.filter((write) => write.includes(plural));
  return { server, clock, reconciled, manager, told, writesOf };
}

/** It is gone: the watch ends, and from then on the API server knows no such path. */
function uninstall(server: FakeApiServer): void {
  server.unserved.add('routes');
  server.remove(ROUTE, 'shop/web');
  for (const { plural, stream } of server.streams) if (plural === 'routes') stream.end();
}

const REFUSAL =
  "Route shop/web can't be made: the kind Route of the group gateway.io is not installed in this cluster; " +
  'install its CustomResourceDefinition (gateway.io/v1), or remove what asks for it';

describe('An optional kind that is not installed', () => {
  it('keeps nothing from starting, and is told of without a request; the rest is applied', async () => {
    const { manager, told, writesOf } = await started();
    expect(manager.notReady()).toEqual([]);
    expect(told()).toEqual([REFUSAL, '']);
    expect(writesOf('routes')).toEqual([]);
    expect(writesOf('configmaps')).toHaveLength(1);
  });

  it('is asked for no more often than any kind that is not served, and its keys are left alone', async () => {
    const { server, clock, reconciled, writesOf } = await started();
    await clock.advance(70_000);
    expect(server.streams.filter(({ plural }) => plural === 'routes').length).toBeLessThan(12);
    expect(reconciled.length).toBeLessThan(3);
    expect(writesOf('routes')).toEqual([]);
  });

  it('is made use of once it is installed, without a change of anything else', async () => {
    const { server, clock, told, writesOf } = await started();
    server.unserved.delete('routes');
    await clock.advance(30_000);
    expect(writesOf('routes')).toHaveLength(1);
    expect(told()).toEqual(['', '']);
  });

  it('is told of again once it is removed, and made use of once it is back', async () => {
    const { server, clock, told, writesOf, manager } = await started();
    server.unserved.delete('routes');
    await clock.advance(30_000);
    uninstall(server);
    server.requests.length = 0;
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.includes('routes') && server.unserved.has('routes')
        ? { status: 404, body: '404 page not found' }
        : undefined;
    await clock.advance(60_000);
    const tries = writesOf('routes').length;
    expect(told()).toEqual([REFUSAL, '']);
    expect(manager.notReady()).toEqual([]);
    await clock.advance(300_000);
    expect(writesOf('routes')).toHaveLength(tries);
    server.unserved.delete('routes');
    await clock.advance(30_000);
    expect(told()).toEqual(['', '']);
    expect(server.get(ROUTE, 'shop/web')).toBeDefined();
  });
});

describe('A kind that was installed', () => {
  it('is missed in its own namespace only, where each has a watch of its own', () => {
    const store = new Store({ keep: (object) => object, perNamespace: true });
    store.setUnserved('shop', 'missing');
    expect([store.unservedIn('shop'), store.unservedIn('other')]).toEqual(['missing', undefined]);
  });
});

describe('A kind whose version is not served while its CRD is there', () => {
  const crd = { spec: { versions: [{ name: 'v2', served: true }] } };
  const installed = (server: FakeApiServer): void => {
    server.intercept = ({ path }) =>
      path.includes('/customresourcedefinitions/') ? { status: 200, body: crd } : undefined;
  };
  const endWatches = (server: FakeApiServer, of: string): void => {
    server.unserved.add(of);
    for (const { plural, stream } of server.streams) if (plural === of) stream.end();
  };

  it('holds back what names an optional one, tells why, and goes on without a restart', async () => {
    const { server, clock, told, writesOf, manager } = await started();
    server.unserved.delete('routes');
    await clock.advance(30_000);
    installed(server);
    endWatches(server, 'routes');
    await clock.advance(1_000);
    server.requests.length = 0;
    server.put(WIDGET, {
      ...(server.get(WIDGET, 'shop/web') as AnyObject),
      spec: { other: true },
    });
    server.remove(CONFIG_MAP, 'shop/web');
    await clock.advance(60_000);
    expect([...writesOf('routes'), ...writesOf('configmaps')]).toEqual([]);
    expect(told()).toEqual([expect.stringContaining('Route is not served as gateway.io/v1'), '']);
    expect(manager.notReady()).toMatchObject([
      { what: 'routes.gateway.io', why: expect.stringContaining('serves v2') as string },
    ]);
    server.unserved.delete('routes');
    await clock.advance(60_000);
    expect(told()).toEqual(['', '']);
    expect(server.get(CONFIG_MAP, 'shop/web')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });

  it('holds back everything where its objects are the custom resources', async () => {
    const { server, clock, reconciled, manager } = await started();
    installed(server);
    endWatches(server, 'widgets');
    await clock.advance(1_000);
    reconciled.length = 0;
    server.remove(CONFIG_MAP, 'shop/web');
    await clock.advance(60_000);
    expect(reconciled).toEqual([]);
    expect(manager.notReady()).toMatchObject([{ what: 'widgets.demo.example.com' }]);
    server.unserved.delete('widgets');
    await clock.advance(30_000);
    expect(server.get(CONFIG_MAP, 'shop/web')).toBeDefined();
    expect(manager.notReady()).toEqual([]);
  });
});
