// Many finished Jobs under one JobWatcher and under ten: memory, requests, and how late Jobs are deleted.
import { setTimeout as delay } from 'node:timers/promises';
import { jobWatcher as kind } from '../../lib/kinds/job-watcher/kind.js';
import { byKind } from '../support/audit.mjs';
import { Bench } from '../support/bench.mjs';
import { finish, job, jobOf, makeWatcher, watchersTold } from '../support/jobs.mjs';
import { each, quantile, seconds, until } from '../support/util.mjs';
import { Witness } from '../support/witness.mjs';

const JOBS_EACH = 50;
const NAMESPACES = 10;
const CRON_JOBS = 50;
const REQUESTS_AT_ONCE = 32;
const MAX_MIB = 256;
const OVERLAPPING = 10;

/** In a control plane of their own without controllers: the Jobs' states are written by hand, and none ever runs. */
export async function jobWatcher(figures, options) {
  // The watchers are in `default`, which is no admin's unless somebody says so.
  const own = ['--jobwatcher-deletes-per-second', '100', '--jobwatcher-admin-namespaces', 'default'];
  const bench = await Bench.start(figures, { ...options, args: own }, { kinds: [kind], apiOnly: true });
  try {
    const count = options.count * JOBS_EACH;
    await finishedJobs(bench, count);
    await makeWatcher(bench.cluster, 'watcher-0', overlapping(0));
    await known(bench, `${count} finished Jobs, one JobWatcher`);
    await more(bench, `${count} finished Jobs, ${OVERLAPPING} JobWatchers`);
    await known(bench, `${count} finished Jobs, ${OVERLAPPING} JobWatchers`);
    await lag(bench, `deletion lag among ${count} others`);
  } finally {
    await bench.stop();
  }
}

async function finishedJobs({ cluster }, count) {
  const namespaces = Array.from({ length: NAMESPACES }, (_, index) => `jobs-${index}`);
  for (const namespace of namespaces) await cluster.makeNamespace(namespace);
  const indexes = Array.from({ length: count }, (_, index) => index);
  const start = Date.now();
  const took = await seconds(() =>
    each(indexes, REQUESTS_AT_ONCE, async (index) => {
      const namespace = namespaces[index % NAMESPACES];
      const cronJob = `report-${index % CRON_JOBS}`;
      const name = `${cronJob}-${29_000_000 + index}`;
      await cluster.create(job, jobOf(namespace, name, cronJob));
      // Within the day before.
      const at = start - ((index * 7919) % 86_400) * 1000;
      await finish(cluster, { namespace, name }, at, index % 10 === 0 ? 'failed' : 'completed');
    }),
  );
  process.stderr.write(`  ${count} Jobs made in ${Math.round(took)} s\n`);
}

/** All match all Jobs, and none of them is due for weeks. */
function overlapping(index) {
  return {
    namespacePatterns: ['^jobs-'],
    completedTTL: `${1000 + index}h`,
    failedTTL: `${2000 + index}h`,
    priority: index % 3,
    dryRun: index % 5 === 4,
    frequency: '5s',
  };
}

/** A fresh start over all of them, and then nothing at all. */
async function known(bench, phase) {
  const controller = await bench.freshController();
  await until('the statuses', () => watchersTold(bench.cluster), { milliseconds: 120_000 });
  await bench.quiet();
  bench.note(phase, 'peak RSS of the start', controller.resident.peak, 'MiB', MAX_MIB);
  bench.note(phase, 'controller CPU of the start', controller.cpuSeconds, 's');
  await delay(10_000);
  controller.resetPeak();
  await bench.leaveAlone(phase);
  bench.note(phase, 'RSS, settled', controller.resident.now, 'MiB');
  bench.note(phase, 'peak RSS, settled', controller.resident.peak, 'MiB', MAX_MIB);
}

/** Every Job is judged anew while the verdicts before are garbage that is still there. */
async function more(bench, phase) {
  bench.controller.resetPeak();
  for (let index = 1; index < OVERLAPPING; index++)
    await makeWatcher(bench.cluster, `watcher-${index}`, overlapping(index));
  await until('the statuses', () => watchersTold(bench.cluster), { milliseconds: 120_000 });
  await bench.quiet();
  bench.note(phase, 'peak RSS while all but one are made', bench.controller.resident.peak, 'MiB', MAX_MIB);
}

const LAG_NAMESPACE = 'jobs-lag';
const LAG_JOBS = 300;
const LAG_MILLISECONDS = 60_000;
const TTL_SECONDS = 15;

/** Jobs finish one after another, each to be deleted when its time has come. */
async function lag(bench, phase) {
  const { cluster } = bench;
  const count = Math.min(LAG_JOBS, bench.count);
  await cluster.makeNamespace(LAG_NAMESPACE);
  const names = Array.from({ length: count }, (_, index) => `short-${index}`);
  await each(names, REQUESTS_AT_ONCE, (name) => cluster.create(job, jobOf(LAG_NAMESPACE, name, 'short')));
  const spec = { namespacePatterns: [`^${LAG_NAMESPACE}$`], completedTTL: `${TTL_SECONDS}s`, priority: 9 };
  await makeWatcher(cluster, 'short', { ...spec, frequency: '15s' });
  await until('the status', () => watchersTold(cluster));
  await bench.quiet();

  const witness = await Witness.of(cluster, job, LAG_NAMESPACE);
  const deadlines = new Map();
  const lags = [];
  const allDeleted = witness.until((object) => {
    const name = object?.metadata.name;
    if (object && !witness.objects.has(name)) lags.push(Date.now() - deadlines.get(name));
    return witness.objects.size === 0;
  });
  const [mark, { controller }] = [bench.audit.mark(), bench];
  const cpu = controller.cpuSeconds;
  const start = performance.now();
  for (const [index, name] of names.entries()) {
    await delay(Math.max(0, start + (index * LAG_MILLISECONDS) / count - performance.now()));
    const finishedAt = Math.floor(Date.now() / 1000) * 1000;
    deadlines.set(name, finishedAt + TTL_SECONDS * 1000);
    await finish(cluster, { namespace: LAG_NAMESPACE, name }, finishedAt);
  }
  await allDeleted;
  await bench.quiet();
  await witness.stop();
  const entries = bench.audit.since(mark);
  const asked = entries
    .filter(({ verb, what }) => verb === 'delete' && what === 'jobs')
    .map(({ name, receivedAt }) => receivedAt - deadlines.get(name));
  bench.note(phase, 'Jobs deleted', lags.length);
  bench.note(phase, 'before their deadline', lags.filter((each) => each < 0).length, '', 0);
  bench.note(phase, 'beyond the deadline, p50', quantile(lags, 0.5) / 1000, 's');
  bench.note(phase, 'beyond the deadline, p99', quantile(lags, 0.99) / 1000, 's', 1);
  bench.note(phase, 'asked for beyond the deadline, p99', quantile(asked, 0.99) / 1000, 's');
  bench.note(phase, 'requests', byKind(entries));
  bench.note(phase, 'controller CPU', controller.cpuSeconds - cpu, 's');
  bench.note(phase, 'peak RSS', controller.resident.peak, 'MiB', MAX_MIB);
}
