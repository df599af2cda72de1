import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/cluster.js';
import type { RunningController } from '../support/operator.js';
import { startController } from '../support/operator.js';
import { buildsOfShop, leaseIn, stoppedOf, Webs } from '../support/shops.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const user = 'operator-110';
const [one, two] = await buildsOfShop();
const COUNT = 20;
const AT_ONCE = 3;
/** As many as may be updated at once, so that the others wait. */
const fragile = ['shop-05', 'shop-07', 'shop-08'];
const names = Array.from({ length: COUNT }, (_, index) => `shop-${String(index).padStart(2, '0')}`);

let shops: Subject;
const running: RunningController[] = [];

const start = async ({ config }: typeof one, args: readonly string[]): Promise<RunningController> => {
  const controller = await startController({
    ...{ cluster, user, kinds: [one.kind], config, namespaces: [shops.namespace], electionNamespace: user },
    ...{ args, awaitStart: false },
  });
  running.push(controller);
  return controller;
};

beforeAll(async () => {
  shops = await Subject.make(cluster, one.kind, 'rollout');
  const first = await start(one, ['--on-upgrade', 'apply']);
  for (const name of names)
    await shops.create(name, { size: 1, ...(fragile.includes(name) && { fragile: true }) });
  for (const name of names) await shops.ready(name);
  expect(await first.stop()).toBe(0);
});

afterAll(async () => {
  for (const controller of running) await controller.kill();
});

test('a number of custom resources is updated at once; the first that is not ready again stops it, until it is resumed', async () => {
  await using webs = await Webs.watch(cluster, shops.namespace, COUNT);

  // WHEN another build comes, and its process is killed again and again
  const args = ['--on-upgrade', String(AT_ONCE), '--ready-within', '20'];
  let controller = await start(two, args);
  for (const done of [2, 4]) {
    await eventually(() => {
      expect(webs.ofNext().length).toBeGreaterThanOrEqual(done);
    });
    await controller.kill();
    controller = await start(two, args);
  }

  // THEN it stops, and says which and why
  const annotation = async (): Promise<string | undefined> =>
    (await cluster.get(leaseIn(user))).metadata.annotations?.[stoppedOf(one.kind)];
  await eventually(
    async () => {
      expect(await annotation()).toMatch(
        /^[0-9a-f]{8} stopped Shop [^ ]*\/shop-0[578] was ready before, and isn't 20 s after its update/,
      );
    },
    { deadlineMilliseconds: 90_000 },
  );
  const updated = webs.ofNext();
  expect(updated).toEqual(expect.arrayContaining(fragile));
  expect(webs.mostUnready).toBeLessThanOrEqual(AT_ONCE);
  expect(webs.mostUnready).toBeGreaterThan(0);

  // WHEN a user edits one that is held
  const held = names.filter((name) => !updated.includes(name));
  expect(held.length).toBeGreaterThan(5);
  await shops.edit(held[0]!, { size: 1, text: 'bye' });
  await eventually(() => {
    expect(webs.ofNext()).toContain(held[0]);
  });

  // WHEN it is resumed
  const [build] = (await annotation())!.split(' ');
  await cluster.merge(leaseIn(user), {
    metadata: { annotations: { [stoppedOf(one.kind)]: `${build} resumed ${new Date().toISOString()}` } },
  });
  await eventually(
    () => {
      expect(webs.ofNext()).toEqual(names);
      expect(webs.unready()).toEqual(fragile);
    },
    { deadlineMilliseconds: 120_000 },
  );
  expect(await controller.stop()).toBe(0);
});
