import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../full/support/eventually.js';
import { requestsFromNowOn, summary } from '../full/support/requests.js';
import { settled } from '../full/support/settled.js';
import { numberFrom } from './support/environment.js';
import { small } from './support/kinds.js';
import { Scenario, summaryOf } from './support/scenario.js';

const idleMinutes = numberFrom('SCENARIO_IDLE_MINUTES', 10);

test(
  'settled and idle, it writes nothing but its lease',
  { timeout: idleMinutes * 60_000 + 300_000 },
  async () => {
    await using scenario = await Scenario.start({ purpose: 'settled' });
    const { subject, cluster, user } = scenario;
    for (let index = 0; index < 20; index++) await subject.create(`web-${index}`, small);
    await subject.create('running', { ...small, size: 1 });
    for (let index = 0; index < 20; index++) await subject.ready(`web-${index}`);
    await subject.ready('running');
    await settled(cluster, user);
    // With Roles alone it takes some tries until a kind counts as not installed.
    await eventually(
      async () => {
        const reads = (await cluster.sandbox.audit(user)).filter(
          ({ objectRef }) => objectRef?.resource === 'customresourcedefinitions',
        );
        const quietSince = Date.parse(reads.at(-1)?.stageTimestamp ?? '1970-01-01');
        expect(Date.now() - quietSince).toBeGreaterThan(30_000);
      },
      { deadlineMilliseconds: 120_000, intervalMilliseconds: 1_000 },
    );
    const audited = await requestsFromNowOn(cluster, user);
    const proxied = scenario.requestsFromNowOn();

    // The row itself: a time in which nothing may happen.
    await delay(idleMinutes * 60_000);

    // A watch ends by itself after some minutes, and the next one goes on.
    const other = (await audited()).filter(
      ({ verb, objectRef }) => verb !== 'watch' && objectRef?.resource !== 'leases',
    );
    expect(other.map(summary)).toEqual([]);
    expect(
      proxied()
        .filter(({ isWatch, resource }) => !isWatch && resource !== 'leases')
        .map(summaryOf),
    ).toEqual([]);
    // The watches that are open do work.
    await subject.edit('web-0', { ...small, image: 'example.com/web:2' });
    await scenario.endsWell();
  },
);
