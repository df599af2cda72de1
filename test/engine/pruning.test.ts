import { expect, it } from 'vitest';
import type { Controller } from '../../src/contract/controller.js';
import { plan } from './support/bench.js';
import { apply, CONFIG_MAP, configMap, ownedBy, widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { startedManager } from './support/started-manager.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

it('prunes a part of many objects in one pass, so that others have their turn, and all of them in the end', async () => {
  const [server, clock] = [new FakeApiServer(), new VirtualClock()];
  const many = ['many-1', 'many-2'];
  const OBJECTS = 350;
  for (const name of many) {
    server.put(WIDGET, widget(name, { uid: `uid-${name}` }));
    for (let n = 0; n < OBJECTS; n++)
      server.put(CONFIG_MAP, configMap(`${name}-${n}`, '1', { ownerReferences: [ownedBy(name)] }));
  }
  let isPruning = false;
  const controller: Controller = {
    ...{ name: 'widget', kind: 'Widget' },
    watches: [
      { type: WIDGET, mapsTo: ({ metadata }) => [metadata.name] },
      { type: CONFIG_MAP, mapsTo: () => [] },
    ],
    reconcile: (key, reader) => {
      if (!many.includes(key)) return plan({ steps: [apply('child')] });
      const objects = isPruning ? reader.controlledBy(CONFIG_MAP, `uid-${key}`) : [];
      return plan({ steps: objects.map((object) => ({ do: 'prune', object })) });
    },
  };
  const deleted = (): number => server.requests.filter(({ method }) => method === 'DELETE').length;
  let deletedBefore: number | undefined;
  await startedManager({ controllers: [controller], server, clock, workers: 2 });
  server.intercept = async ({ method, path }) => {
    if (method === 'PATCH' && path.includes('child')) deletedBefore ??= deleted();
    // An answer takes its time.
    if (method === 'DELETE') await new Promise<void>((resolve) => void clock.setTimer(10, resolve));
    return undefined;
  };
  isPruning = true;
  for (const name of many) server.put(WIDGET, widget(name, { uid: `uid-${name}`, annotations: { a: 'b' } }));
  await settled();
  server.put(WIDGET, widget('other'));
  await clock.advance(60_000);
  expect(deletedBefore).toBeLessThanOrEqual(2 * 100);
  expect(deleted()).toBe(2 * OBJECTS);
});
