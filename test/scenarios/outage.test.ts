import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually, inBatches, services } from '../support/cluster.js';
import { settled } from '../support/requests.js';
import { Scenario, small } from '../support/stages.js';
import { numberFrom } from './support/environment.js';

const outageMinutes = numberFrom('SCENARIO_OUTAGE_MINUTES', 5);
const count = numberFrom('SCENARIO_OUTAGE_COUNT', 1_000);
const triesPerSecond = 0.25;
const edited = { ...small, image: 'example.com/web:2' };
const names = Array.from({ length: count }, (_, index) => `web-${index}`);

test(
  'an API server that is away while everything changes is hardly asked, and all is made up for afterwards',
  { timeout: outageMinutes * 60_000 + 900_000 },
  async () => {
    await using scenario = await Scenario.start({ purpose: 'outage' });
    const { subject, cluster, proxy } = scenario;
    await inBatches(names, (name) => subject.create(name, small));
    await eventually(
      async () => {
        expect(await cluster.list(services, scenario.namespace)).toHaveLength(count);
      },
      { deadlineMilliseconds: 300_000, intervalMilliseconds: 1_000 },
    );
    await settled(cluster, scenario.user, { deadlineMilliseconds: 300_000 });

    proxy.turnAway();
    const before = proxy.connectionAttempts;
    const startedAt = performance.now();
    await inBatches(names, (name) => subject.edit(name, edited));
    // The row itself: the API server is away for so long.
    await delay(Math.max(0, outageMinutes * 60_000 - (performance.now() - startedAt)));
    const seconds = (performance.now() - startedAt) / 1_000;
    const tries = proxy.connectionAttempts - before;
    await proxy.accept();
    const backAt = performance.now();

    await scenario.endsWell({ deadlineMilliseconds: 300_000, intervalMilliseconds: 2_000 });
    const recovery = (performance.now() - backAt) / 1_000;
    console.info(
      `${tries} tries in ${seconds.toFixed(0)} s (${(tries / seconds).toFixed(2)}/s); ` +
        `${count} custom resources were right ${recovery.toFixed(0)} s after the API server was back`,
    );
    expect(tries / seconds).toBeLessThanOrEqual(triesPerSecond);
  },
);
