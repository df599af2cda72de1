import { expect } from 'vitest';
import type { SandboxClient } from '../../../sandbox/client.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { collection } from '../../full/support/cluster.js';
import type { Place } from '../../full/support/cluster.js';
import type { ControllerProps, RunningController } from '../../full/support/controller.js';
import { requestsFromNowOn } from '../../full/support/requests.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { jobWatcher as kind } from '../../../src/kinds/job-watcher/kind.js';
import { sceneryFor, Stage } from './stage.js';

const jobs = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });

export const KEEP = { 'batch.my.github.com/keep': 'true' };

export interface JobProps {
  /** @default - none */
  readonly annotations?: Readonly<Record<string, string>>;
  /** How long ago it finished; it completed. @default - it hasn't finished */
  readonly finishedSecondsAgo?: number;
  /** @default false */
  readonly suspend?: boolean;
}

/**
 * JobWatchers and Jobs in a namespace, of a control plane that runs no Jobs: they are as the test says, since nobody
 * else writes their status.
 */
export class JobStage extends Stage {
  /** Nothing is there yet, and no controller runs. */
  static async prepare(purpose: string, sandbox: SandboxClient): Promise<JobStage> {
    return new JobStage(await sceneryFor({ purpose, sandbox, installed: [kind] }));
  }

  /** With a controller that works. */
  static async start(purpose: string, sandbox: SandboxClient): Promise<JobStage> {
    const stage = await JobStage.prepare(purpose, sandbox);
    await stage.startController();
    return stage;
  }

  async startController({
    awaitStart = true,
    args = [],
  }: Pick<ControllerProps, 'awaitStart' | 'args'> = {}): Promise<RunningController> {
    return this.run({
      kinds: [kind],
      ...{ namespaces: [this.namespace], awaitStart, args },
    });
  }

  /** The Job as it is in the cluster then. */
  async makeJob(
    name: string,
    { annotations = {}, finishedSecondsAgo, suspend = false }: JobProps = {},
  ): Promise<AnyObject> {
    const container = { name: 'pi', image: 'perl:5.34.0' };
    const made = await this.cluster.create(jobs, {
      ...{ apiVersion: 'batch/v1', kind: 'Job' },
      metadata: { name, namespace: this.namespace, annotations },
      spec: { suspend, template: { spec: { containers: [container], restartPolicy: 'Never' } } },
    });
    return finishedSecondsAgo === undefined ? made : this.finish(name, finishedSecondsAgo);
  }

  /** It has completed; returns it as it is then. */
  async finish(name: string, secondsAgo = 0): Promise<AnyObject> {
    const at = new Date(Date.now() - secondsAgo * 1000).toISOString().replace(/\.\d+/, '');
    const condition = { status: 'True', lastProbeTime: at, lastTransitionTime: at };
    const { status, body } = await this.cluster.send('PATCH', `${this.path(name)}/status`, {
      contentType: 'application/merge-patch+json',
      body: {
        status: {
          ...{ startTime: at, completionTime: at, succeeded: 1 },
          conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, ...condition })),
        },
      },
    });
    expect(status, String(body.message)).toBe(200);
    return body;
  }

  async annotate(name: string, annotations: Readonly<Record<string, string>>): Promise<void> {
    await this.cluster.merge(this.job(name), { metadata: { annotations } });
  }

  async deleteJob(name: string): Promise<void> {
    await this.cluster.delete(this.job(name));
  }

  async jobNames(): Promise<string[]> {
    return (await this.cluster.list(jobs, this.namespace)).map(({ metadata }) => metadata.name).sort();
  }

  async uidOf(name: string): Promise<string | undefined> {
    return (await this.cluster.find(this.job(name)))?.metadata.uid;
  }

  job(name: string): Place {
    return { type: jobs, namespace: this.namespace, name };
  }

  async makeWatcher(name: string, spec: JobWatcherSpec): Promise<void> {
    const { apiVersion, kind: of } = kind.type;
    const metadata = { name, namespace: this.namespace };
    await this.cluster.create(kind.type, { apiVersion, kind: of, metadata, spec });
  }

  /** Changes the spec. */
  async adjustWatcher(name: string, spec: JobWatcherSpec): Promise<void> {
    await this.cluster.merge({ type: kind.type, namespace: this.namespace, name }, { spec });
  }

  async statusOf(watcher: string): Promise<NonNullable<LiveWatcher['status']>> {
    const place = { type: kind.type, namespace: this.namespace, name: watcher };
    return (await this.cluster.get<LiveWatcher & AnyObject>(place)).status ?? {};
  }

  /** The deletions of Jobs from now on, as the API server has them, sorted: `pi 200`. */
  async deletionsFromNowOn(): Promise<() => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, this.user);
    return async () =>
      (await requests())
        .filter(({ verb, objectRef }) => verb === 'delete' && objectRef?.resource === 'jobs')
        .map(({ objectRef, code }) => `${objectRef?.name ?? ''} ${code ?? ''}`)
        .sort();
  }

  /** What the controller has logged of its deletions, sorted: `pi deleted`. */
  audited(): string[] {
    return this.controller.log
      .filter(({ outcome, watcher }) => outcome !== undefined && watcher !== undefined)
      .map(({ name, outcome }) => `${name ?? ''} ${String(outcome)}`)
      .sort();
  }

  private path(name: string): string {
    return `${collection(jobs, this.namespace)}/${name}`;
  }
}
