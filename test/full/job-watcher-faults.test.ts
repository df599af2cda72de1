import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { paths } from '../../sandbox/layout.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { clockAhead, Gate, respond } from '../scenarios/support/faults.js';
import { FaultProxy } from '../scenarios/support/fault-proxy.js';
import { inspectable, Inspector } from '../scenarios/support/inspector.js';
import { everything, lists, writesTo } from '../scenarios/support/proxied-request.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { ControllerProps, RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { deletionsOf, HOUR, Jobs } from './support/jobs.js';
import { kubeconfigLike } from './support/kubeconfigs.js';

/** What a JobWatcher does while its requests are held, refused, or answered by a clock that is wrong. */
const user = 'operator-56';
const sandbox = openSandbox(inject('sandbox'));
const cluster = new Cluster(sandbox);
let proxy: FaultProxy;
let kubeconfig: string;
let world: Jobs;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  const ca = readFileSync(paths(sandbox).ca, 'utf8');
  const key = readFileSync(join(paths(sandbox).certificates, 'apiserver.key'), 'utf8');
  proxy = await FaultProxy.start({ url: sandbox.url, ca }, { certificate: ca, key });
  kubeconfig = await kubeconfigLike(cluster, user, { server: proxy.url });
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await cluster.close();
});

beforeEach(async () => {
  world = new Jobs(cluster, await cluster.makeNamespace('job-watcher-faults'));
});

async function start(props: Partial<ControllerProps> = {}): Promise<RunningController> {
  return startController({
    ...{ cluster, user, kubeconfig, kinds: [jobWatcher], namespaces: [world.namespace] },
    ...props,
  });
}

/** Holds the deletion of a Job back, until the gate is opened. */
function holding(name: string): Gate & Disposable {
  const gate = new Gate();
  const rule = proxy.on(writesTo('jobs', name), gate.fault);
  return Object.assign(gate, {
    [Symbol.dispose]: () => {
      rule.remove();
      gate.open();
    },
  });
}

async function isHeld(gate: Gate): Promise<void> {
  await eventually(() => {
    expect(gate.held).toBe(1);
  });
}

async function outcomes(controller: RunningController, name: string): Promise<unknown[]> {
  await controller.logged((line) => line.name === name && line.outcome !== undefined);
  return controller.log
    .filter((line) => line.name === name && line.outcome !== undefined)
    .map(({ outcome }) => outcome);
}

describe('rule 6: a Job is deleted as it was judged', () => {
  test('one that has changed meanwhile is judged again', async () => {
    await using controller = await start();
    using gate = holding('edited-job');
    await world.finished('edited-job');
    await world.watch('edited', { completedTTL: '30m' });
    await isHeld(gate);
    await world.edit('edited-job', { metadata: { annotations: { 'batch.my.github.com/keep': 'true' } } });
    gate.open();

    await world.told('edited', { lastRun: { deleted: 0, failed: 0, skipped: { KeepAnnotation: 1 } } });
    expect(await outcomes(controller, 'edited-job')).toEqual(['changed']);
    expect(await world.names('edited-')).toEqual(['edited-job']);
  });

  test('a namesake that was made meanwhile has a time of its own', async () => {
    await using controller = await start();
    using gate = holding('again-job');
    await world.finished('again-job');
    await world.watch('again', { completedTTL: '30m' });
    await isHeld(gate);
    await world.delete('again-job');
    await world.left('again-', []);
    await world.finished('again-job', { ago: 60 });
    gate.open();

    await world.told('again', { lastRun: { deleted: 0, failed: 0, skipped: { NotDue: 1 } } });
    expect(await outcomes(controller, 'again-job')).toEqual(['changed']);
    expect(await world.names('again-')).toEqual(['again-job']);
  });

  test('one that has gone meanwhile is done with, and counts as neither deleted nor failed', async () => {
    await using controller = await start();
    using gate = holding('gone-job');
    await world.finished('gone-job');
    await world.watch('gone', { completedTTL: '30m' });
    await isHeld(gate);
    await world.delete('gone-job');
    await world.left('gone-', []);
    gate.open();

    expect(await outcomes(controller, 'gone-job')).toEqual(['gone']);
    await world.told('gone', { lastRun: { matched: 0, deleted: 0, failed: 0 } });
    await world.condition('gone', { type: 'Ready', status: 'True' });
  });

  test('an operator that is killed in between leaves it to the next one', async () => {
    using gate = holding('orphan-job');
    await world.finished('orphan-job');
    await world.watch('orphan', { completedTTL: '30m' });
    {
      await using controller = await start();
      await isHeld(gate);
      await controller.kill();
    }
    await world.edit('orphan-job', { metadata: { annotations: { 'batch.my.github.com/keep': 'true' } } });
    await world.finished('orphan-other');
    await using controller = await start();
    gate.open();
    await world.left('orphan-', ['orphan-job']);
    expect(await outcomes(controller, 'orphan-other')).toEqual(['deleted']);
  });
});

test('one Job that fails however often never stops the others', async () => {
  await using controller = await start();
  const rule = proxy.on(writesTo('jobs', 'faulty-job'), respond({ status: 500 }));
  await world.finished('faulty-job');
  await world.watch('faulty', { completedTTL: '0s' });
  await eventually(() => {
    expect(rule.hits).toBeGreaterThan(10);
  });
  await world.told('faulty', { lastRun: { deleted: 0, failed: 1 } });
  await world.finished('faulty-other');
  await world.left('faulty-', ['faulty-job']);
  rule.remove();
  await world.finished('faulty-third');
  await world.left('faulty-', []);
  await world.condition('faulty', { type: 'Ready', status: 'True' });
  expect(new Set(await outcomes(controller, 'faulty-job'))).toEqual(new Set(['ServerOverloaded', 'deleted']));
});

test('a Job whose deletion is put off for a minute holds back no other, and is not sent again meanwhile', async () => {
  await using controller = await start();
  const putOff = respond({ status: 429, headers: { 'retry-after': '60' } });
  const rule = proxy.on(writesTo('jobs', 'put-off-job'), putOff);
  await world.finished('put-off-job');
  await world.watch('put-off', { completedTTL: '0s' });
  await controller.logged((line) => line.name === 'put-off-job' && line.outcome !== undefined);
  for (const name of ['put-off-second', 'put-off-third']) {
    await world.finished(name);
    await world.left('put-off-', ['put-off-job']);
  }
  expect(rule.hits).toBe(1);
  // Nor is it announced again, or audited.
  expect(await outcomes(controller, 'put-off-job')).toHaveLength(1);
  rule.remove();
});

describe('rule 13: the API server’s clock counts where the operator’s is more than 30 s off', () => {
  test.each([
    // By the operator's clock, the first has an hour to go, and the second is due for half an hour.
    { name: 'ahead', seconds: 7200, deleted: ['ahead-early', 'ahead-over'] },
    { name: 'behind', seconds: -7200, deleted: [] },
    { name: 'near', seconds: 20, deleted: ['near-over'], skewed: 'False' },
  ])('$name by $seconds s', async ({ name, seconds, deleted, skewed = 'True' }) => {
    const rule = proxy.on(everything, clockAhead(seconds * 1000));
    try {
      await using controller = await start();
      await world.finished(`${name}-early`, { ago: 1800 });
      await world.finished(`${name}-over`, { ago: 2 * HOUR });
      await world.watch(name, { completedTTL: '90m' });
      await world.condition(name, { type: 'ClockSkewed', status: skewed as 'True' });
      await world.told(name, { lastRun: { deleted: deleted.length } });
      for (const gone of deleted) expect(await outcomes(controller, gone)).toEqual(['deleted']);
      expect(deletionsOf(await cluster.sandbox.audit(user), `${name}-`)).toHaveLength(deleted.length);
    } finally {
      rule.remove();
    }
  });
});

test('rule 17: of large Jobs next to nothing is kept, and they come as a stream', async () => {
  const spec = { suspend: true };
  await world.finished('large-first');
  await world.watch('large', { completedTTL: '1h30m' });
  await using controller = await start({ nodeArgs: inspectable, args: ['--log-level', 'info'] });
  await world.told('large', { lastRun: { matched: 1 } });
  using inspector = await Inspector.attach(controller);
  const before = (await inspector.heap()).usedSize;
  const annotations = { 'example.com/notes': 'x'.repeat(200_000) };
  const count = 40;
  for (let n = 0; n < count; n++)
    await world.finished(`large-${n}`, {
      spec,
      metadata: { annotations },
      image: `example.com/${'x'.repeat(200_000)}`,
    });
  await world.told('large', { lastRun: { matched: count + 1 } });
  // They are 16 MB.
  expect((await inspector.heap()).usedSize - before).toBeLessThan(4_000_000);
  expect(proxy.requests.some(lists('jobs'))).toBe(true);
  expect(
    proxy.requests.filter(
      ({ method, resource, name, isWatch }) =>
        method === 'GET' && resource === 'jobs' && !isWatch && name === undefined,
    ),
  ).toEqual([]);
});
