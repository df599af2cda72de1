import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Queue } from '../../src/engine/work-queue.js';
import { Blockers, Rush, Triggers } from '../../src/engine/triggers.js';
import { newBench, plan } from './support/bench.js';
import {
  CONFIG_MAP,
  configMap,
  failure,
  ownedBy,
  recordingLogger,
  STATUS_MANAGER,
  widget,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { apply, cr, startedRunner, WATCHES } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

const data = (step: ReturnType<typeof apply>, value: string) => ({
  ...step,
  object: { ...step.object, data: { value } },
});

/** Somebody changes the child, and the watch hasn't told of it. */
function change({ server }: StartedRunner, parts: object, generation?: number): void {
  const live = server.get(CONFIG_MAP, 'shop/a');
  if (!live) return;
  const metadata = generation === undefined ? live.metadata : { ...live.metadata, generation };
  server.put(CONFIG_MAP, { ...live, ...parts, metadata });
}

/** A controller whose ConfigMaps are watched for another key too. */
const sharedWith = (...others: string[]): readonly Watch[] => [
  WATCHES[0]!,
  {
    type: CONFIG_MAP,
    mapsTo: (object) => {
      const owner = controllerOf(object);
      return owner ? [`shop/${owner.name}`, ...others] : others;
    },
  },
];

const oneChild = (_key: string, count: number) => plan({ apply: [data(apply('a'), String(count))] });

describe('What a plan writes', () => {
  it('does not call for another plan where it has made the child', async () => {
    const { deliver, reconciled, server } = startedRunner(() => plan({ apply: [apply('a'), apply('b')] }));
    await deliver(cr('web'));
    await settled();
    expect(server.writes).toHaveLength(2);
    expect(reconciled).toEqual(['shop/web']);
  });

  it('does not call for another plan where it has changed the child', async () => {
    const { deliver, reconciled, server } = startedRunner(oneChild);
    await deliver(cr('web'));
    await deliver(cr('web'));
    expect(server.writes).toHaveLength(2);
    expect(reconciled).toHaveLength(2);
  });

  it('does not call for another plan where the watch is faster than the answer', async () => {
    const started = startedRunner(oneChild);
    const { deliver, reconciled, server, reader } = started;
    await deliver(cr('web'));
    server.intercept = async (request) => {
      server.intercept = () => undefined;
      const answer = await server.request(request);
      reader.store(CONFIG_MAP).observed(answer.body as AnyObject);
      return answer;
    };
    await deliver(cr('web'));
    expect(reconciled).toHaveLength(2);
  });

  it('calls other keys that the object maps to', async () => {
    const { deliver, reconciled } = startedRunner(
      (key) => plan(key === 'shop/web' ? { apply: [apply('a')] } : {}),
      2,
      sharedWith('shop/other'),
    );
    await deliver(cr('web'));
    expect(reconciled).toEqual(['shop/web', 'shop/other']);
  });

  it('calls every key that has written the object at the same time', async () => {
    const gate = Promise.withResolvers<undefined>();
    let value = 'first';
    const { deliver, reconciled, server } = startedRunner(
      (key) => {
        const { owner: _, ...shared } = data(apply('a'), value);
        return plan({ apply: [{ ...shared, fieldManager: key }] });
      },
      2,
      sharedWith('shop/one', 'shop/two'),
    );
    await deliver(cr('one'));
    await settled();
    reconciled.length = 0;
    value = 'second';
    server.intercept = () => gate.promise;
    await deliver(cr('one'));
    await deliver(cr('two'));
    gate.resolve(undefined);
    await settled();
    expect(reconciled).toEqual(['shop/one', 'shop/two', 'shop/one', 'shop/two']);
  });
});

describe('What a plan writes, when somebody else has changed the object meanwhile', () => {
  it.for<[string, object, number | undefined]>([
    ['its status', { status: { ready: 1 } }, undefined],
    ['what is asked of it', {}, 9],
  ])('calls for another plan if it was %s', async ([, parts, generation]) => {
    const started = startedRunner(oneChild);
    const { deliver, reconciled, server } = started;
    await deliver(cr('web'));
    server.intercept = () => {
      change(started, parts, generation);
      server.intercept = () => undefined;
      return undefined;
    };
    await deliver(cr('web'));
    expect(reconciled.slice(0, 3)).toEqual(['shop/web', 'shop/web', 'shop/web']);
  });

  it('calls for another plan if it was there already', async () => {
    const { deliver, reconciled, server } = startedRunner(() => plan({ apply: [apply('a')] }));
    server.put(CONFIG_MAP, configMap('a', '1', { ownerReferences: [ownedBy('web')] }));
    await deliver(cr('web'));
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
  });

  it.for<[string, 'status' | undefined, string[]]>([
    ['calls all keys for a status that came with the answer', undefined, ['shop/web', 'shop/other']],
    ['calls nobody for a status that it has written itself', 'status', []],
  ])('%s', async ([, subresource, called]) => {
    const watches = sharedWith('shop/other');
    const { reader, clock, lines } = newBench(new FakeApiServer(), watches);
    const controller = { name: 'widget', kind: 'Widget', watches, reconcile: () => plan({}) };
    const queue = new Queue({ clock, random: () => 0 });
    const log = recordingLogger(lines);
    new Triggers({ controller, reader, queue, blockers: new Blockers(), rush: new Rush(clock), log });
    const child = (version: string, ready: number): AnyObject => ({
      ...configMap('a', version, { generation: 1, ownerReferences: [ownedBy('web')] }),
      status: { ready },
    });
    const store = reader.store(CONFIG_MAP);
    store.replace([store.project(child('1', 0))], '1');
    while (queue.depth > 0) queue.done((await queue.take())!);

    const answer = { object: child('2', 1) };
    const { writer } = reader.forKey('shop/web');
    await store.write('shop/a', writer, () => Promise.resolve(answer), subresource);

    const keys: string[] = [];
    while (queue.depth > 0) keys.push((await queue.take())!);
    expect(keys).toEqual(called);
  });

  it('makes an object anew once, and looks at what has gone', async () => {
    const { deliver, reconciled, server } = startedRunner((_, count) =>
      plan({ apply: [{ ...data(apply('a'), count === 1 ? 'old' : 'new'), recreate: true }] }),
    );
    await deliver(cr('web'));
    let refused = false;
    server.intercept = ({ method }) => {
      if (method !== 'PATCH' || refused) return undefined;
      refused = true;
      const causes = [
        { reason: 'FieldValueForbidden', message: 'Forbidden: field is immutable', field: 'data' },
      ];
      return failure(422, 'Invalid', 'data: field is immutable', { causes });
    };
    await deliver(cr('web'));
    expect(server.writes.map((write) => write.split(' ')[0])).toEqual([
      'PATCH',
      'PATCH',
      'POST',
      'DELETE',
      'PATCH',
    ]);
    // The one that it has deleted calls once more, which finds everything as it should be.
    expect(reconciled).toHaveLength(3);
  });

  it('does not wake itself by a status that differs each time', async () => {
    const { deliver, reconciled } = startedRunner((_, count) => {
      const target = widget('web', { generation: 1 });
      return plan({ status: [{ target, fieldManager: STATUS_MANAGER, status: () => ({ count }) }] });
    });
    await deliver(widget('web', { generation: 1 }) as unknown as AnyObject);
    expect(reconciled).toEqual(['shop/web']);
  });
});
