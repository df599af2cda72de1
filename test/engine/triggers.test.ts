import { describe, expect, it, vi } from 'vitest';
import type { Plan } from '../../src/contract/controller.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { LANES } from '../../src/engine/work-queue.js';
import type { Runner } from '../../src/engine/runner.js';
import { plan } from './support/bench.js';
import { CONFIG_MAP, configMap, failure, ownedBy, widget, WIDGET } from './support/builders.js';
import type { Meta } from './support/builders.js';
import { apply, cr, startedRunner, WATCHES } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

const child = (meta: Meta = {}, status: unknown = {}): AnyObject => ({
  ...configMap('a', '1', { generation: 1, ownerReferences: [ownedBy('web')], ...meta }),
  status,
});

const depths = ({ queue }: Runner): number[] => LANES.map((lane) => queue.depthOf(lane));

describe('Triggers, lanes', () => {
  it('puts the custom resource before its children, and both before what a list brings', async () => {
    const { runner, deliver, reader } = startedRunner();
    runner.queue.hold('test');
    await deliver(cr('changed'));
    expect(depths(runner)).toEqual([1, 0, 0, 0]);
    await deliver(child());
    expect(depths(runner)).toEqual([1, 1, 0, 0]);
    const store = reader.store(WIDGET);
    store.replace([store.project(cr('listed')), store.project(cr('listed too'))], '1');
    expect(depths(runner)).toEqual([1, 1, 2, 0]);
  });

  it('puts a change of the custom resource first although a list has brought it before', async () => {
    const { runner, deliver, reader } = startedRunner();
    runner.queue.hold('test');
    const store = reader.store(WIDGET);
    store.replace([store.project(cr('web'))], '1');
    await deliver(cr('web'));
    expect(depths(runner)).toEqual([1, 0, 0, 0]);
  });
});

describe('Triggers, a mapping that throws', () => {
  it('for the old state of an object does not hide the new one', async () => {
    const watches = WATCHES.map((watch) => ({
      ...watch,
      mapsTo: (object: AnyObject) => {
        if (object.metadata.generation === 1) throw new TypeError('a bug of the kind');
        return watch.mapsTo(object);
      },
    }));
    const { deliver, reconciled } = startedRunner(undefined, 1, watches);
    await deliver(child());
    expect(reconciled).toEqual([]);
    await deliver(child({ generation: 2 }));
    expect(reconciled).toEqual(['shop/web']);
  });
});

describe('Triggers, changes of the status of a child', () => {
  it('are looked at together, within 100 ms of the first', async () => {
    const { deliver, reconciled, clock } = startedRunner();
    await deliver(child());
    reconciled.length = 0;
    for (let n = 1; n <= 9; n++) {
      await deliver(child({}, { ready: n }));
      await clock.advance(11);
    }
    expect(reconciled).toEqual([]);
    await clock.advance(1);
    expect(reconciled).toEqual(['shop/web']);
    await clock.advance(1_000);
    expect(reconciled).toEqual(['shop/web']);
  });

  it('are looked at within 100 ms although one custom resource changes all the time', async () => {
    const { deliver, reconciled, clock } = startedRunner();
    await deliver(child());
    for (let n = 1; n <= 99; n++) await deliver(widget('other', { generation: n }) as unknown as AnyObject);
    reconciled.length = 0;
    await deliver(child({}, { ready: 1 }));
    await clock.advance(100);
    expect(reconciled).toEqual(['shop/web']);
  });

  it('are looked at within a second while 32 custom resources have changed in the last one', async () => {
    const { deliver, reconciled, clock } = startedRunner();
    await deliver(child());
    for (let n = 1; n <= 32; n++) await deliver(cr(`other${n}`));
    reconciled.length = 0;
    await deliver(child({}, { ready: 1 }));
    await clock.advance(900);
    await deliver(child({}, { ready: 2 }));
    expect(reconciled).toEqual([]);
    await clock.advance(100);
    expect(reconciled).toEqual(['shop/web']);
    // The rush is over.
    await deliver(child({}, { ready: 3 }));
    await clock.advance(100);
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
  });

  it('wait behind everything that has to be made or put right', async () => {
    const { deliver, runner, clock } = startedRunner();
    await deliver(child());
    runner.queue.hold('test');
    await deliver(child({}, { ready: 1 }));
    await clock.advance(100);
    expect(runner.queue.depthOf('status')).toBe(1);
    await deliver(child({ generation: 2 }, { ready: 1 }));
    expect(runner.queue.depthOf('status')).toBe(0);
    expect(runner.queue.depthOf('child')).toBe(1);
  });

  it('are served by a reconcile for another reason', async () => {
    const { deliver, reconciled, clock } = startedRunner();
    await deliver(child());
    reconciled.length = 0;
    await deliver(child({}, { ready: 1 }));
    await deliver(cr('web'));
    expect(reconciled).toEqual(['shop/web']);
    await clock.advance(1_000);
    expect(reconciled).toEqual(['shop/web']);
  });

  it.for<[string, Meta, unknown]>([
    ['its generation', { generation: 2 }, { ready: 1 }],
    ['its labels', { labels: { a: 'b' } }, { ready: 1 }],
    ['its annotations', { annotations: { 'reconstruct.kosmos.io/applied-hash': 'x' } }, { ready: 1 }],
    [
      'its owners',
      { ownerReferences: [ownedBy('web'), { ...ownedBy('b'), controller: false }] },
      { ready: 1 },
    ],
    ['that it is being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, { ready: 1 }],
    ['something that is not kept, and not its status', {}, {}],
  ])('wait for nothing where the change is of %s', async ([, meta, status]) => {
    const watches = [
      { type: WIDGET, keep: (object: AnyObject) => object, mapsTo: () => [] },
      { type: CONFIG_MAP, keep: (object: AnyObject) => object, mapsTo: () => ['shop/web'] },
    ];
    const { deliver, reconciled } = startedRunner(undefined, 2, watches);
    await deliver(child());
    reconciled.length = 0;
    await deliver(child(meta, status));
    expect(reconciled).toEqual(['shop/web']);
  });

  it('wait for nothing where a child has no generation, which would tell of other changes', async () => {
    const { deliver, reconciled } = startedRunner();
    const service = (status: object): AnyObject => ({
      ...configMap('a', '1', { ownerReferences: [ownedBy('web')] }),
      status,
    });
    await deliver(service({}));
    reconciled.length = 0;
    await deliver(service({ loadBalancer: {} }));
    expect(reconciled).toEqual(['shop/web']);
  });

  it('wait for nothing where the custom resource itself is concerned, or a list brings them', async () => {
    const { deliver, reconciled, reader } = startedRunner();
    await deliver(widget('web', {}, { ready: 1 }) as unknown as AnyObject);
    await deliver(widget('web', {}, { ready: 2 }) as unknown as AnyObject);
    expect(reconciled).toHaveLength(2);
    await deliver(child());
    reconciled.length = 0;
    const store = reader.store(CONFIG_MAP);
    store.replace([store.project(child({ resourceVersion: '900' }, { ready: 1 }))], '900');
    await settled();
    expect(reconciled).toEqual(['shop/web']);
  });

  it('leave the time that was asked for and the pause after a failure as they are', async () => {
    const { deliver, clock, server } = startedRunner(() =>
      plan({ apply: [apply('b')], requeueAt: new Date(clock.now() + 60_000) }),
    );
    const times: number[] = [];
    const start = clock.now();
    server.intercept = () => {
      times.push(clock.now() - start);
      return Promise.reject(new Error('ECONNRESET'));
    };
    await deliver(child());
    await clock.advance(20_000);
    times.length = 0;
    await deliver(child({}, { ready: 1 }));
    await clock.advance(40_000);
    // The gathered change, the pauses that end 10,240 ms and 20,480 ms after they began, and what was asked for.
    expect(times).toEqual([20_100, 20_475, 40_955, 60_000]);
  });
});

describe('Triggers, a storm', () => {
  it('of 1,000 events a second on one object leads to one reconcile at a time, and few of them', async () => {
    let inWork = 0;
    let most = 0;
    const { deliver, reconciled, clock, server } = startedRunner(() => plan({ apply: [apply('b')] }), 16);
    server.intercept = async () => {
      most = Math.max(most, ++inWork);
      await new Promise<void>((resolve) => clock.setTimer(20, resolve));
      inWork--;
      return { status: 409, body: {} };
    };
    for (let n = 0; n < 1_000; n++) {
      await deliver(child({}, { ready: n }));
      await clock.advance(1);
    }
    expect(most).toBe(1);
    expect(reconciled.length).toBeLessThan(60);
  });

  it('is coalesced where it is of changes that are looked at at once', async () => {
    const { deliver, reconciled, clock, server } = startedRunner(() => plan({ apply: [apply('b')] }), 16);
    let most = 0;
    let inWork = 0;
    server.intercept = async () => {
      most = Math.max(most, ++inWork);
      await new Promise<void>((resolve) => clock.setTimer(20, resolve));
      inWork--;
      return { status: 422, body: {} };
    };
    for (let n = 1; n <= 200; n++) {
      await deliver(widget('web', { generation: n }) as unknown as AnyObject);
      await clock.advance(1);
    }
    expect(most).toBe(1);
    expect(reconciled.length).toBeLessThan(200);
  });
});

describe('What a plan writes itself', () => {
  const told = (count: number): Plan =>
    plan({
      status: [
        {
          target: cr('web') as unknown as CustomResource,
          fieldManager: 'widget-status',
          status: () => ({ count }),
        },
      ],
    });

  it.each([
    ['after', false],
    ['before', true],
  ])('does not wake it by a status that is new each time, delivered %s the answer', async (_, isFaster) => {
    const runner = startedRunner((_key, count) => told(count));
    const { server, reader, reconciled, clock } = runner;
    const echo = (): void => {
      const live = server.get(WIDGET, 'shop/web');
      if (live) reader.store(WIDGET).observed(live);
    };
    const send = runner.api.apply.bind(runner.api);
    vi.spyOn(runner.api, 'apply').mockImplementation(async (...args) => {
      const answer = await send(...args);
      if (isFaster) echo();
      return answer;
    });
    await runner.deliver(cr('web'));
    echo();
    await clock.advance(5_000);
    expect(reconciled).toHaveLength(1);
  });

  it('wakes it where others have written the status meanwhile', async () => {
    const { server, reader, reconciled, deliver, api } = startedRunner((_key, count) => told(count));
    const send = api.apply.bind(api);
    vi.spyOn(api, 'apply').mockImplementationOnce(async (...args) => {
      const answer = await send(...args);
      const live = server.get(WIDGET, 'shop/web')!;
      reader.store(WIDGET).observed(server.put(WIDGET, { ...live, status: { count: -1 } }));
      return answer;
    });
    await deliver(cr('web'));
    expect(reconciled).toHaveLength(2);
  });

  it('does not wake it by an object that it has created', async () => {
    const { reconciled, deliver, clock } = startedRunner(() => plan({ apply: [apply('a')] }));
    await deliver(cr('web'));
    await clock.advance(5_000);
    expect(reconciled).toHaveLength(1);
  });
});

describe('A value that another object has, such as a node port', () => {
  const claims = (object: AnyObject): string[] => [
    (object.data as { port?: string } | undefined)?.port ?? '',
  ];
  const holder = (port: string): AnyObject => ({ ...configMap('holder', '1'), data: { port } });

  it.each(['goes', 'gives it up'])('is asked for once, and again as soon as its holder %s', async (how) => {
    const watches = [WATCHES[0]!, { ...WATCHES[1]!, keep: (object: AnyObject) => object, claims }];
    const { server, reader, deliver, clock } = startedRunner(
      () => plan({ apply: [{ ...apply('a'), object: { ...apply('a').object, data: { port: '1' } } }] }),
      2,
      watches,
    );
    const causes = [
      {
        ...{ reason: 'FieldValueInvalid', field: 'spec.ports[0].nodePort' },
        message: 'Invalid value: 1: provided port is already allocated',
      },
    ];
    server.intercept = ({ path }) =>
      path.endsWith('/a') ? failure(422, 'Invalid', 'taken', { causes }) : undefined;
    const store = reader.store(CONFIG_MAP);
    store.observed(server.put(CONFIG_MAP, holder('1')));
    const sent = (): number => server.writes.filter((write) => write.includes('/a')).length;
    await deliver(cr('web'));
    await deliver({ ...cr('web'), spec: { size: 2 } });
    await clock.advance(60_000);
    expect(sent()).toBe(1);
    server.intercept = () => undefined;
    const next = server.put(CONFIG_MAP, holder('2'));
    if (how === 'goes') store.observedDeletion(next);
    else store.observed(next);
    await settled();
    expect(sent()).toBe(2);
  });
});
