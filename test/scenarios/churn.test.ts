import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Random } from '../../src/testing/walk.js';
import { eventually, inBatches } from '../support/cluster.js';
import { inspectable, Inspector } from '../support/inspector.js';
import { settled } from '../support/requests.js';
import { Scenario, summaryOf } from '../support/stages.js';
import { ownControlPlane } from '../support/test-clusters.js';
import { Churn } from './support/churn.js';
import { numberFrom } from './support/environment.js';

const minutes = numberFrom('CHURN_MINUTES', 20);
const count = numberFrom('CHURN_COUNT', 1_000);
const seed = numberFrom('CHURN_SEED', (Date.now() % 1_000_000) + 1);
const actionsPerSecond = 10;
/** Of the heap after the first minute; what is remembered per object differs with the objects. */
const allowedGrowth = 1.15;
const megabyte = 2 ** 20;

interface Sample {
  readonly minute: string;
  readonly heapMegabytes: number;
  readonly residentMegabytes: number;
  readonly resources: number;
  readonly requests: number;
}

const own = ownControlPlane();

test(
  'after a long time in which everything changes and breaks, nothing is lost and nothing has piled up',
  { timeout: minutes * 60_000 + 1_800_000 },
  async () => {
    console.info(`CHURN_SEED=${seed}`);
    await using scenario = await Scenario.prepare({ purpose: 'churn', sandbox: own.sandbox });
    const { subject, proxy } = scenario;
    // At its own pace a log of every reconcile would be what is measured.
    await scenario.startController({ nodeArgs: inspectable, args: ['--log-level', 'info'] });
    using inspector = await Inspector.attach(scenario.controller);
    const churn = new Churn(subject, proxy, new Random(seed));
    await inBatches(
      Array.from({ length: count }, (_, index) => index),
      () => churn.create(),
    );
    await scenario.endsWell({ deadlineMilliseconds: 600_000, intervalMilliseconds: 5_000 });

    const samples: Sample[] = [];
    const startedAt = performance.now();
    const sample = async (): Promise<void> => {
      samples.push({
        minute: ((performance.now() - startedAt) / 60_000).toFixed(1),
        heapMegabytes: round((await inspector.heapBytes()) / megabyte),
        residentMegabytes: round(residentBytes(Number(await inspector.evaluate('process.pid'))) / megabyte),
        resources: churn.names.size,
        requests: proxy.requests.length,
      });
    };
    await sample();
    const restarts = [minutes / 3, (2 * minutes) / 3];
    for (let action = 0; performance.now() - startedAt < minutes * 60_000; action++) {
      const elapsed = (performance.now() - startedAt) / 60_000;
      if (restarts[0] !== undefined && elapsed >= restarts[0]) {
        restarts.shift();
        await own.sandbox.restartApiServer();
      }
      if (elapsed >= samples.length) await sample();
      await churn.act();
      // The load itself: so many changes a second.
      const due = startedAt + ((action + 1) * 1_000) / actionsPerSecond;
      await delay(Math.max(0, Math.min(due - performance.now(), 1_000)));
    }

    // The garbage collector is slow to notice that its API server is back; a new one looks at once.
    await own.sandbox.restartControllerManager();
    try {
      await scenario.endsWell({ deadlineMilliseconds: 600_000, intervalMilliseconds: 5_000 });
      await settled(scenario.cluster, scenario.user, { deadlineMilliseconds: 300_000 });
      const names = (await scenario.cluster.list(subject.kind.type, scenario.namespace)).map(
        ({ metadata }) => metadata.name,
      );
      // What was asked for is there, but for what an API server that was about to stop has done without an answer.
      const lost = [...churn.names].filter((name) => !names.includes(name));
      expect(lost.length, `missing: ${lost.join()}`).toBeLessThanOrEqual(
        Object.values(churn.failed).reduce((sum, each) => sum + each, 0),
      );
      await eventually(sample);
    } finally {
      console.table(samples);
      console.info({ done: churn.done, failed: churn.failed });
      console.table(
        mostFrequent(proxy.requests.map((request) => summaryOf({ ...request, name: undefined }))),
      );
    }

    const [first, last] = [samples[Math.min(1, samples.length - 1)]!, samples.at(-1)!];
    const growth = last.heapMegabytes / first.heapMegabytes;
    console.info(`The heap is ${growth.toFixed(2)} times what it was after a minute`);
    expect(growth).toBeLessThanOrEqual(allowedGrowth);
  },
);

function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) * 1024;
}

/** The fifteen that are there most often. */
function mostFrequent(lines: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a).slice(0, 15));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
