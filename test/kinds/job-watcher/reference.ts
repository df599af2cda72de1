import type { AnyObject, OwnerReference } from '../../../src/contract/object.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { START } from './fixtures.js';

/**
 * The rules once more, plain and slow, straight from the objects as the API server has them; for the models in
 * `model.test.ts` and `limits-model.test.ts`, whose durations are whole seconds and whose patterns mean the same to
 * JavaScript.
 */
export interface Cluster {
  readonly jobs: readonly AnyObject[];
  readonly watchers: readonly LiveWatcher[];
  /** Seconds after the start. */
  readonly now: number;
  /** How many of its name, with another UID, were deleted before. */
  deletedNamesakes(job: AnyObject): number;
}

/** The key of the watcher that lets each Job go now, by the UID of the Job. */
export function due(cluster: Cluster): Map<string, string> {
  const found = new Map<string, string>();
  for (const job of cluster.jobs) {
    const decider = deciderOf(job, cluster);
    if (decider && cluster.deletedNamesakes(job) < 2) found.set(job.metadata.uid!, keyOf(decider));
  }
  return found;
}

/** Reports whether it stays as it is, whatever watches it. */
function isUntouchable(job: AnyObject): boolean {
  const { deletionTimestamp, annotations = {}, namespace = '' } = job.metadata;
  const owner = controllerOf(job);
  return (
    finishOf(job) === undefined ||
    deletionTimestamp !== undefined ||
    namespace.startsWith('kube-') ||
    annotations['batch.my.github.com/keep'] === 'true' ||
    annotations['batch.my.github.com/ttl-after-completed'] === 'nonsense' ||
    (owner !== undefined && owner.kind !== 'CronJob')
  );
}

export function matchedBy(watcher: LiveWatcher, jobs: readonly AnyObject[]): AnyObject[] {
  const { namespacePatterns, jobNamePatterns, selector } = watcher.spec;
  const own = watcher.metadata.namespace!;
  const some = (patterns: readonly string[], text: string): boolean =>
    patterns.some((pattern) => new RegExp(pattern).test(text));
  if (namespacePatterns && own !== 'ops' && !some(namespacePatterns, own)) return [];
  return jobs.filter(({ metadata: { namespace = '', name, labels = {} } }) => {
    const inScope =
      namespacePatterns && own === 'ops' ? some(namespacePatterns, namespace) : namespace === own;
    const wanted = Object.entries(selector?.matchLabels ?? {});
    return (
      inScope &&
      (!jobNamePatterns || some(jobNamePatterns, name)) &&
      wanted.every(([key, value]) => labels[key] === value)
    );
  });
}

function deciderOf(job: AnyObject, { jobs, watchers, now }: Cluster): LiveWatcher | undefined {
  if (isUntouchable(job)) return undefined;
  const active = watchers.filter((one) => !one.spec.dryRun && matchedBy(one, [job]).length > 0);
  const top = Math.max(...active.map((one) => one.spec.priority ?? 0));
  const deciding = active.filter((one) => (one.spec.priority ?? 0) === top);
  if (deciding.length === 0 || deciding.some((one) => keeps(one, job))) return undefined;
  if (active.some((one) => newestOf(one, matchedBy(one, jobs)).includes(job))) return undefined;
  const longest = [...deciding].sort(
    (a, b) => ttl(b, job)! - ttl(a, job)! || (keyOf(a) < keyOf(b) ? -1 : 1),
  )[0]!;
  return finishOf(job)!.at + ttl(longest, job)! <= now ? longest : undefined;
}

function keeps({ spec, ...watcher }: LiveWatcher, job: AnyObject): boolean {
  const tracked = job.metadata.labels?.['helm.toolkit.fluxcd.io/name'] !== undefined;
  const cron = controllerOf(job) !== undefined;
  const jobSpec = job.spec as { ttlSecondsAfterFinished?: number };
  return (
    spec.suspend === true ||
    (tracked && spec.tracked !== 'Delete') ||
    (cron && spec.ownerPolicy?.cronJob === 'Skip') ||
    (jobSpec.ttlSecondsAfterFinished !== undefined &&
      spec.ownerPolicy?.ttlSecondsAfterFinished !== 'Delete') ||
    ttl({ ...watcher, spec }, job) === undefined
  );
}

/** In seconds. */
function ttl({ spec }: LiveWatcher, job: AnyObject): number | undefined {
  const { failed } = finishOf(job)!;
  const text = failed ? spec.failedTTL : spec.completedTTL;
  const own = text === undefined ? Infinity : parseInt(text);
  const annotation =
    job.metadata.annotations?.[`batch.my.github.com/ttl-after-${failed ? 'failed' : 'completed'}`];
  const wanted = annotation === undefined ? own : parseInt(annotation);
  const result = spec.allowShorterOverrides ? wanted : Math.max(own, wanted);
  return result === Infinity ? undefined : result;
}

function newestOf({ spec: { keepLast } }: LiveWatcher, matched: readonly AnyObject[]): AnyObject[] {
  if (!keepLast) return [];
  const finished = matched.filter((job) => finishOf(job) && job.metadata.deletionTimestamp === undefined);
  const group = (job: AnyObject): string =>
    [finishOf(job)!.failed, controllerOf(job)?.uid ?? `in ${job.metadata.namespace}`].join();
  return finished.filter((job) => {
    const newer = finished.filter((other) => {
      const [mine, its] = [finishOf(job)!.at, finishOf(other)!.at];
      return (
        group(other) === group(job) &&
        (its > mine || (its === mine && other.metadata.name < job.metadata.name))
      );
    });
    return newer.length < ((finishOf(job)!.failed ? keepLast.failed : keepLast.completed) ?? 0);
  });
}

/** Seconds after the start. */
function finishOf({ status }: AnyObject): { failed: boolean; at: number } | undefined {
  const { conditions = [] } = status as { conditions?: { type: string; lastTransitionTime: string }[] };
  const [one] = conditions;
  return one && { failed: one.type === 'Failed', at: (Date.parse(one.lastTransitionTime) - START) / 1000 };
}

function controllerOf({ metadata }: AnyObject): OwnerReference | undefined {
  return metadata.ownerReferences?.[0];
}

export function keyOf({ metadata }: LiveWatcher): string {
  return `${metadata.namespace}/${metadata.name}`;
}
