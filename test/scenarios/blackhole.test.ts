import { expect, test } from 'vitest';
import { services } from '../support/cluster.js';
import type { FaultProxy } from '../support/fault-proxy.js';
import { everything, watches } from '../support/faults.js';
import { Scenario, small } from '../support/stages.js';

const limitMilliseconds = 90_000;

const silences: readonly [what: string, act: (proxy: FaultProxy) => number][] = [
  ['the connections of the watches', (proxy) => proxy.freezeConnections(watches())],
  ['every connection', (proxy) => proxy.freezeConnections(everything)],
  ['the watches alone, on connections that live,', (proxy) => proxy.silence(watches())],
];

test.concurrent.for(silences)('%s go silent without an end: found out within 90 s', async ([what, act]) => {
  await using scenario = await Scenario.start({ purpose: 'blackhole' });
  const { subject, cluster, proxy } = scenario;
  await scenario.createReady(small, 'edited', 'bereft');
  await scenario.settled();

  expect(act(proxy)).toBeGreaterThan(0);
  const startedAt = performance.now();
  await subject.edit('edited', { ...small, image: 'example.com/web:2' });
  await cluster.delete(subject.childPlace(services, 'bereft'));
  await subject.create('new', small);

  // Judged at the end, so that a late recovery is told by its time.
  await scenario.endsWell({ deadlineMilliseconds: 180_000, intervalMilliseconds: 1_000 });
  const took = performance.now() - startedAt;
  console.info(`Silence of ${what} was found out after ${(took / 1000).toFixed(0)} s`);
  expect(took).toBeLessThanOrEqual(limitMilliseconds);
});
