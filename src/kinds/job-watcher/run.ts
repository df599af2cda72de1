import { rfc3339Seconds } from '../../contract/conditions.js';
import type { DeleteStep } from '../../contract/delete-step.js';
import { objectKey } from '../../contract/object.js';
import type { DueJob } from './pass.js';

/** The deletion of a Job as it was judged, with what is told of it before and after. */
export function deleteStep({ job, watcher, finish, dueAt }: DueJob): DeleteStep {
  const finishedAt = isoSeconds(finish.at);
  const ttlSeconds = (dueAt - finish.at) / 1000;
  return {
    object: job,
    propagation: watcher.propagation,
    foreign: true,
    announce: {
      type: 'Normal',
      reason: 'TTLExpired',
      action: 'Delete',
      note: `${nameFor(job, watcher)} deletes it: it ${finish.outcome} at ${finishedAt}, and its TTL is ${ttlSeconds} s`,
    },
    audit: { watcher: watcher.key, finish: finish.outcome, finishedAt, ttlSeconds, dueAt: isoSeconds(dueAt) },
  };
}

/** Users of a Job's namespace needn't be allowed to know names in others; the log has them. */
function nameFor({ metadata }: DueJob['job'], { key, namespace }: DueJob['watcher']): string {
  return namespace === metadata.namespace ? `JobWatcher ${key}` : 'A JobWatcher of another namespace';
}

export function jobKey({ job: { metadata } }: Pick<DueJob, 'job'>): string {
  return objectKey(metadata.namespace, metadata.name);
}

/** Later ones have no form that the API server takes, and a Job may say that it finished at any time. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** RFC 3339 in UTC, whole seconds. */
export function isoSeconds(milliseconds: number): string {
  return rfc3339Seconds(new Date(Math.min(milliseconds, LAST_TIME)));
}
