import { deployments, services } from '../../support/cluster.js';
import type { FaultProxy } from '../../support/fault-proxy.js';
import { watches } from '../../support/faults.js';
import type { Subject } from '../../support/subject.js';
import type { Random } from '../../../src/testing/walk.js';
import { WatchLine } from '../../../src/testing/watch-line.js';

/** What happens at random, each as often as it is there. */
const ACTIONS = (
  [
    [400, 'edit'],
    [100, 'create'],
    [100, 'delete'],
    [50, 'rebirth'],
    [150, 'drift'],
    [100, 'deleteChild'],
    [10, 'cutWatch'],
    [5, 'cutConnections'],
    [3, 'expire'],
  ] as const
).flatMap(([times, action]) => Array.from({ length: times }, () => action));

/** Does at random what happens in a cluster, by a seed. */
export class Churn {
  /** How often each was done. */
  readonly done: Record<string, number> = {};
  /** What didn't work, by the API server's answer: an object may be gone, or the server away. */
  readonly failed: Record<string, number> = {};
  readonly names = new Set<string>();
  private made = 0;

  constructor(
    private readonly subject: Subject,
    private readonly proxy: FaultProxy,
    private readonly random: Random,
  ) {}

  async create(): Promise<void> {
    const name = `web-${this.made++}`;
    // Pods are few, for they cost the sandbox more than the controller.
    const size = this.made % 200 === 0 ? 1 : 0;
    await this.subject.create(name, this.spec(size));
    this.names.add(name);
  }

  /** One thing, whatever comes of it. */
  async act(): Promise<void> {
    const action = this.random.one(ACTIONS);
    try {
      await this[action]();
      this.done[action] = (this.done[action] ?? 0) + 1;
    } catch (error) {
      const reason = `${action}: ${/answered \d+/.exec(String(error))?.[0] ?? 'no answer'}`;
      this.failed[reason] = (this.failed[reason] ?? 0) + 1;
    }
  }

  private async edit(): Promise<void> {
    await this.subject.edit(this.any(), this.spec(0));
  }

  private async delete(): Promise<void> {
    const name = this.any();
    this.names.delete(name);
    const propagationPolicy = this.random.below(5) === 0 ? 'Foreground' : 'Background';
    await this.subject.delete(name, { propagationPolicy });
  }

  private async rebirth(): Promise<void> {
    const name = this.any();
    await this.subject.delete(name);
    await this.subject.create(name, this.spec(0));
  }

  private async drift(): Promise<void> {
    const patches = [
      [deployments, { spec: { replicas: 2 } }],
      [deployments, { spec: { template: { metadata: { labels: { app: 'other' } } } } }],
      [deployments, { metadata: { annotations: { 'reconstruct.kosmos.io/applied-hash': 'other' } } }],
      [services, { spec: { type: 'ClusterIP' } }],
      [services, { metadata: { labels: { app: 'other', team: 'shop' } } }],
    ] as const;
    const [type, patch] = patches[this.random.below(patches.length)]!;
    await this.subject.cluster.merge(this.subject.childPlace(type, this.any()), patch);
  }

  private async deleteChild(): Promise<void> {
    const type = this.random.below(2) === 0 ? deployments : services;
    await this.subject.cluster.delete(this.subject.childPlace(type, this.any()));
  }

  private cutWatch(): Promise<void> {
    this.proxy.cut(watches(this.resource()));
    return Promise.resolve();
  }

  private cutConnections(): Promise<void> {
    this.proxy.cutConnections();
    return Promise.resolve();
  }

  private expire(): Promise<void> {
    this.proxy.inject(watches(this.resource()), WatchLine.error(410, 'Expired'));
    return Promise.resolve();
  }

  private resource(): string {
    return ['appservices', 'deployments', 'services'][this.random.below(3)]!;
  }

  private any(): string {
    const names = [...this.names];
    return names[this.random.below(names.length)]!;
  }

  private spec(size: number): object {
    const { random } = this;
    return {
      size,
      image: `example.com/web:${random.below(1_000)}`,
      ...(random.below(4) > 0 && { ports: [{ port: 80 + random.below(20) }] }),
      // The API server writes these another way.
      ...(random.below(3) === 0 && { resources: { limits: { cpu: '1000m', memory: '1024Mi' } } }),
      ...(random.below(3) === 0 && { envs: [{ name: 'LEVEL', value: String(random.below(9)) }] }),
    };
  }
}
