import { describe, expect, it, vi } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import type { Plan } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { LANES } from '../../src/engine/loop/work-queue.js';
import type { Runner } from '../../src/engine/loop/runner.js';
import { plan } from './support/bench.js';
import { apply, CONFIG_MAP, configMap, failure, ownedBy, widget, WIDGET } from './support/builders.js';
import type { Meta } from './support/builders.js';
import { startedRunner, WATCHES } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

const child = (meta: Meta = {}, status: unknown = {}): AnyObject => ({
  ...configMap('a', '1', { generation: 1, ownerReferences: [ownedBy('web')], ...meta }),
  status,
});

const throwing = (): never => {
  throw new TypeError('a bug');
};

const depths = ({ queue }: Runner): number[] => LANES.map((lane) => queue.depthOf(lane));

describe('Wakes, lanes', () => {
  it('puts the custom resource before its children, and both before what a list brings', async () => {
    const { runner, deliver, reader } = startedRunner();
    runner.queue.hold('test');
    await deliver(widget('changed'));
    expect(depths(runner)).toEqual([1, 0, 0, 0]);
    await deliver(child());
    expect(depths(runner)).toEqual([1, 1, 0, 0]);
    const store = reader.store(WIDGET);
    store.replace([store.project(widget('listed')), store.project(widget('listed too'))], '1');
    expect(depths(runner)).toEqual([1, 1, 2, 0]);
  });
});

describe('Wakes, what a kind returns', () => {
  const [resources, children] = WATCHES as [Watch, Watch];

  it.for<[string, () => never]>([
    ['throws', throwing],
    ['returns nothing', () => undefined as never],
    ['returns one text', () => 'shop/web' as never],
    ['returns something else than texts', () => [{ name: 'web' }] as never],
  ])('hides no other object where mapsTo %s for one', async ([, returned]) => {
    const mapsTo = (object: AnyObject) => (object.metadata.uid === 'bad' ? returned() : ['shop/web']);
    const watch = { ...children, readOnly: true, mapsTo };
    const { deliver, reconciled, clock, lines } = startedRunner(undefined, 2, [resources, watch]);
    await deliver({ ...child(), metadata: { ...child().metadata, name: 'bad', uid: 'bad' } });
    await deliver(child());
    await clock.advance(1_000);
    expect(reconciled).toEqual(['shop/web']);
    expect(lines.map(({ message }) => message)).toContain(
      "ConfigMap shop/bad can't be mapped, which is a bug of the kind",
    );
  });

  it('hides no change from other custom resources where concerns throws for one', async () => {
    const concerns: Watch['concerns'] = (_, { metadata }) => metadata.name === 'web' || throwing();
    const { deliver, reconciled, lines } = startedRunner(undefined, 2, [
      resources,
      { ...children, mapsTo: () => [], concerns },
    ]);
    for (const name of ['bad', 'web']) await deliver(widget(name));
    reconciled.length = 0;
    await deliver(child());
    expect(reconciled).toEqual(['shop/web']);
    expect(lines.map(({ message }) => message)).toContain(
      "Widget shop/bad can't be matched with what it may be concerned by, which is a bug of the kind",
    );
  });

  it('names the object whose change could not be looked at', async () => {
    const claims: Watch['claims'] = () => 7 as never;
    const { deliver, reconciled, lines } = startedRunner(undefined, 2, [resources, { ...children, claims }]);
    await deliver(child());
    await deliver(child({ resourceVersion: '2' }, { ready: 1 }));
    expect(reconciled.length).toBeGreaterThan(0);
    expect(lines.at(-1)?.message).toBe(
      "ConfigMap shop/a can't be asked for claims, which is a bug of the kind",
    );
  });
});

describe('Wakes, changes of the status of a child', () => {
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
});

describe('Wakes, a storm', () => {
  it('of 1,000 events a second on one object leads to one reconcile at a time, and few of them', async () => {
    let inWork = 0;
    let most = 0;
    const { deliver, reconciled, clock, server } = startedRunner(() => plan({ steps: [apply('b')] }), 16);
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
});

describe('Wakes, an object that custom resources name', () => {
  const named = (source: string, name: string): AnyObject => ({ ...widget(name), spec: { source } });
  const watches: readonly Watch[] = [
    { type: WIDGET, keep: (object) => object, mapsTo: ({ metadata }) => [`shop/${metadata.name}`] },
    {
      ...{ type: CONFIG_MAP, readOnly: true, mapsTo: () => [] },
      keep: (object) => object,
      concerns: ({ metadata }, { spec }) => (spec as { source: string }).source === metadata.name,
    },
  ];

  it('wakes those alone, when it appears, changes and goes', async () => {
    const { deliver, reconciled, clock, reader, server } = startedRunner(undefined, 2, watches);
    for (const [source, name] of [
      ['a', 'one'],
      ['a', 'two'],
      ['b', 'three'],
    ] as const)
      await deliver(named(source, name));
    const woken = async (): Promise<string[]> => {
      await clock.advance(100);
      return reconciled.splice(0).sort();
    };
    await woken();
    await deliver(configMap('a', '1'));
    expect(await woken()).toEqual(['shop/one', 'shop/two']);
    await deliver({ ...configMap('a', '2'), data: { key: 'changed' } });
    expect(await woken()).toEqual(['shop/one', 'shop/two']);
    reader.store(CONFIG_MAP).observedDeletion(server.get(CONFIG_MAP, 'shop/a')!);
    expect(await woken()).toEqual(['shop/one', 'shop/two']);
  });

  it('wakes one whose name it has from now on by the change of that one', async () => {
    const { deliver, reconciled, clock } = startedRunner(undefined, 2, watches);
    await deliver(configMap('a', '1'));
    await deliver(named('a', 'one'));
    await clock.advance(100);
    expect(reconciled).toEqual(['shop/one']);
  });
});

describe('What a plan writes itself', () => {
  const told = (count: number): Plan =>
    plan({
      status: [
        {
          target: widget('web'),
          fieldManager: 'widget-status',
          status: { count },
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
    await runner.deliver(widget('web'));
    echo();
    await clock.advance(600_000);
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
      () => plan({ steps: [{ ...apply('a'), object: { ...apply('a').object, data: { port: '1' } } }] }),
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
    await deliver(widget('web'));
    await deliver({ ...widget('web'), spec: { size: 2 } });
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
