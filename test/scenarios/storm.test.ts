import { expect, test } from 'vitest';
import { deployments, eventually } from '../support/cluster.js';
import { late, losing, watches, writesTo } from '../support/faults.js';
import { Scenario, small } from '../support/stages.js';
import { WatchLine } from '../../src/testing/watch-line.js';
const stormMilliseconds = 10_000;
const lateMilliseconds = 100;
const lowLaneMilliseconds = 30_000;

/**
 * Edits without a pause for as long as asked, and until there are so many; two at once, since more of one object would
 * only be in each other's way. Returns how many there were.
 */
async function storm(
  milliseconds: number,
  act: (index: number) => Promise<unknown>,
  atLeast = 0,
): Promise<number> {
  const startedAt = performance.now();
  let index = 0;
  const work = async (): Promise<void> => {
    while (performance.now() - startedAt < milliseconds || index < atLeast) await act(index++);
  };
  await Promise.all(Array.from({ length: 2 }, work));
  return index;
}

test('one object that is edited without a pause is reconciled by one at a time, and edits are taken together', async () => {
  await using scenario = await Scenario.start({ purpose: 'storm-edits' });
  const { subject, proxy } = scenario;
  await scenario.createReady(small, 'hot');
  const rule = proxy.on(writesTo(undefined, 'hot'), late(lateMilliseconds));
  const requests = scenario.requestsFromNowOn();
  const startedAt = performance.now();

  const edits = await storm(stormMilliseconds, (index) =>
    subject.edit('hot', { ...small, image: `example.com/web:${index + 2}` }),
  );
  await scenario.endsWell();
  const milliseconds = performance.now() - startedAt;
  rule.remove();

  const sent = requests().filter(({ method, name }) => method === 'PATCH' && name === 'hot');
  for (const [index, { startedAt: at }] of sent.slice(1).entries())
    expect(sent[index]!.endedAt, 'no write begins before the last has ended').toBeLessThanOrEqual(at);
  const applies = sent.filter(({ resource }) => resource === 'deployments').length;
  console.info(`${edits} edits led to ${applies} applies, and ${sent.length} writes in all`);
  // Each write takes so long, so that more of them can't come one after another.
  expect(sent.length).toBeLessThanOrEqual(milliseconds / lateMilliseconds);
  expect(applies).toBeLessThan(edits);
});

test('what comes from a list is served in its turn, however busy edits keep the only worker', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'low-lane' });
  const { subject, proxy } = scenario;
  await scenario.startController({ args: ['--workers', '1'] });
  const hot = Array.from({ length: 12 }, (_, index) => `hot-${index}`);
  await scenario.createReady(small, ...hot);
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
  // Beside that, nine reconciles and a list, on a machine that may pause.
  expect(took).toBeLessThanOrEqual(lowLaneMilliseconds + 30_000);
  slow.remove();
  await scenario.endsWell({ deadlineMilliseconds: 120_000 });
});
