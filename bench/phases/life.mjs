// What befalls custom resources that exist: nothing, a restart, and changes by users and others.
import { setTimeout as delay } from 'node:timers/promises';
import { byKind, beyondWatching, writes } from '../support/audit.mjs';
import { Bench } from '../support/bench.mjs';
import { until } from '../support/util.mjs';
import { liveBurst } from './bursts.mjs';
import { drift, hot, update } from './changes.mjs';

/** All of it, over custom resources of size 0 that a live burst has made. */
export async function life(bench) {
  const controller = await bench.withController();
  await delay(10_000);
  bench.note('empty cluster', 'RSS', controller.resident.now, 'MiB', 90);
  const namespace = await liveBurst(bench, 0);
  await idle(bench);
  await restart(bench, namespace);
  await drift(bench, namespace);
  await hot(bench, namespace);
  await update(bench, namespace);
}

async function idle(bench) {
  await bench.leaveAlone(`${bench.count} settled`);
}

/** A process that starts over settled custom resources. */
async function restart(bench, namespace) {
  const { count } = bench;
  const phase = `restart over ${count}`;
  await bench.withoutController();
  const mark = bench.audit.mark();
  const controller = await bench.withController();
  const synced = performance.now();
  await until('the first pass', () => controller.idle(count), { every: 100, milliseconds: 300_000 });
  const settled = performance.now();
  await delay(5_000);
  const entries = bench.audit.since(mark);
  bench.note(phase, 'until the lists are there', (synced - controller.started) / 1000, 's');
  bench.note(phase, 'until settled', (settled - controller.started) / 1000, 's');
  bench.note(phase, 'CPU', controller.cpuSeconds, 's');
  bench.note(phase, 'writes', writes(entries).length, '', 0);
  bench.note(phase, 'requests', byKind(beyondWatching(entries)));
  bench.note(phase, 'peak RSS', controller.resident.peak, 'MiB', 250);
  bench.note(phase, 'RSS', controller.resident.now, 'MiB');
  const { faults } = await bench.settled([namespace]);
  bench.note(phase, 'statuses wrong in the end', faults.length, '', 0);
}

/** A restart over ten times as many, in a control plane of their own. */
export async function restartOverMany(figures, options, operator) {
  const bench = await Bench.start(figures, { ...options, count: options.count * 10 });
  bench.operator = operator;
  try {
    await restart(bench, await liveBurst(bench, 0));
  } finally {
    await bench.stop();
  }
}
