import { expect, test } from 'vitest';
import { inBatches } from './support/batches.js';
import { oneIn, respond } from './support/faults.js';
import { small } from './support/kinds.js';
import { Scenario, summaryOf } from './support/scenario.js';

const count = 40;
const retryAfterSeconds = 1;
/** What was on its way when the answer came is no fault. */
const graceMilliseconds = 150;

test('a server that refuses every second request for a while is left in peace as long as it asks', async () => {
  await using scenario = await Scenario.start({ purpose: 'overload' });
  const { subject, proxy } = scenario;
  const overloaded = respond({ status: 429, headers: { 'retry-after': String(retryAfterSeconds) } });
  const requests = scenario.requestsFromNowOn();
  const rule = proxy.on(({ isWatch, resource }) => !isWatch && resource !== 'leases', oneIn(2, overloaded));
  const names = Array.from({ length: count }, (_, index) => `web-${index}`);
  await inBatches(names, (name) => subject.create(name, small));

  await scenario.endsWell({ deadlineMilliseconds: 480_000, intervalMilliseconds: 1_000 });
  rule.remove();

  const sent = requests().filter(({ isWatch, resource }) => !isWatch && resource !== 'leases');
  const refusedAt = sent.flatMap(({ status, endedAt }) => (status === 429 && endedAt ? [endedAt] : []));
  const impatient = sent.filter(({ startedAt }) =>
    refusedAt.some(
      (at) => startedAt > at + graceMilliseconds && startedAt < at + retryAfterSeconds * 1_000 - 20,
    ),
  );
  const seconds = (sent.at(-1)!.startedAt - sent[0]!.startedAt) / 1_000;
  console.info(
    `${sent.length} requests in ${seconds.toFixed(0)} s, ${refusedAt.length} refused, ${impatient.length} too early`,
  );
  expect(refusedAt.length).toBeGreaterThan(count);
  // The first few say enough.
  expect(impatient.slice(0, 5).map(summaryOf)).toEqual([]);
});
