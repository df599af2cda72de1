// JobWatchers by number: milliseconds of processor time that plans of the controller keep the event loop busy, without a cluster.
// The 500 Jobs, or as many as there are watchers, are in one namespace or spread over a hundredth as many as there are watchers.
import { isDeepStrictEqual } from 'node:util';
import { JobWatcherController, KEY } from '../lib/kinds/job-watcher/controller.js';
import { keepJob } from '../lib/kinds/job-watcher/keep-job.js';
import { jobWatcher } from '../lib/kinds/job-watcher/kind.js';

const NOW = Date.UTC(2026, 0, 1);
const FINISHED = { type: 'Complete', status: 'True', lastTransitionTime: new Date(NOW).toISOString() };

function watcher(index, namespace) {
  return {
    ...{ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' },
    metadata: { name: `w${index}`, namespace, uid: `w${index}`, generation: 1 },
    spec: { jobNamePatterns: ['^job', `-${index}$`], completedTTL: `${3600 + index}s` },
    status: { observedGeneration: -1 },
  };
}

function job(index, namespace) {
  return keepJob({
    ...{ apiVersion: 'batch/v1', kind: 'Job', spec: {} },
    metadata: { name: `job-${index}`, namespace, uid: `j${index}`, resourceVersion: '1' },
    status: { conditions: [FINISHED] },
  });
}

/** Plans until nothing is left to do; returns the time of all, and of the longest. */
function turn(controller, reader, crs) {
  let total = 0;
  let longest = 0;
  for (let again = true; again;) {
    const start = process.threadCpuUsage();
    const plan = controller.reconcile(KEY, reader, new Date(NOW));
    const changes = [];
    const statuses = plan.status.map(({ status }) => status(changes));
    for (const { event } of plan.events) event(changes);
    plan.samples?.(changes);
    plan.requeueAt?.(changes);
    const { user, system } = process.threadCpuUsage(start);
    const took = (user + system) / 1000;
    total += took;
    longest = Math.max(longest, took);
    again = plan.again?.(changes) ?? false;
    for (const [at, { target }] of plan.status.entries())
      if (!isDeepStrictEqual(statuses[at], target.status))
        crs[crs.indexOf(target)] = { ...target, status: statuses[at] };
  }
  return { total: Math.round(total), longest: Math.round(longest) };
}

function measure(watchers, jobs, namespaces) {
  const props = { adminNamespaces: [], protectedNamespaces: [] };
  const clock = () => performance.now();
  const controller = new JobWatcherController({
    ...{ type: jobWatcher.type, settings: props, deletesPerSecond: 10, clock },
  });
  const crs = Array.from({ length: watchers }, (_, index) => watcher(index, `n${index % namespaces}`));
  const all = Array.from({ length: jobs }, (_, index) => job(index, `n${index % namespaces}`));
  const reader = {
    mappedTo: ({ kind }) => (kind === 'Job' ? all : crs),
    ...{ deletions: () => [], clockSkewMilliseconds: 0 },
  };
  const first = turn(controller, reader, crs);
  const told = turn(controller, reader, crs);
  const same = turn(controller, reader, crs);
  crs[0] = { ...crs[0], metadata: { ...crs[0].metadata, generation: 2 } };
  const edited = turn(controller, reader, crs);
  const refused = crs.filter(({ status }) => status.conditions[0].reason === 'PatternsTooLarge').length;
  return { watchers, jobs, namespaces, first, told, same, edited, refused };
}

// The code is cold at first.
measure(50, 100, 1);
for (const count of [100, 200, 400, 1000, 2000, 5000]) {
  console.log(JSON.stringify(measure(count, 500, 1)));
  console.log(JSON.stringify(measure(count, count, count / 100)));
}
