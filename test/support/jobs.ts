import { expect } from 'vitest';
import type { Condition } from '../../src/contract/conditions.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import type { JobWatcherSpec, JobWatcherStatus, LiveWatcher } from '../../src/kinds/job-watcher/spec.js';
import { eventually, jobs, putStatus } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { requestsFromNowOn } from './requests.js';
import { namesOf } from './subject.js';

export interface JobProps {
  readonly annotations?: Readonly<Record<string, string>>;
  /** Beside the template. @default - suspended, so that nothing runs and a test writes the status */
  readonly spec?: object;
  /** Of its only container. @default example.com/job:1 */
  readonly image?: string;
}

export interface FinishProps {
  /** @default Complete */
  readonly as?: 'Complete' | 'Failed';
  /** Seconds before now; negative in the future. @default an hour */
  readonly ago?: number;
}

export const HOUR = 3600;

/** Annotation by which a Job stays. */
export const KEEP = { 'batch.my.github.com/keep': 'true' };

/** The Jobs and JobWatchers of one namespace, as their user sees them. */
export class Jobs {
  constructor(
    readonly cluster: Cluster,
    readonly namespace: string,
  ) {}

  place(name: string): Place {
    return { type: jobs, namespace: this.namespace, name };
  }

  async create(name: string, { annotations = {}, spec, image }: JobProps = {}): Promise<AnyObject> {
    const containers = [{ name: 'job', image: image ?? 'example.com/job:1' }];
    return this.cluster.create(jobs, {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: this.namespace, annotations } },
      spec: {
        ...{ template: { spec: { containers, restartPolicy: 'Never' } }, backoffLimit: 0 },
        ...(spec ?? { suspend: true }),
      },
    });
  }

  /** Makes one that has finished, without having run. */
  async finished(name: string, props: JobProps & FinishProps = {}): Promise<AnyObject> {
    const made = await this.create(name, { ...props, spec: { suspend: true, ...props.spec } });
    await this.finish(name, props);
    return made;
  }

  async finish(name: string, props?: FinishProps): Promise<void> {
    await putStatus(this.cluster, this.place(name), finishedStatus(props));
  }

  async annotate(name: string, annotations: Readonly<Record<string, string>>): Promise<void> {
    await this.cluster.merge(this.place(name), { metadata: { annotations } });
  }

  async delete(name: string): Promise<void> {
    await this.cluster.delete(this.place(name));
  }

  async uidOf(name: string): Promise<string | undefined> {
    return (await this.cluster.find(this.place(name)))?.metadata.uid;
  }

  /** Returns the names of all Jobs that begin so and aren't being deleted, in order. */
  async names(prefix = ''): Promise<string[]> {
    const live = await this.cluster.list(jobs, this.namespace);
    const left = live.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return namesOf(left).filter((name) => name.startsWith(prefix));
  }

  /** Waits until these are left. */
  async left(prefix: string, ...names: readonly string[]): Promise<void> {
    await eventually(async () => {
      expect(await this.names(prefix)).toEqual([...names].sort());
    });
  }

  /** Makes a JobWatcher, for Jobs whose names begin with its own and a dash, and a write a second, unless the spec differs. */
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

  /** Changes the spec of a JobWatcher. */
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

  /** Records the deletions of Jobs by an operator from now on, as the API server has them, in their order: `pi 200`. */
  async deletionsFromNowOn(user: string): Promise<(prefix?: string) => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, user);
    return async (prefix = '') =>
      (await requests())
        .filter(({ verb, objectRef }) => verb === 'delete' && objectRef?.resource === 'jobs')
        .map(({ objectRef, code }) => `${objectRef?.name ?? ''} ${code ?? ''}`)
        .filter((line) => line.startsWith(prefix));
  }
}

/** Status of a Job that has ended, as Kubernetes writes it. */
export function finishedStatus({ as = 'Complete', ago = HOUR }: FinishProps = {}): object {
  const at = secondsAgo(ago);
  const startTime = secondsAgo(Math.max(ago, 0) + 1);
  const on = (type: string): object => ({ type, status: 'True', lastTransitionTime: at });
  return as === 'Complete'
    ? { startTime, completionTime: at, succeeded: 1, conditions: [on('SuccessCriteriaMet'), on('Complete')] }
    : { startTime, failed: 1, conditions: [on('FailureTarget'), on('Failed')] };
}

/** Time as Kubernetes writes it: whole seconds. */
const secondsAgo = (seconds: number): string =>
  new Date(Date.now() - seconds * 1_000).toISOString().replace(/\.\d+Z$/, 'Z');
