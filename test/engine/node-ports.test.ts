import { describe, expect, it, onTestFinished } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Manager } from '../../src/engine/manager.js';
import { freedIds, NodePorts, waitsFor } from '../../src/engine/node-ports.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import {
  anObject,
  failure,
  MANAGER,
  ownedBy,
  recordingLogger,
  SERVICE,
  widget,
  WIDGET,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const PORT = 30_001;
const MINUTE = 60_000;

function service(name: string, ...nodePorts: readonly number[]): AnyObject {
  return anObject(SERVICE, name, {}, { spec: { ports: nodePorts.map((nodePort) => ({ nodePort })) } });
}

describe('A node port is free again', () => {
  it.each([
    ['when its Service goes', service('a', 1, 2), undefined, [1, 2]],
    ['when its Service gives it up', service('a', 1, 2), service('a', 2), [1]],
    ['when its Service asks for none', service('a', 1), anObject(SERVICE, 'a'), [1]],
    ['not when its Service comes', undefined, service('a', 1), []],
    ['not when its Service is something else besides', service('a', 1), service('a', 2, 1), []],
    ['not when what goes had none', service('a', 0), undefined, []],
    ['not when what goes is no Service', { ...service('a', 1), kind: 'Other' }, undefined, []],
    [
      'not when what goes is of another group',
      { ...service('a', 1), apiVersion: 'other.io/v1' },
      undefined,
      [],
    ],
    ['not when something else is kept of it', { ...service('a'), spec: { ports: 1 } }, undefined, []],
  ])('%s', (_, before, after, ports) => {
    expect(freedIds(before, after)).toEqual(ports.map((port) => `node port ${port}`));
    const nodePorts = new NodePorts(new VirtualClock());
    nodePorts.changed(before, after);
    expect([1, 2].filter((port) => nodePorts.timesFreed(service('b', port)) > 0)).toEqual(ports);
  });

  it('for whoever asks for it', () => {
    expect(waitsFor(service('b', 1, 2))).toEqual(
      expect.arrayContaining(freedIds(service('a', 2), undefined)),
    );
    expect(waitsFor(service('b', 1))).not.toEqual(
      expect.arrayContaining(freedIds(service('a', 2), undefined)),
    );
  });
});

const WATCHES: readonly Watch[] = [
  { type: WIDGET, keep: (object) => object, mapsTo: ({ metadata }) => [`shop/${metadata.name}`] },
  {
    type: SERVICE,
    keep: (object) => object,
    mapsTo: (object) => {
      const owner = controllerOf(object);
      return owner ? [`shop/${owner.name}`] : [];
    },
  },
];

/** Widget `web` wants a Service `web` with the node port, which the Service `holder` has. */
async function refusedOnce() {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  let released = true;
  const isTaken = (): boolean => {
    if (!released) return true;
    const holder = server.get(SERVICE, 'shop/holder') as { spec?: { ports: object } } | undefined;
    return JSON.stringify(holder?.spec?.ports ?? []).includes(String(PORT));
  };
  let beforeAnswer = (): void => undefined;
  server.intercept = ({ method, path }) => {
    if (method !== 'PATCH' || !path.endsWith('/services/web') || !isTaken()) return undefined;
    beforeAnswer();
    const why = 'spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated';
    const message = why.slice('spec.ports[0].nodePort: '.length);
    const causes = [{ reason: 'FieldValueInvalid', message, field: 'spec.ports[0].nodePort' }];
    return failure(422, 'Invalid', `Service "web" is invalid: ${why}`, { causes });
  };
  const step = { object: service('web', PORT), fieldManager: MANAGER, owner: ownedBy('web') };
  const controller = {
    ...{ name: 'widget', kind: 'Widget', watches: WATCHES },
    reconcile: (key: string) => plan(key === 'shop/web' ? { apply: [step] } : {}),
  };
  const manager = new Manager({
    ...{ controllers: [controller], transport: server, metrics: new Metrics(), clock },
    ...{ log: recordingLogger([]), instance: 'pod-1', random: () => 0 },
  });
  const run = new AbortController();
  const running = manager.run(run.signal);
  onTestFinished(async () => {
    run.abort();
    await running;
  });
  server.put(SERVICE, service('holder', PORT));
  await settled();
  return {
    ...{ server, clock },
    keepsUntilReleased: () => {
      released = false;
      return () => (released = true);
    },
    tries: () => server.writes.filter((line) => line.endsWith('/services/web')).length,
    made: () => server.get(SERVICE, 'shop/web') !== undefined,
    create: async (during: () => void = () => undefined) => {
      beforeAnswer = during;
      server.put(WIDGET, widget('web') as unknown as AnyObject);
      await settled();
      beforeAnswer = () => undefined;
      await clock.advance(1_000);
    },
  };
}

describe('A node port that another Service has', () => {
  it('is asked for once, whatever else changes', async () => {
    const { server, clock, create, tries } = await refusedOnce();
    await create();
    server.put(WIDGET, widget('web', { labels: { a: 'b' } }) as unknown as AnyObject);
    server.put(SERVICE, service('holder', PORT, 30_002));
    server.put(SERVICE, service('other', 30_003));
    server.remove(SERVICE, 'shop/other');
    await clock.advance(4 * MINUTE);
    expect(tries()).toBe(1);
  });

  it('is taken as soon as the Service goes', async () => {
    const { server, create, tries, made } = await refusedOnce();
    await create();
    expect(made()).toBe(false);
    server.remove(SERVICE, 'shop/holder');
    await settled();
    expect([tries(), made()]).toEqual([2, true]);
  });

  it('is taken as soon as the Service gives it up', async () => {
    const { server, create, tries, made } = await refusedOnce();
    await create();
    server.put(SERVICE, service('holder', 30_002));
    await settled();
    expect([tries(), made()]).toEqual([2, true]);
  });

  it('is asked for again while the API server has yet to release it', async () => {
    const { server, clock, create, tries, made, keepsUntilReleased } = await refusedOnce();
    await create();
    const release = keepsUntilReleased();
    server.remove(SERVICE, 'shop/holder');
    await clock.advance(100);
    expect(made()).toBe(false);
    release();
    await clock.advance(200);
    expect(made()).toBe(true);
    expect(tries()).toBeLessThan(9);
  });

  it('is asked for a dozen times at most where the API server does not release it', async () => {
    const { server, clock, create, tries, keepsUntilReleased } = await refusedOnce();
    await create();
    keepsUntilReleased();
    server.remove(SERVICE, 'shop/holder');
    await clock.advance(4 * MINUTE);
    expect(tries()).toBeGreaterThan(9);
    expect(tries()).toBeLessThan(15);
  });

  it('is taken although the Service went while it was asked for', async () => {
    const { server, clock, create, made } = await refusedOnce();
    await create(() => {
      server.remove(SERVICE, 'shop/holder');
    });
    await clock.advance(1_000);
    expect(made()).toBe(true);
  });

  it('is asked for again every five minutes or more, since the Service may be out of sight', async () => {
    const { clock, create, tries } = await refusedOnce();
    await create();
    await clock.advance(5 * MINUTE);
    expect(tries()).toBe(2);
    await clock.advance(5 * MINUTE);
    expect(tries()).toBe(3);
  });
});
