import { describe, expect, it } from 'vitest';
import type { FieldConflict } from '../../src/contract/change.js';
import type { Watch } from '../../src/contract/controller.js';
import type { OwnStep } from '../../src/contract/plan.js';
import { share } from '../../src/engine/steps/share.js';
import type { ShareStep } from '../../src/engine/steps/share.js';
import type { AnyObject } from '../../src/contract/object.js';
import { plan } from './support/bench.js';
import {
  anObject,
  apply,
  CONFIG_MAP,
  configMap,
  failure,
  MANAGER,
  ownedBy,
  SERVICE,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import { startedRunner, WATCHES } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

/** As of a kind whose key is the class that its custom resources name. */
const byClass: readonly Watch[] = [
  {
    type: WIDGET,
    keep: (object) => object,
    mapsTo: ({ spec }) => [`shop/${(spec as { className?: string }).className ?? 'a'}`],
  },
];
const taken = (reason: string, field: string, message: string) =>
  failure(reason === 'FieldManagerConflict' ? 409 : 422, 'Conflict', 'taken', {
    causes: [{ reason, field, message }],
  });

describe('An edit just before the status is written', () => {
  const orders = [
    'before the answer',
    'after the answer',
    'in a list',
    'as the answer to a write of nothing',
  ];

  it.each(orders)('wakes the class that it leaves, and the new one, where it is seen %s', async (order) => {
    const target = widget('web');
    const status = { target, fieldManager: STATUS_MANAGER, status: { seen: true } };
    const { deliver, reconciled, server, reader } = startedRunner(
      (_, n) => plan(n === 1 ? { status: [status] } : {}),
      2,
      byClass,
    );
    const store = reader.store(WIDGET);
    let edited: AnyObject | undefined;
    server.intercept = async (request) => {
      server.intercept = () => undefined;
      const { metadata } = server.get(WIDGET, 'shop/web')!;
      const moved = { ...target, spec: { className: 'b' }, metadata: { ...metadata, generation: 2 } };
      edited = server.put(WIDGET, moved);
      if (order === orders[0]) store.observed(edited);
      const answer = order === orders[3] ? { status: 200, body: edited } : await server.request(request);
      const live = server.get(WIDGET, 'shop/web')!;
      if (order === orders[2]) store.replace([store.project(live)], live.metadata.resourceVersion!);
      return answer;
    };
    await deliver(target);
    await settled();
    if (order !== orders[2]) {
      store.observed(edited!);
      store.observed(server.get(WIDGET, 'shop/web')!);
    }
    await settled();
    expect(reconciled[0]).toBe('shop/a');
    expect(reconciled.slice(1).sort()).toEqual(['shop/a', 'shop/b']);
  });
});

it('A default that another schema of the CRD adds, as the answer to a status shows it, wakes the key', async () => {
  const target = widget('web');
  const status = { target, fieldManager: STATUS_MANAGER, status: { seen: true } };
  const { deliver, reconciled, server } = startedRunner((_, n) => plan(n === 1 ? { status: [status] } : {}));
  server.intercept = async (request) => {
    server.intercept = () => undefined;
    const { body } = await server.request(request);
    return { status: 200, body: { ...(body as AnyObject), spec: { size: 1, added: 'default' } } };
  };
  await deliver(target);
  await settled();
  expect(reconciled).toEqual(['shop/web', 'shop/web']);
});

describe('A child', () => {
  it('that others have changed just before it was written is looked at within ten seconds', async () => {
    const { deliver, reconciled, server, clock } = startedRunner((_, n) =>
      plan(n === 1 ? { steps: [apply('a')] } : {}),
    );
    const mine = { ownerReferences: [ownedBy('web')] };
    server.intercept = async (request) => {
      server.intercept = () => undefined;
      server.put(CONFIG_MAP, configMap('a', '2', { ...mine, annotations: { others: 'have' } }));
      return server.request(request);
    };
    await deliver(configMap('a', '1', mine));
    await clock.advance(10_000);
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
  });

  it('gets a port within ten seconds after another child of the same plan has given it up', async () => {
    const claims = (object: AnyObject): string[] => [
      (object.data as { port?: string } | undefined)?.port ?? '',
    ];
    const holding = (name: string, port: string): OwnStep => ({
      ...apply(name),
      object: { ...apply(name).object, data: { port } },
    });
    const { server, deliver, clock } = startedRunner(
      (_, n) => plan({ steps: n === 1 ? [holding('b', '1')] : [holding('a', '1'), holding('b', '2')] }),
      2,
      [WATCHES[0]!, { ...WATCHES[1]!, keep: (object) => object, claims }],
    );
    server.intercept = ({ method, path, body }) => {
      if (method !== 'PATCH') return undefined;
      const { port } = (body as { data: { port: string } }).data;
      const other = server.get(CONFIG_MAP, path.endsWith('/a') ? 'shop/b' : 'shop/a');
      return (other?.data as { port?: string } | undefined)?.port === port
        ? taken(
            'FieldValueInvalid',
            'spec.ports[0].nodePort',
            'Invalid value: 1: provided port is already allocated',
          )
        : undefined;
    };
    await deliver(widget('web'));
    await deliver(widget('web', { generation: 2 }));
    await clock.advance(10_000);
    expect(server.get(CONFIG_MAP, 'shop/a')?.data).toEqual({ port: '1' });
    expect(server.get(CONFIG_MAP, 'shop/b')?.data).toEqual({ port: '2' });
  });
});

describe('What was refused is sent again', () => {
  const mine = { ownerReferences: [ownedBy('web')], generation: 1 };

  it.each([
    ['changed while the refusal was on its way', { uid: 'uid-a', generation: 2 }],
    ['was replaced by a namesake', { uid: 'uid-new', generation: 1 }],
  ])('once the object in the way %s', async (_, meta) => {
    const { deliver, server, reader, clock } = startedRunner(() => plan({ steps: [apply('a')] }));
    const store = reader.store(CONFIG_MAP);
    server.intercept = async () => {
      server.intercept = () => undefined;
      const { metadata } = server.get(CONFIG_MAP, 'shop/a')!;
      if (meta.uid !== 'uid-a') {
        server.remove(CONFIG_MAP, 'shop/a');
        store.observedDeletion({ ...configMap('a', '0'), metadata });
      }
      store.observed(server.put(CONFIG_MAP, configMap('a', '0', { ...mine, ...meta })));
      await settled();
      return failure(422, 'Invalid', 'ConfigMap "a" is invalid: not beside what is there');
    };
    await deliver(configMap('a', '0', mine));
    await clock.advance(300_000);
    expect(server.writes).toHaveLength(2);
  });

  it.each(['first', 'second'])(
    'once others have let go of it during the answer to the %s apply',
    async (which) => {
      const entries = (...keys: string[]): AnyObject =>
        anObject(CONFIG_MAP, 'tcp', {}, { data: Object.fromEntries(keys.map((key) => [key, 'ours'])) });
      const onConflict = (conflicts: readonly FieldConflict[]): AnyObject =>
        entries(
          ...['9000', '9001'].filter((key) => conflicts.every(({ field }) => field !== `.data.${key}`)),
        );
      const step: ShareStep = {
        ...({ do: 'engine/share', object: entries('9000', '9001') } as const),
        ...{ fieldManager: MANAGER, onConflict },
      };
      const { deliver, server, reader, clock } = startedRunner(
        () => plan({ steps: [step] }),
        2,
        WATCHES.map((watch) => ({ ...watch, keep: (object) => object, mapsTo: () => ['shop/web'] })),
        {},
        { handlers: [share] },
      );
      const store = reader.store(CONFIG_MAP);
      let isTaken = true;
      const letGo = (): void => {
        isTaken = false;
        const live = server.get(CONFIG_MAP, 'shop/tcp')!;
        server.put(CONFIG_MAP, { ...live, metadata: { ...live.metadata, annotations: { helm: 'gone' } } });
      };
      server.intercept = ({ method, body, contentType }) => {
        if (!isTaken || method !== 'PATCH' || !contentType?.includes('apply')) return undefined;
        const asks = '9000' in ((body as { data?: object }).data ?? {});
        if (asks === (which === 'first')) letGo();
        return asks ? taken('FieldManagerConflict', '.data.9000', 'conflict with "helm"') : undefined;
      };
      store.observed(server.put(CONFIG_MAP, anObject(CONFIG_MAP, 'tcp')));
      await deliver(widget('web'));
      store.observed(server.get(CONFIG_MAP, 'shop/tcp')!);
      await clock.advance(60_000);
      expect(server.get(CONFIG_MAP, 'shop/tcp')?.data).toEqual({ 9000: 'ours', 9001: 'ours' });
    },
  );

  it('once a kind is installed while the plan that lacked it is carried out', async () => {
    const service: OwnStep = { ...apply('web'), object: anObject(SERVICE, 'web') };
    const { deliver, server, reader, runner, clock } = startedRunner(
      () => plan({ steps: [service, apply('a')] }),
      2,
      [...WATCHES, { type: SERVICE, optional: true, mapsTo: () => [] }],
    );
    const store = reader.store(SERVICE);
    store.setUnserved(undefined, 'missing');
    server.intercept = () => {
      server.intercept = () => undefined;
      clock.stopFor(1);
      store.replace([], '1');
      store.setUnserved(undefined, undefined);
      runner.wakes.kindServed(SERVICE);
      return undefined;
    };
    await deliver(widget('web'));
    await clock.advance(1_000);
    expect(server.get(SERVICE, 'shop/web')).toBeDefined();
  });
});

it('A status that was answered with 409 is written again, where the custom resource is the same one', async () => {
  const status = { target: widget('web'), fieldManager: STATUS_MANAGER, status: { seen: true } };
  const { deliver, server, clock } = startedRunner(() => plan({ status: [status] }));
  server.intercept = () => {
    server.intercept = () => undefined;
    return failure(409, 'Conflict', 'the object has been modified');
  };
  await deliver(widget('web'));
  await clock.advance(1_000);
  expect(server.get(WIDGET, 'shop/web')?.status).toEqual({ seen: true });
});
