import { expect, test } from 'vitest';
import { deployments } from '../cluster/support/cluster.js';
import { eventually } from '../cluster/support/eventually.js';
import { settled } from '../cluster/support/settled.js';
import { inBatches } from './support/batches.js';
import { late, losing } from './support/faults.js';
import { small } from './support/kinds.js';
import { watches, writesTo } from './support/proxied-request.js';
import { Scenario, writesIn } from './support/scenario.js';
import { WatchLine } from './support/watch-line.js';

const count = 3_000;
const paceFromMilliseconds = 30_000;
const lateMilliseconds = 100;
const lowLaneMilliseconds = 30_000;

test('a thousand events a second about one child lead to no request, and to fewer reconciles', async () => {
  await using scenario = await Scenario.start({ purpose: 'storm-events' });
  const { subject, cluster, proxy } = scenario;
  await subject.create('hot', small);
  await subject.ready('hot');
  await settled(cluster, scenario.user);
  // The events are real; they are held back until all are made, and then one comes each millisecond.
  const dueAt = Date.now() + paceFromMilliseconds;
  let seen = 0;
  const paced = proxy.onEvents(watches('deployments'), () => Math.max(1, dueAt + seen++ - Date.now()));
  const place = subject.childPlace(deployments, 'hot');
  const numbers = Array.from({ length: count }, (_, index) => index);
  await inBatches(numbers, (index) =>
    cluster.merge(place, { metadata: { annotations: { 'example.com/count': String(index) } } }),
  );
  expect(Date.now(), 'all events are made before the first is due').toBeLessThan(dueAt);
  const requests = scenario.requestsFromNowOn();
  const from = scenario.controller.log.length;
  const reconciles = (): number =>
    scenario.controller.log.slice(from).filter(({ msg, name }) => msg === 'Reconciled' && name === 'hot')
      .length;

  await eventually(
    () => {
      expect(Date.now()).toBeGreaterThan(dueAt + seen + 1_000);
    },
    { deadlineMilliseconds: 120_000 },
  );
  paced.remove();

  console.info(`${seen} events in ${(seen / 1000).toFixed(1)} s led to ${reconciles()} reconciles`);
  expect(seen).toBeGreaterThanOrEqual(count);
  expect(reconciles()).toBeLessThan(seen);
  expect(writesIn(requests()).filter((line) => !line.includes('/status'))).toEqual([]);
  await scenario.endsWell();
});

test('one object that is edited without a pause is reconciled by one at a time, and edits are taken together', async () => {
  await using scenario = await Scenario.start({ purpose: 'storm-edits' });
  const { subject, proxy } = scenario;
  await subject.create('hot', small);
  await subject.ready('hot');
  const rule = proxy.on(writesTo(undefined, 'hot'), late(lateMilliseconds));
  const requests = scenario.requestsFromNowOn();
  const numbers = Array.from({ length: count }, (_, index) => index);
  const startedAt = performance.now();

  await inBatches(numbers, (index) =>
    subject.edit('hot', { ...small, image: `example.com/web:${index + 2}` }),
  );
  const milliseconds = performance.now() - startedAt;
  await scenario.endsWell();
  rule.remove();

  const sent = requests().filter(({ method, name }) => method === 'PATCH' && name === 'hot');
  for (const [index, { startedAt: at }] of sent.slice(1).entries())
    expect(sent[index]!.endedAt, 'no write begins before the last has ended').toBeLessThanOrEqual(at);
  const applies = sent.filter(({ resource }) => resource === 'deployments').length;
  console.info(
    `${count} edits in ${(milliseconds / 1000).toFixed(1)} s led to ${applies} applies, ${sent.length} writes in all`,
  );
  // Each write takes so long, so that more of them can't come one after another.
  expect(sent.length).toBeLessThanOrEqual((milliseconds + 10_000) / lateMilliseconds);
});

test('what comes from a list is served within 30 s, however busy edits keep the only worker', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'low-lane' });
  const { subject, proxy } = scenario;
  await scenario.startController({ args: ['--workers', '1'] });
  const hot = Array.from({ length: 12 }, (_, index) => `hot-${index}`);
  for (const name of hot) await subject.create(name, small);
  for (const name of hot) await subject.ready(name);
  // Each reconcile takes a quarter of a second and more, and every one is wanted again before its turn comes.
  const slow = proxy.on(writesTo(), late(lateMilliseconds));
  let busy = true;
  let version = 2;
  const edits = hot.map(async (name) => {
    while (busy) await subject.edit(name, { ...small, image: `example.com/web:${version++}` });
  });
  const unheard = proxy.onEvents(watches('appservices'), losing('low'));
  await subject.create('low', small);
  await eventually(() => {
    expect(unheard.hits).toBeGreaterThan(0);
  });
  unheard.remove();

  expect(proxy.inject(watches('appservices'), WatchLine.error(410, 'Expired'))).toBe(1);
  const startedAt = performance.now();
  try {
    await eventually(() => subject.cluster.get(subject.childPlace(deployments, 'low')), {
      deadlineMilliseconds: 120_000,
    });
  } finally {
    busy = false;
    await Promise.all(edits);
  }
  const took = performance.now() - startedAt;
  console.info(`It was served after ${(took / 1000).toFixed(1)} s`);
  expect(took).toBeLessThanOrEqual(lowLaneMilliseconds);
  slow.remove();
  await scenario.endsWell({ deadlineMilliseconds: 120_000 });
});
