import type { AnyObject } from '../../../src/contract/object.js';
import { keepJob, type KeptJob } from '../../../src/kinds/job-watcher/job.js';
import type { Settings } from '../../../src/kinds/job-watcher/settings.js';
import type { JobWatcherSpec, JobWatcherStatus, LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { readWatcher, type Watcher } from '../../../src/kinds/job-watcher/watcher.js';

/** When time begins here, in milliseconds since the epoch. */
export const START = Date.UTC(2026, 0, 1);

/** A time of the API server, so many seconds after the start. */
export function at(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString().replace('.000Z', 'Z');
}

export interface JobProps {
  readonly name?: string;
  readonly namespace?: string;
  /** @default - the name */
  readonly uid?: string;
  /** How it ended. @default - it runs */
  readonly ended?: 'Complete' | 'Failed';
  /** When it ended, in seconds after the start. @default 0 */
  readonly endedAt?: number;
  /** In place of what follows from how it ended. */
  readonly status?: object;
  readonly spec?: object;
  readonly metadata?: object;
}

/** A Job as the API server sends it. */
export function liveJob({
  name = 'pi',
  namespace = 'default',
  uid = name,
  ended,
  endedAt = 0,
  status = ended
    ? { conditions: [{ type: ended, status: 'True', lastTransitionTime: at(endedAt) }] }
    : { active: 1 },
  spec = { template: {} },
  metadata = {},
}: JobProps = {}): AnyObject {
  return {
    ...{ apiVersion: 'batch/v1', kind: 'Job' },
    metadata: { name, namespace, uid, resourceVersion: '1', ...metadata },
    ...{ spec, status },
  };
}

export function job(props: JobProps = {}): KeptJob {
  return keepJob(liveJob(props)) as KeptJob;
}

export function completed(props: JobProps = {}): KeptJob {
  return job({ ended: 'Complete', ...props });
}

export const settings: Settings = {
  adminNamespaces: ['ops'],
  protectedNamespaces: ['kube-*'],
  deletesPerSecond: 10,
};

export interface WatcherProps {
  readonly name?: string;
  readonly namespace?: string;
  readonly generation?: number;
  readonly status?: JobWatcherStatus;
}

export function liveWatcher(
  spec: JobWatcherSpec,
  { name = 'sweeper', namespace = 'default', generation = 1, status }: WatcherProps = {},
): LiveWatcher {
  return {
    ...{ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' },
    metadata: { name, namespace, uid: `${namespace}/${name}`, generation },
    spec,
    ...(status && { status }),
  };
}

export function watcher(spec: JobWatcherSpec, props: WatcherProps = {}): Watcher {
  return readWatcher(liveWatcher(spec, props), settings);
}
