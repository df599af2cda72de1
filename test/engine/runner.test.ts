import { describe, expect, it } from 'vitest';
import type { EventProps, Plan } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { REFUSAL_MILLISECONDS } from '../../src/client/retry.js';
import { plan } from './support/bench.js';
import {
  apply,
  CONFIG_MAP,
  configMap,
  failure,
  ownedBy,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import { count, startedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

describe('Runner, waking keys', () => {
  it('reconciles what an object maps to when it appears, changes and goes', async () => {
    const { deliver, reconciled, reader } = startedRunner();
    await deliver(widget('web'));
    expect(reconciled.splice(0)).toEqual(['shop/web']);
    await deliver(widget('web'));
    expect(new Set(reconciled.splice(0))).toEqual(new Set(['shop/web']));
    reader.store(WIDGET).gone('shop/web');
    await settled();
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
    const { deliver, reconciled, server } = startedRunner(() => plan({ steps: [apply('a')] }), 4);
    const gate = Promise.withResolvers<undefined>();
    server.intercept = () => gate.promise;
    await deliver(widget('web'));
    await deliver(widget('web'));
    await deliver(widget('web'));
    expect(reconciled).toHaveLength(1);
    gate.resolve(undefined);
    await settled();
    await settled();
    expect(reconciled.length).toBeGreaterThanOrEqual(2);
    expect(server.writes).toHaveLength(1);
  });

  it('is woken ten seconds after what its own plan writes, also where the watch is faster than the answer', async () => {
    const { deliver, reconciled, server, reader, clock } = startedRunner(() => plan({ steps: [apply('a')] }));
    server.intercept = async (request) => {
      server.intercept = () => undefined;
      const answer = await server.request(request);
      reader.store(CONFIG_MAP).observed(server.get(CONFIG_MAP, 'shop/a')!);
      return answer;
    };
    await deliver(widget('web'));
    await clock.advance(9_999);
    expect(reconciled).toEqual(['shop/web']);
    await clock.advance(60_000);
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  });

  it('is woken by what others do to an object while its own write is under way', async () => {
    const { deliver, reconciled, server, reader } = startedRunner(() => plan({ steps: [apply('a')] }));
    server.intercept = async (request) => {
      server.intercept = () => undefined;
      const answer = await server.request(request);
      const made = server.get(CONFIG_MAP, 'shop/a')!;
      reader.store(CONFIG_MAP).observed(server.put(CONFIG_MAP, { ...made, data: { others: 'have' } }));
      return answer;
    };
    await deliver(widget('web'));
    await settled();
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
  });

  it('reconciles after five seconds where another writer changes the status, and not at once', async () => {
    const { deliver, reconciled, clock } = startedRunner();
    await deliver(widget('web', {}, { seen: true }));
    for (const value of [1, 2, 3]) {
      await deliver(widget('web', {}, { seen: value }));
      await clock.advance(1_000);
    }
    expect(reconciled).toEqual(['shop/web']);
    await clock.advance(2_000);
    expect(reconciled).toEqual(['shop/web', 'shop/web']);
  });

  it('logs which custom resource takes long to plan', async () => {
    const { deliver, lines, clock } = startedRunner((_, n): Plan => {
      if (n === 1) clock.stopFor(1_500);
      return plan({});
    });
    await deliver(widget('web'));
    await deliver(widget('quick'));
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields);
    expect(warnings).toMatchObject([{ name: 'web', namespace: 'shop', milliseconds: 1_500 }]);
  });

  it('reconciles again at the time that was asked for', async () => {
    const { deliver, reconciled, clock } = startedRunner((_, n) =>
      plan(n === 1 ? { next: new Date(clock.now() + 60_000) } : {}),
    );
    await deliver(widget('web'));
    await clock.advance(59_999);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
    await clock.advance(600_000);
    expect(reconciled).toHaveLength(2);
  });

  it('does not loop where each plan asks for a time that comes before it is carried out', async () => {
    const { deliver, reconciled, clock, server } = startedRunner((_, n) =>
      plan({ steps: [apply(`a${n}`)], next: new Date(clock.now() + 1) }),
    );
    server.intercept = () => {
      clock.setWallBy(2);
      return undefined;
    };
    await deliver(widget('web'));
    for (let n = 0; n < 20; n++) await settled();
    expect(reconciled.length).toBeLessThan(3);
    await clock.advance(50);
    await settled();
    expect(reconciled.length).toBeGreaterThan(1);
  });

  it('tries again every minute or two when a right is missing, for ever', async () => {
    const forbidden = (): Plan => plan({ steps: [apply('a')] });
    const { deliver, reconciled, clock, server } = startedRunner(forbidden, 1, undefined, {
      random: () => 1,
    });
    server.intercept = () => failure(403, 'Forbidden', 'no');
    await deliver(widget('web'));
    await clock.advance(3_600_000);
    expect(reconciled.length).toBeGreaterThanOrEqual(31);
    expect(reconciled.length).toBeLessThanOrEqual(61);
  });
});

describe('Runner, failures', () => {
  it('does not try in a loop what only a change can better', async () => {
    const { deliver, reconciled, clock, server, metrics } = startedRunner(() =>
      plan({ steps: [apply('a')] }),
    );
    server.intercept = () => failure(422, 'Invalid', 'no');
    await deliver(widget('web'));
    await clock.advance(REFUSAL_MILLISECONDS - 1);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
    expect(server.writes).toHaveLength(2);
    expect(await count(metrics, /terminal_reconcile_errors_total\{controller="widget"\} (\d+)/)).toBe(2);
  });

  it('waits longer after each failure that may pass, and starts over after a success', async () => {
    const { deliver, reconciled, clock, server } = startedRunner(() => plan({ steps: [apply('a')] }));
    const times: number[] = [];
    const start = clock.now();
    server.intercept = () => {
      times.push(clock.now() - start);
      return times.length < 5 ? failure(503, 'ServiceUnavailable', 'later') : undefined;
    };
    await deliver(widget('web'));
    await clock.advance(20_000);
    expect(times).toEqual([0, 5, 15, 35, 75]);
    const before = reconciled.length;
    await clock.advance(REFUSAL_MILLISECONDS);
    expect(reconciled).toHaveLength(before);
  });

  it('tries a stale view again at once, five times, and then after a pause', async () => {
    const { deliver, clock, server, metrics } = startedRunner(() => plan({ steps: [apply('a')] }));
    server.intercept = ({ method }) =>
      method === 'PATCH' ? failure(409, 'Conflict', 'modified') : undefined;
    await deliver(widget('web'));
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
    const event: EventProps = { type: 'Warning', reason: 'Why', action: 'Reconcile', note: 'note' };
    const regarding = { ...WIDGET, namespace: 'shop', name: 'web', uid: 'uid-web' };
    const { deliver, clock, server } = startedRunner(() =>
      plan({
        steps: [apply('a')],
        conclude: ([change]) => {
          const status = { phase: change?.action === 'created' ? 'Made' : change?.action };
          return {
            status: [{ target: widget('web'), fieldManager: STATUS_MANAGER, status }],
            events: change?.error ? [{ regarding, event }] : [],
          };
        },
      }),
    );
    let left = conflicts;
    server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.endsWith('/configmaps/a') && left-- > 0
        ? failure(409, 'Conflict', 'modified')
        : undefined;
    await deliver(widget('web'));
    await clock.advance(900);

    const statuses = server.requests.filter(({ path }) => path.endsWith('/status'));
    expect(statuses.map(({ body }) => (body as AnyObject).status)).toEqual(told.map((phase) => ({ phase })));
    expect(server.requests.filter(({ path }) => path.endsWith('/events'))).toHaveLength(told.length - 1);
    expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  });

  it('reports a request without an answer once it has failed several times in a row, and not a short outage', async () => {
    const { deliver, clock, server, reader } = startedRunner(() =>
      plan({
        steps: [apply('a')],
        conclude: ([change]) => {
          const status = { reason: change?.error?.reason ?? 'Made' };
          return { status: [{ target: widget('web'), fieldManager: STATUS_MANAGER, status }], events: [] };
        },
      }),
    );
    const reported = (): unknown[] =>
      server.requests
        .filter(({ path }) => path.endsWith('/status'))
        .map(({ body }) => (body as AnyObject & { status: { reason: string } }).status.reason);
    let lost = 2;
    server.intercept = ({ path }) =>
      path.endsWith('/configmaps/a') && lost-- > 0 ? Promise.reject(new Error('no answer')) : undefined;
    await deliver(widget('web'));
    await clock.advance(1_000);
    expect(reported()).toEqual(['Made']);

    lost = Infinity;
    server.remove(CONFIG_MAP, 'shop/a');
    reader.store(CONFIG_MAP).gone('shop/a');
    await clock.advance(60_000);
    expect(reported()).toContain('Unreachable');
  });

  it('wakes a key when the object in its way changes or goes', async () => {
    const { deliver, reconciled, reader } = startedRunner(() => plan({ steps: [apply('a')] }));
    await deliver(configMap('a', '1'));
    await deliver(widget('web'));
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

  it('tells a failure that stays the same once', async () => {
    const { deliver, server, lines } = startedRunner(() => plan({ steps: [apply('a')] }));
    server.intercept = () => failure(422, 'Invalid', 'no');
    for (let n = 0; n < 3; n++) await deliver(widget('web'));
    const [first, ...others] = lines
      .filter(({ message }) => message === 'reconcile failed')
      .map(({ level }) => level);
    expect(first).toBe('warn');
    expect(others.length).toBeGreaterThan(1);
    expect(new Set(others)).toEqual(new Set(['debug']));
  });
});
