// What befalls custom resources that exist: nothing, a restart, and changes by users and others.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { byKind, beyondWatching, writes } from '../support/audit.mjs';
import { Bench } from '../support/bench.mjs';
import { ours } from '../support/operators.mjs';
import { residentMiB } from '../support/process.mjs';
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
    if (operator !== ours) return;
    await bench.withoutController();
    await diffAll(bench, 'none would change', ['--kinds', 'appservice']);
    await diffAll(bench, 'all Deployments would', ['--config', NEXT_VERSION]);
  } finally {
    await bench.stop();
  }
}

const NEXT_VERSION = fileURLToPath(
  new URL('../../test/support/kinds/next-version.config.mjs', import.meta.url),
);
const COMMAND = fileURLToPath(new URL('../../lib/bundle/reconstruct.mjs', import.meta.url));

/** What a version would change of all that is live: the command from its start to its end. */
async function diffAll(bench, what, args) {
  const { sandbox, user } = bench.cluster;
  const mark = bench.audit.mark();
  const began = performance.now();
  const access = ['--kubeconfig', sandbox.kubeconfig(user)];
  const diff = spawn(process.execPath, [COMMAND, 'diff', '--all', '-A', ...access, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let peak = 0;
  const sampling = setInterval(() => {
    const now = residentMiB(diff.pid).peak;
    if (now > peak) peak = now;
  }, 200);
  const [code] = await once(diff, 'exit');
  clearInterval(sampling);
  if (code > 1) throw new Error(`diff ended with ${code}`);
  const phase = `diff --all of ${bench.count}: ${what}`;
  bench.note(phase, 'until it is there', (performance.now() - began) / 1000, 's', 60);
  bench.note(phase, 'requests', byKind(beyondWatching(bench.audit.since(mark))));
  bench.note(phase, 'peak RSS', peak, 'MiB');
}
