// Jobs that have finished without ever having run, and JobWatchers over them.
import { jobWatcher } from '../../lib/kinds/job-watcher/kind.js';
import { headOf, pathOf } from './cluster.mjs';

export const job = { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs', namespaced: true };

/** Where the watchers are: the operator's own namespace, from which others may be watched. */
const WATCHERS_NAMESPACE = 'default';

/** A Job of a CronJob, with as many labels as such Jobs have. */
export function jobOf(namespace, name, cronJob) {
  const labels = {
    'app.kubernetes.io/name': cronJob,
    'app.kubernetes.io/part-of': 'reports',
    'app.kubernetes.io/managed-by': 'example',
    'example.com/team': 'data',
    'example.com/run': name,
  };
  const container = { name: 'report', image: 'registry.example.com/report:1', args: ['--all'] };
  const owner = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    name: cronJob,
    uid: uidOf(cronJob),
    controller: true,
  };
  return {
    ...headOf(job),
    metadata: { namespace, name, labels, ownerReferences: [owner] },
    spec: { template: { metadata: { labels }, spec: { containers: [container], restartPolicy: 'Never' } } },
  };
}

/** There are no such CronJobs, and nobody who would look for them. */
function uidOf(cronJob) {
  const digits = Buffer.from(cronJob).toString('hex').slice(-12).padStart(12, '0');
  return `00000000-0000-4000-8000-${digits}`;
}

/** Writes that a Job has finished at a time, in milliseconds since the epoch; what Kubernetes' own controller says. */
export async function finish(cluster, { namespace, name }, at, outcome = 'completed') {
  const time = wholeSeconds(at);
  const [early, final] =
    outcome === 'completed' ? ['SuccessCriteriaMet', 'Complete'] : ['FailureTarget', 'Failed'];
  const conditions = [early, final].map((type) => ({
    ...{ type, status: 'True', lastProbeTime: time, lastTransitionTime: time },
    reason: outcome === 'completed' ? 'CompletionsReached' : 'BackoffLimitExceeded',
  }));
  const counts = outcome === 'completed' ? { succeeded: 1, completionTime: time } : { failed: 1 };
  await cluster.send('PATCH', `${pathOf(job, namespace, name)}/status`, {
    body: { status: { ...counts, startTime: time, conditions } },
    contentType: 'application/merge-patch+json',
  });
}

/** The times of Kubernetes have no more. */
export function wholeSeconds(milliseconds) {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');
}

export async function makeWatcher(cluster, name, spec) {
  const metadata = { namespace: WATCHERS_NAMESPACE, name };
  await cluster.create(jobWatcher.type, { ...headOf(jobWatcher.type), metadata, spec });
}

/** The JobWatchers, once each has been told of its generation. */
export async function watchersTold(cluster) {
  const { items } = await cluster.list(jobWatcher.type, WATCHERS_NAMESPACE);
  return items.every(({ metadata, status }) => status.observedGeneration === metadata.generation) && items;
}
