import { describe, expect, it } from 'vitest';
import type { Change, ChangeSet } from '../../../src/contract/change.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { Api } from '../../../src/client/api.js';
import { handlersOf, interpret } from '../../../src/engine/plan/interpret.js';
import { Sweeper } from '../../../src/kinds/job-watcher/sweep.js';
import type { SweepStep } from '../../../src/kinds/job-watcher/sweep.js';
import { newBench, plan } from '../../engine/support/bench.js';
import type { Bench } from '../../engine/support/bench.js';
import { CONFIG_MAP, configMap, failure, widget } from '../../engine/support/builders.js';
import { FakeApiServer } from '../../engine/support/fake-api-server.js';
import { startedRunner } from '../../engine/support/started-runner.js';
import type { StartedRunner } from '../../engine/support/started-runner.js';
import { settled } from '../../engine/support/virtual-clock.js';

const NO_RIGHT = 'configmaps "a" is forbidden: User "u" cannot delete resource "configmaps" in API group ""';
const ANNOUNCE = { type: 'Normal', reason: 'Expired', action: 'Delete', note: 'over' } as const;

interface Swept extends Bench {
  readonly seen: AnyObject[];
  readonly sweeper: Sweeper;
  readonly sweep: () => Promise<ChangeSet>;
}

const stepsOf = (objects: readonly (AnyObject | undefined)[], plannedFor = 0): SweepStep[] =>
  objects.flatMap((object) => {
    const step = { propagation: 'Background', announce: ANNOUNCE, audit: {}, plannedFor } as const;
    return object ? [{ do: 'job-watcher/sweep', object, ...step }] : [];
  });

function setup(...names: string[]): Swept {
  const bench = newBench(new FakeApiServer());
  const { server, reader, hand, clock } = bench;
  const seen = names.map((name) => server.put(CONFIG_MAP, configMap(name, '1')));
  for (const object of seen) reader.store(CONFIG_MAP).observed(object);
  const sweeper = new Sweeper(1_000);
  const handlers = handlersOf([sweeper]);
  const sweep = async (): Promise<readonly Change[]> => {
    const steps = stepsOf(seen, clock.now());
    return (await interpret(plan({ steps }), hand, handlers)).changes;
  };
  return { ...bench, seen, sweeper, sweep };
}

const deletes = ({ server }: { server: FakeApiServer }): string[] =>
  server.requests
    .filter(({ method }) => method === 'DELETE')
    .map(({ path }) => path.replace('/api/v1/namespaces/', ''));

it('deletes nothing in a dry run', async () => {
  const { server, seen } = setup('a');

  await new Api(server).delete(CONFIG_MAP, seen[0]!, 'Background', true);
  expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  await new Api(server).delete(CONFIG_MAP, seen[0]!, 'Background');
  expect(server.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
});

describe('What others own', () => {
  it('is read and left where it has changed, which is no failure', async () => {
    const swept = setup('a', 'b');
    swept.server.put(CONFIG_MAP, configMap('a', '1', { labels: { x: 'y' } }));
    expect(await swept.sweep()).toMatchObject([
      { action: 'skipped', skippedFor: 'changed' },
      { action: 'deleted' },
    ]);
    const { resourceVersion } = swept.server.get(CONFIG_MAP, 'shop/a')!.metadata;
    expect(swept.reader.get(CONFIG_MAP, 'shop/a')?.metadata.resourceVersion).toBe(resourceVersion);
  });

  it('is deleted by its UID where a conflict is told of what has not changed', async () => {
    const swept = setup('a', 'b');
    swept.server.intercept = ({ method, body }) => {
      const { preconditions } = (body ?? {}) as { preconditions?: { resourceVersion?: string } };
      const isVersioned = method === 'DELETE' && preconditions?.resourceVersion !== undefined;
      return isVersioned ? failure(409, 'Conflict', 'Precondition failed: ResourceVersion') : undefined;
    };
    swept.server.put(CONFIG_MAP, configMap('b', '1', { labels: { x: 'y' } }));
    expect(await swept.sweep()).toMatchObject([
      { action: 'deleted' },
      { action: 'skipped', skippedFor: 'changed' },
    ]);
    expect(swept.server.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
    expect(swept.server.get(CONFIG_MAP, 'shop/b')).toBeDefined();
  });

  it('is not asked for again where a webhook denies it with the code of a conflict', async () => {
    const swept = setup('a');
    swept.server.intercept = ({ method }) =>
      method === 'DELETE'
        ? failure(409, 'Conflict', 'admission webhook "keep.example.com" denied the request: no')
        : undefined;
    const refused = [{ action: 'failed', error: { reason: 'Refused', retry: 'onChange' } }];
    expect(await swept.sweep()).toMatchObject(refused);
    expect(await swept.sweep()).toMatchObject(refused);
    expect(deletes(swept)).toHaveLength(1);
  });

  it('does not stop the others when one fails', async () => {
    const swept = setup('a', 'b', 'c');
    swept.server.intercept = ({ path }) => (path.endsWith('/b') ? failure(500, 'Internal', 'x') : undefined);
    const changes = await swept.sweep();
    expect(changes.map(({ action }) => action)).toEqual(['deleted', 'failed', 'deleted']);
  });
});

describe('What we may not delete', () => {
  it('is reported, and asked for once in its namespace, for two minutes', async () => {
    const swept = setup('a', 'b');
    const { server, clock, sweep } = swept;
    server.intercept = () => failure(403, 'Forbidden', NO_RIGHT);
    const expected = { action: 'failed', error: { reason: 'Forbidden', retry: 'onChange' } };
    expect(await sweep()).toMatchObject([expected, expected]);
    clock.jump(120_000 - 1);
    expect(await sweep()).toMatchObject([expected, expected]);
    expect(deletes(swept)).toEqual(['shop/configmaps/a']);
    clock.jump(1);
    server.intercept = () => undefined;
    expect((await sweep()).map(({ action }) => action)).toEqual(['deleted', 'deleted']);
  });
});

describe('A deletion', () => {
  it('is announced before, of the object itself', async () => {
    const { sweep, server } = setup('a');
    let toldBefore = false;
    server.intercept = async ({ method }) => {
      if (method !== 'DELETE') return undefined;
      await settled();
      toldBefore = server.requests.some(({ path }) => path.endsWith('/events'));
      return undefined;
    };
    await sweep();
    expect(toldBefore).toBe(true);
    const told = server.requests.find(({ path }) => path.endsWith('/events'))?.body;
    expect(told).toMatchObject({
      reason: 'Expired',
      regarding: { kind: 'ConfigMap', name: 'a', uid: 'uid-a' },
    });
  });

  it('is remembered by name for 24 hours', async () => {
    const { sweep, sweeper, clock } = setup('a', 'b');
    const at = clock.now();
    await sweep();
    const remembered = (key: string) => sweeper.deletions.of(key, clock.now());
    expect(remembered('shop/a')).toMatchObject([{ uid: 'uid-a', at }]);
    expect(remembered('shop/c')).toEqual([]);
    clock.jump(24 * 3_600_000 - 1);
    expect(remembered('shop/a')).toHaveLength(1);
    clock.jump(1);
    expect(remembered('shop/a')).toEqual([]);
  });
});

describe('Deletions that are paced', () => {
  const NAMES = Array.from({ length: 400 }, (_, n) => `n${n}`);

  /** Deletes what is left of the objects, ten a second. */
  function pacedRunner(conclude?: (changes: ChangeSet) => void): StartedRunner {
    const handlers = [new Sweeper(10)];
    const runner: StartedRunner = startedRunner(
      () => ({
        steps: stepsOf(NAMES.map((name) => runner.reader.get(CONFIG_MAP, `shop/${name}`))),
        conclude: (changes) => {
          conclude?.(changes);
          return { status: [], events: [] };
        },
      }),
      ...([1, undefined, {}, { handlers }] as const),
    );
    for (const name of NAMES)
      runner.reader.store(CONFIG_MAP).observed(runner.server.put(CONFIG_MAP, configMap(name, '1')));
    return runner;
  }

  it('go at their rate, after what may go at once', async () => {
    const runner = pacedRunner();
    await runner.deliver(widget('web'));
    expect(deletes(runner)).toHaveLength(10);
    await runner.clock.advance(999);
    expect(deletes(runner)).toHaveLength(19);
    await runner.clock.advance(4_001);
    expect(deletes(runner)).toHaveLength(60);
  });

  it('end after 30 s; the status is written, and the key goes on at once', async () => {
    const outcomes: ChangeSet[] = [];
    const runner = pacedRunner((changes) => outcomes.push(changes));
    await runner.deliver(widget('web'));
    await runner.clock.advance(30_000);
    expect(runner.reconciled).toEqual(['shop/web', 'shop/web']);
    const skipped = outcomes[0]?.filter(({ skippedFor }) => skippedFor === 'paced');
    expect(skipped).toHaveLength(400 - 310);
    await runner.clock.advance(10_000);
    expect(deletes(runner)).toHaveLength(400);
    expect(new Set(deletes(runner)).size).toBe(400);
  });

  it('send nothing more once the reconcile is given up', async () => {
    const runner = pacedRunner();
    await runner.deliver(widget('web'));
    runner.runner.queue.hold('test');
    const interrupted = runner.runner.interrupt();
    await runner.clock.advance(20_000);
    await interrupted;
    expect(deletes(runner)).toHaveLength(10);
  });
});

it('A key whose object has changed is taken again at once, and after five times in a row with a pause', async () => {
  const handlers = [new Sweeper(1_000)];
  const runner: StartedRunner = startedRunner(
    () => plan({ steps: stepsOf([runner.reader.get(CONFIG_MAP, 'shop/a')]) }),
    ...([2, undefined, {}, { handlers }] as const),
  );
  runner.reader.store(CONFIG_MAP).observed(runner.server.put(CONFIG_MAP, configMap('a', '1')));
  let writes = 0;
  runner.server.intercept = ({ method }) => {
    if (method === 'DELETE')
      runner.server.put(CONFIG_MAP, configMap('a', '1', { labels: { writes: String(++writes) } }));
    return undefined;
  };
  await runner.deliver(widget('web'));
  expect(deletes(runner)).toHaveLength(6);
  expect(runner.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  await runner.clock.advance(5);
  expect(deletes(runner)).toHaveLength(7);
});
