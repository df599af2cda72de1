import { expect } from 'vitest';
import type { AuditEntry } from '../../../sandbox/audit.js';
import type { Condition } from '../../../src/contract/conditions.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import type { JobWatcherSpec, JobWatcherStatus } from '../../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { collection } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';
import { secondsAgo } from './kubelet.js';

export const jobs = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });
export const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });

export interface JobProps {
  readonly metadata?: object;
  /** Beside the template. @default - suspended, so that nothing runs and a test writes the status */
  readonly spec?: object;
  /** Of its only container. @default example.com/job:1 */
  readonly image?: string;
}

export interface FinishProps {
  /** @default Complete */
  readonly as?: 'Complete' | 'Failed';
  /** When, in seconds before now; negative in the future. @default an hour */
  readonly ago?: number;
}

export const HOUR = 3600;

/** The Jobs and JobWatchers of one namespace, as somebody handles and judges them. */
export class Jobs {
  constructor(
    readonly cluster: Cluster,
    readonly namespace: string,
  ) {}

  place(name: string): Place {
    return { type: jobs, namespace: this.namespace, name };
  }

  async create(name: string, { metadata = {}, spec, image }: JobProps = {}): Promise<AnyObject> {
    const containers = [{ name: 'job', image: image ?? 'example.com/job:1' }];
    return this.cluster.create(jobs, {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: this.namespace, ...metadata } },
      spec: {
        ...{ template: { spec: { containers, restartPolicy: 'Never' } }, backoffLimit: 0 },
        ...(spec ?? { suspend: true }),
      },
    });
  }

  /** One that has finished, without having run. */
  async finished(name: string, props: JobProps & FinishProps = {}): Promise<AnyObject> {
    await this.create(name, { ...props, spec: { suspend: true, ...props.spec } });
    return this.setStatus(name, finishedStatus(props));
  }

  /** As whoever runs the Job would write it. */
  async setStatus(name: string, status: object): Promise<AnyObject> {
    const path = `${collection(jobs, this.namespace)}/${name}/status`;
    const options = { body: { status }, contentType: 'application/merge-patch+json' };
    const answer = await this.cluster.send('PATCH', path, options);
    expect(answer.status, String(answer.body.message)).toBe(200);
    return answer.body;
  }

  async edit(name: string, patch: object): Promise<void> {
    await this.cluster.merge(this.place(name), patch);
  }

  async delete(name: string): Promise<void> {
    await this.cluster.delete(this.place(name));
  }

  /** Of all Jobs that begin so and aren't being deleted, in order. */
  async names(prefix: string): Promise<string[]> {
    const live = await this.cluster.list(jobs, this.namespace);
    const left = live.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return left
      .map(({ metadata }) => metadata.name)
      .filter((name) => name.startsWith(prefix))
      .sort();
  }

  /** Waits until these are left. */
  async left(prefix: string, names: readonly string[]): Promise<void> {
    await eventually(async () => {
      expect(await this.names(prefix)).toEqual([...names].sort());
    });
  }

  /** Unless the spec says otherwise, for Jobs whose names begin with its own and a dash, and at most a write a second. */
  async watch(name: string, spec: JobWatcherSpec): Promise<void> {
    const { apiVersion, kind } = jobWatcher.type;
    await this.cluster.create(jobWatcher.type, {
      ...{ apiVersion, kind, metadata: { name, namespace: this.namespace } },
      spec: { jobNamePatterns: [`^${name}-`], frequency: '1s', ...spec },
    });
  }

  watcherPlace(name: string): Place {
    return { type: jobWatcher.type, namespace: this.namespace, name };
  }

  /** Changes the spec. */
  async adjust(name: string, spec: object): Promise<void> {
    await this.cluster.merge(this.watcherPlace(name), { spec });
  }

  async watcher(name: string): Promise<LiveWatcher & AnyObject> {
    return this.cluster.get<LiveWatcher & AnyObject>(this.watcherPlace(name));
  }

  /** Waits until the status of the present generation is like this. */
  async told(name: string, wanted: object): Promise<JobWatcherStatus> {
    return eventually(async () => {
      const { metadata, status } = await this.watcher(name);
      expect(status).toMatchObject({ ...wanted, observedGeneration: metadata.generation });
      return status!;
    });
  }

  /** Waits until a condition of the present generation is like this. */
  async condition(name: string, wanted: Partial<Condition>): Promise<Condition> {
    return eventually(async () => {
      const { metadata, status } = await this.watcher(name);
      const found = status?.conditions?.find(({ type }) => type === wanted.type);
      expect(found, name).toMatchObject({ ...wanted, observedGeneration: metadata.generation });
      return found!;
    });
  }
}

/** As Kubernetes writes the end of a Job. */
export function finishedStatus({ as = 'Complete', ago = HOUR }: FinishProps = {}): object {
  const at = secondsAgo(ago);
  const startTime = secondsAgo(Math.max(ago, 0) + 1);
  return as === 'Complete'
    ? {
        startTime,
        completionTime: at,
        succeeded: 1,
        conditions: [on('SuccessCriteriaMet', at), on('Complete', at)],
      }
    : { startTime, failed: 1, conditions: [on('FailureTarget', at), on('Failed', at)] };
}

/** A condition of a Job that is True. */
export function on(type: string, lastTransitionTime?: string): object {
  return { type, status: 'True', ...(lastTransitionTime !== undefined && { lastTransitionTime }) };
}

/** The requests to delete Jobs whose names begin so, oldest first. */
export function deletionsOf(entries: readonly AuditEntry[], prefix: string): AuditEntry[] {
  return entries
    .filter(({ verb, objectRef }) => verb === 'delete' && objectRef?.resource === 'jobs')
    .filter(({ objectRef }) => objectRef?.name?.startsWith(prefix));
}
