import { describe, expect, it, vi } from 'vitest';
import type { ApplyStep, EventProps, Plan } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import { correctionEvent } from '../../src/contract/status.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { REFUSAL_MILLISECONDS } from '../../src/engine/retry.js';
import type { ApiResponse } from '../../src/engine/transport.js';
import { plan } from './support/bench.js';
import {
  applied,
  CONFIG_MAP,
  configMap,
  failure,
  ownedBy,
  recordingLogger,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { apply, count, cr, startedRunner, WATCHES } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

describe('Runner, waking keys', () => {
  it('reconciles what an object maps to when it appears, changes and goes', async () => {
    const { deliver, reconciled, reader } = startedRunner();
    await deliver(cr('web'));
    expect(reconciled.splice(0)).toEqual(['shop/web']);
    await deliver(cr('web'));
    expect(new Set(reconciled.splice(0))).toEqual(new Set(['shop/web']));
    reader.store(WIDGET).gone('shop/web');
    await settled();
    expect(reconciled).toEqual(['shop/web']);
  });

  // The state before and the state after map to the same key, and a waiting worker takes it at the first add.
  it('reconciles a key once for one change of an object', async () => {
    const { deliver, reconciled } = startedRunner();
    await deliver(cr('web'));
    reconciled.length = 0;
    await deliver(cr('web'));
    expect(reconciled).toEqual(['shop/web']);
  });

  it('reconciles the old and the new owner when an object changes hands', async () => {
    const { deliver, reconciled } = startedRunner();
    await deliver(configMap('a', '1', { ownerReferences: [ownedBy('old')] }));
    reconciled.length = 0;
    await deliver(configMap('a', '2', { ownerReferences: [ownedBy('new')] }));
    expect(reconciled).toEqual(['shop/old', 'shop/new']);
  });

  it('does not reconcile a key twice at once, but once more for a change meanwhile', async () => {
    const { deliver, reconciled, server } = startedRunner(() => plan({ apply: [apply('a')] }), 4);
    const gate = Promise.withResolvers<undefined>();
    server.intercept = () => gate.promise;
    await deliver(cr('web'));
    await deliver(cr('web'));
    await deliver(cr('web'));
    expect(reconciled).toHaveLength(1);
    gate.resolve(undefined);
    await settled();
    await settled();
    expect(reconciled.length).toBeGreaterThanOrEqual(2);
    expect(server.writes).toHaveLength(1);
  });

  it('reconciles again at the time that was asked for', async () => {
    const { deliver, reconciled, clock } = startedRunner((_, n) =>
      plan(n === 1 ? { requeueAt: new Date(clock.now() + 60_000) } : {}),
    );
    await deliver(cr('web'));
    await clock.advance(59_999);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
    await clock.advance(600_000);
    expect(reconciled).toHaveLength(2);
  });

  it('reconciles again at the time that was asked for once the plan was carried out', async () => {
    const { deliver, reconciled, clock } = startedRunner((_, n) =>
      plan({
        ...(n === 1 && { apply: [apply('a')] }),
        requeueAt: (changes) => (changes.length > 0 ? new Date(clock.now() + 60_000) : undefined),
      }),
    );
    await deliver(cr('web'));
    await clock.advance(59_999);
    expect(reconciled).toHaveLength(1);
    await clock.advance(600_000);
    expect(reconciled).toHaveLength(2);
  });

  it('reconciles a second later for a time that has passed, and not in a loop', async () => {
    const { deliver, reconciled, clock } = startedRunner(() => plan({ requeueAt: new Date(0) }));
    await deliver(cr('web'));
    await clock.advance(999);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
  });

  it('reconciles soon for a time that has come while the plan was carried out', async () => {
    const { deliver, reconciled, clock, server } = startedRunner((_, n) =>
      plan(n === 1 ? { apply: [apply('a')], requeueAt: new Date(clock.now() + 100) } : {}),
    );
    const gate = Promise.withResolvers<undefined>();
    server.intercept = () => gate.promise;
    await deliver(cr('web'));
    await clock.advance(150);
    gate.resolve(undefined);
    await settled();
    await clock.advance(20);
    expect(reconciled).toHaveLength(2);
  });

  it('does not loop where each plan asks for a time that comes before it is carried out', async () => {
    const { deliver, reconciled, clock, server } = startedRunner((_, n) =>
      plan({ apply: [apply(`a${n}`)], requeueAt: new Date(clock.now() + 1) }),
    );
    server.intercept = () => {
      clock.setWallBy(2);
      return undefined;
    };
    await deliver(cr('web'));
    for (let n = 0; n < 20; n++) await settled();
    expect(reconciled.length).toBeLessThan(3);
    await clock.advance(50);
    await settled();
    expect(reconciled.length).toBeGreaterThan(1);
  });

  it('takes a time that is no time for a bug of the kind', async () => {
    const { deliver, lines, stop } = startedRunner(() => plan({ requeueAt: new Date(Number.NaN) }));
    await deliver(cr('web'));
    expect(lines).toContainEqual(expect.objectContaining({ level: 'error' }));
    await stop();
  });

  it('drops a time that a later reconcile no longer asks for', async () => {
    const { deliver, reconciled, clock } = startedRunner((_, n) =>
      plan(n === 1 ? { requeueAt: new Date(clock.now() + 60_000) } : {}),
    );
    await deliver(cr('web'));
    await deliver(cr('web'));
    const before = reconciled.length;
    await clock.advance(600_000);
    expect(reconciled).toHaveLength(before);
  });

  it('tries again every minute or two when a right is missing, for ever', async () => {
    const forbidden = (): Plan => plan({ apply: [apply('a')] });
    const { deliver, reconciled, clock, server } = startedRunner(forbidden, 1, undefined, {
      random: () => 1,
    });
    server.intercept = () => failure(403, 'Forbidden', 'no');
    await deliver(cr('web'));
    await clock.advance(3_600_000);
    expect(reconciled.length).toBeGreaterThanOrEqual(31);
    expect(reconciled.length).toBeLessThanOrEqual(61);
  });

  it('keeps the time that was asked for although something has failed', async () => {
    const { deliver, reconciled, clock, server } = startedRunner(() =>
      plan({ apply: [apply('a')], requeueAt: new Date(clock.now() + 60_000) }),
    );
    server.intercept = () => failure(422, 'Invalid', 'no');
    await deliver(cr('web'));
    await clock.advance(60_000);
    expect(reconciled).toHaveLength(2);
  });

  it('does not let a mapping that throws for one controller hide a change from another', async () => {
    // Runner's listener calls mapsTo unguarded within Store.notify: listeners of the same store that come later
    // never hear of the change, and the reflector takes it for a broken watch.
    const { stores, reader } = startedRunner(undefined, 1, [
      {
        type: CONFIG_MAP,
        mapsTo: () => {
          throw new TypeError('a bug of the kind');
        },
      },
    ]);
    let heard = 0;
    stores.open({ type: CONFIG_MAP, mapsTo: () => [] }).onChange(() => heard++);
    try {
      reader.store(CONFIG_MAP).observed(configMap('a', '1'));
    } catch {
      // Looked at below.
    }
    await settled();
    expect(heard).toBe(1);
  });
});

describe('Runner, failures', () => {
  it.each(['again', 'requeueAt'] as const)(
    'tries again after growing pauses where %s throws',
    async (part) => {
      const { deliver, reconciled, clock } = startedRunner(() =>
        plan({
          [part]: () => {
            throw new TypeError('a bug of the kind');
          },
        }),
      );
      await deliver(cr('web'));
      await clock.advance(2_000);
      expect(reconciled.length).toBeLessThan(12);
    },
  );

  it('tries a reconcile that threw again after a pause, and goes on with other keys', async () => {
    const { deliver, reconciled, clock, lines, metrics } = startedRunner((key) => {
      if (key === 'shop/bad') throw new TypeError('undefined is not a function');
      return plan({});
    });
    await deliver(cr('bad'));
    await deliver(cr('good'));
    expect(reconciled).toEqual(['shop/bad', 'shop/good']);
    await clock.advance(5);
    expect(reconciled.at(-1)).toBe('shop/bad');
    await clock.advance(9);
    expect(reconciled).toHaveLength(3);
    await clock.advance(1);
    expect(reconciled).toHaveLength(4);
    expect(lines.find(({ level }) => level === 'error')?.fields).toMatchObject({
      controller: 'widget',
      name: 'bad',
      retryMilliseconds: 5,
    });
    expect(await count(metrics, /reconcile_errors_total\{controller="widget"\} (\d+)/)).toBe(3);
  });

  it('does not try in a loop what only a change can better', async () => {
    const { deliver, reconciled, clock, server, metrics } = startedRunner(() =>
      plan({ apply: [apply('a')] }),
    );
    server.intercept = () => failure(422, 'Invalid', 'no');
    await deliver(cr('web'));
    await clock.advance(REFUSAL_MILLISECONDS - 1);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
    expect(server.writes).toHaveLength(2);
    expect(await count(metrics, /terminal_reconcile_errors_total\{controller="widget"\} (\d+)/)).toBe(2);
  });

  it('tries again only after a while what could not be planned, and logs it once', async () => {
    const error = new OperatorError({ reason: 'RenderFailed', message: 'no such port' });
    const { deliver, reconciled, clock, lines } = startedRunner(() => plan({ error }));
    await deliver(cr('web'));
    await clock.advance(REFUSAL_MILLISECONDS - 1);
    expect(reconciled).toHaveLength(1);
    await clock.advance(REFUSAL_MILLISECONDS);
    expect(reconciled).toHaveLength(2);
    const warnings = lines.filter(
      ({ level, fields }) => level === 'warn' && fields.reason === 'RenderFailed',
    );
    expect(warnings).toHaveLength(1);
  });

  it('waits longer after each failure that may pass, and starts over after a success', async () => {
    const { deliver, reconciled, clock, server } = startedRunner(() => plan({ apply: [apply('a')] }));
    const times: number[] = [];
    const start = clock.now();
    server.intercept = () => {
      times.push(clock.now() - start);
      return times.length < 5 ? failure(503, 'ServiceUnavailable', 'later') : undefined;
    };
    await deliver(cr('web'));
    await clock.advance(1000);
    expect(times).toEqual([0, 5, 15, 35, 75]);
    const before = reconciled.length;
    await clock.advance(REFUSAL_MILLISECONDS);
    expect(reconciled).toHaveLength(before);
  });

  it('tries a stale view again at once, five times, and then after a pause', async () => {
    const { deliver, clock, server, metrics } = startedRunner(() => plan({ apply: [apply('a')] }));
    server.intercept = ({ method }) =>
      method === 'PATCH' ? failure(409, 'Conflict', 'modified') : undefined;
    await deliver(cr('web'));
    for (let n = 0; n < 10; n++) await settled();
    expect(server.writes).toHaveLength(6);
    expect(await count(metrics, /reconcile_total\{controller="widget",result="requeue"\} (\d+)/)).toBe(5);
    await clock.advance(5);
    for (let n = 0; n < 10; n++) await settled();
    expect(server.writes).toHaveLength(12);
  });

  it.each([
    { what: 'nothing of a stale view that looking again mends', conflicts: 5, told: ['Made'] },
    { what: 'of a stale view that looking again does not mend', conflicts: 6, told: ['failed', 'Made'] },
  ])('tells $what', async ({ conflicts, told }) => {
    const event = (): EventProps => ({ type: 'Warning', reason: 'Why', action: 'Reconcile', note: 'note' });
    const regarding = { ...WIDGET, namespace: 'shop', name: 'web', uid: 'uid-web' };
    const { deliver, clock, server } = startedRunner(() =>
      plan({
        apply: [apply('a')],
        status: [
          {
            target: widget('web'),
            fieldManager: STATUS_MANAGER,
            status: ([change]) => ({ phase: change?.action === 'created' ? 'Made' : change?.action }),
          },
        ],
        events: [{ regarding, event: ([change]) => (change?.error ? event() : undefined) }],
      }),
    );
    let left = conflicts;
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.endsWith('/configmaps/a') && left-- > 0
        ? failure(409, 'Conflict', 'modified')
        : undefined;
    await deliver(cr('web'));
    await clock.advance(1_000);

    const statuses = server.requests.filter(({ path }) => path.endsWith('/status'));
    expect(statuses.map(({ body }) => (body as AnyObject).status)).toEqual(told.map((phase) => ({ phase })));
    expect(server.requests.filter(({ path }) => path.endsWith('/events'))).toHaveLength(told.length - 1);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  });

  it('tells what it has put right also where the rest of the view was stale', async () => {
    const regarding = { ...WIDGET, namespace: 'shop', name: 'web', uid: 'uid-web' };
    const withData = ({ object, ...step }: ApplyStep): ApplyStep => ({
      ...step,
      object: { ...object, data: { key: 'value' } },
    });
    const { deliver, clock, runner, server } = startedRunner(() =>
      plan({
        apply: [withData(apply('a')), withData(apply('b'))],
        events: [{ regarding, event: correctionEvent }],
      }),
    );
    await deliver(cr('web'));
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.endsWith('/b') ? failure(409, 'Conflict', 'modified') : undefined;
    runner.queue.hold('test');
    for (const name of ['a', 'b']) {
      const made = server.get(CONFIG_MAP, `shop/${name}`)!;
      const managedFields = [applied('kubectl-edit', { 'f:data': { 'f:key': {} } })];
      const metadata = { ...made.metadata, managedFields } as AnyObject['metadata'];
      await deliver({ ...made, metadata, data: { key: 'edited' } });
    }
    runner.queue.release('test');
    await clock.advance(1_000);

    const events = server.requests.filter(({ path }) => path.endsWith('/events'));
    expect(events.map(({ body }) => (body as { reason?: string }).reason)).toEqual(['DriftCorrected']);
  });

  it('wakes a key when the object in its way changes or goes', async () => {
    const { deliver, reconciled, reader } = startedRunner(() => plan({ apply: [apply('a')] }));
    await deliver(configMap('a', '1'));
    await deliver(cr('web'));
    expect(reconciled).toHaveLength(1);
    await deliver(configMap('other', '1'));
    expect(reconciled).toHaveLength(1);
    await deliver(configMap('a', '1', { labels: { x: 'y' } }));
    expect(reconciled).toHaveLength(2);
    reader.store(CONFIG_MAP).gone('shop/a');
    await settled();
    await settled();
    expect(reader.controlledBy(CONFIG_MAP, 'uid-web')).toHaveLength(1);
  });

  it('wakes a key when the object in its way changes while the plan is still carried out', async () => {
    const { deliver, reconciled, server } = startedRunner(() => plan({ apply: [apply('a'), apply('b')] }));
    await deliver(configMap('a', '1'));
    const gate = Promise.withResolvers<ApiResponse>();
    server.intercept = ({ path }) => (path.endsWith('/b') ? gate.promise : undefined);
    await deliver(cr('web'));
    await deliver(configMap('a', '1', { annotations: { 'reconstruct.kosmos.io/adopt-by': 'Widget/web' } }));
    gate.resolve(failure(422, 'Invalid', 'no'));
    for (let n = 0; n < 5; n++) await settled();
    expect(reconciled.length).toBeGreaterThan(1);
    expect(controllerOf(server.get(CONFIG_MAP, 'shop/a')!)?.name).toBe('web');
  });

  it('tells a failure that stays the same once', async () => {
    const { deliver, server, lines } = startedRunner(() => plan({ apply: [apply('a')] }));
    server.intercept = () => failure(422, 'Invalid', 'no');
    for (let n = 0; n < 3; n++) await deliver(cr('web'));
    const [first, ...others] = lines
      .filter(({ message }) => message === 'Reconcile failed')
      .map(({ level }) => level);
    expect(first).toBe('warn');
    expect(others.length).toBeGreaterThan(1);
    expect(new Set(others)).toEqual(new Set(['debug']));
  });
});

describe('Runner, stopping', () => {
  it('finishes what is in work, and begins nothing more', async () => {
    const { deliver, reconciled, server, runner, stop } = startedRunner(
      () => plan({ apply: [apply('a')] }),
      1,
    );
    const gate = Promise.withResolvers<undefined>();
    server.intercept = () => gate.promise;
    await deliver(cr('web'));
    await deliver(cr('next'));
    let stopped = false;
    const stopping = stop().then(() => (stopped = true));
    await settled();
    expect(stopped).toBe(false);
    gate.resolve(undefined);
    await stopping;
    expect(reconciled).toEqual(['shop/web']);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
    expect(await runner.queue.take()).toBeUndefined();
  });
});

it('puts controller, kind, object and reconcile into each line of the log', async () => {
  const { deliver, lines } = startedRunner();
  await deliver(cr('web'));
  expect(lines.find(({ message }) => message === 'Reconciled')?.fields).toMatchObject({
    controller: 'widget',
    kind: 'Widget',
    namespace: 'shop',
    name: 'web',
    reconcileId: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
  });
});

it('makes nothing for the log of a reconcile that has nothing to tell', async () => {
  const lines: LogLine[] = [];
  const ofController = recordingLogger(lines);
  const child = vi.fn((fields: Readonly<Record<string, unknown>>) => ofController.child(fields));
  const quiet = { ...ofController, child, isLevelEnabled: (level: string) => level !== 'debug' };
  const log = { ...quiet, child: () => quiet };
  const { deliver, reconciled } = startedRunner(() => plan({ apply: [apply('a')] }), 1, WATCHES, { log });
  await deliver(cr('web'));
  expect(child).toHaveBeenCalledTimes(1);
  await deliver(cr('web'));
  expect(reconciled).toHaveLength(2);
  expect(child).toHaveBeenCalledTimes(1);
  expect(lines.map(({ message }) => message)).toEqual(['ConfigMap shop/a created']);
});
