// What it costs when nothing happens, and after a restart.
import { setTimeout as delay } from 'node:timers/promises';
import { beyondWatching, byKind, writes } from '../support/audit.mjs';
import { Bench } from '../support/bench.mjs';
import { until } from '../support/util.mjs';

/** Over nothing at all, and over settled custom resources. */
export async function idle(bench) {
  const namespace = await bench.population(1);
  await bench.settled([namespace]);
  const controller = await bench.withController();
  const [mark, cpu] = [bench.audit.mark(), controller.cpuSeconds];
  await delay(bench.options.idleSeconds * 1000);
  const requests = beyondWatching(bench.audit.since(mark));
  bench.note('idle', 'seconds', bench.options.idleSeconds);
  bench.note('idle', 'requests beside watches and the lease', requests.length, '', 0);
  bench.note('idle', 'controller CPU', controller.cpuSeconds - cpu, 's');
  for (const kind of Object.entries(byKind(requests))) process.stderr.write(`    ${kind.join(' ')}\n`);
}

/** Resident memory of a process that has just started, over an empty cluster and over the custom resources. */
export async function memory(bench) {
  const controller = await bench.freshController();
  await delay(10_000);
  bench.note('memory', 'idle over an empty cluster', controller.resident.now, 'MiB', 90);
  await bench.population(1);
  bench.note('memory', `peak in a burst of ${bench.count}`, controller.resident.peak, 'MiB', 110);
  bench.note('memory', `after a burst of ${bench.count}, same process`, controller.resident.now, 'MiB');
  const again = await bench.freshController();
  await until('the first pass', () => again.idle(bench.count));
  await delay(10_000);
  bench.note('memory', `idle over ${bench.count}, after a restart`, again.resident.now, 'MiB', 110);
  bench.note('memory', `peak over ${bench.count}, after a restart`, again.resident.peak, 'MiB');
}

/** A restart over ten times as many, of size 0, in a control plane of their own. */
export async function restart(figures, options) {
  const count = options.count * 10;
  // The API server allocates node ports one after another: many requests at once only make it try again and again.
  const few = [...options.args, '--workers', '2'];
  const bench = await Bench.start(figures, { ...options, count, args: few });
  try {
    const namespace = await bench.population(0);
    const phase = `restart over ${count}`;
    bench.note(phase, 'RSS of the process that made them', bench.controller.resident.now, 'MiB');
    await bench.withoutController();
    bench.options = options;
    const mark = bench.audit.mark();
    const controller = await bench.withController();
    const synced = performance.now();
    await until('the first pass', () => controller.idle(count), { every: 100, milliseconds: 300_000 });
    const settled = performance.now();
    await delay(5_000);
    const entries = bench.audit.since(mark);
    bench.note(phase, 'until the lists are there', (synced - controller.started) / 1000, 's');
    bench.note(phase, 'until settled', (settled - controller.started) / 1000, 's');
    bench.note(phase, 'controller CPU', controller.cpuSeconds, 's');
    bench.note(phase, 'writes', writes(entries).length, '', 0);
    bench.note(phase, 'lists and streams of one kind', mostOfOneKind(entries), '', 1);
    bench.note(phase, 'requests', byKind(entries));
    bench.note(phase, 'peak RSS', controller.resident.peak, 'MiB', 250);
    bench.note(phase, 'RSS', controller.resident.now, 'MiB');
    const { faults } = await bench.settled([namespace]);
    bench.note(phase, 'statuses wrong', faults.length, '', 0);
  } finally {
    await bench.stop();
  }
}

/** How often the kind was listed or watched that was listed or watched most. */
function mostOfOneKind(entries) {
  const counts = new Map();
  // A kind that isn't installed is asked for again.
  for (const { verb, what, code } of entries)
    if ((verb === 'watch' || verb === 'list') && code < 400) counts.set(what, (counts.get(what) ?? 0) + 1);
  return Math.max(...counts.values());
}
