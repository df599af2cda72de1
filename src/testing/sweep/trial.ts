import { setTimeout as delay } from 'node:timers/promises';
import type { AnyObject } from '../../contract/object.js';
import { eventually } from '../eventually.js';
import { Operator } from '../operator.js';
import type { Wire } from '../wire.js';
import { differences, normal } from './normal.js';
import type { Normal } from './normal.js';
import { Patience } from './patience.js';
import { isReady } from './ready.js';
import { appliedObjects, conditionOf } from './stand.js';
import type { LiveResource, Sample, Stand } from './stand.js';

let trials = 0;

/** One that no construct has seen before, as long as any other. */
function nextName(): string {
  return `swept-${String(++trials).padStart(5, '0')}`;
}

const QUIET_MILLISECONDS = 400;
const SEEN_MILLISECONDS = 30_000;
const CONVERGENCE_MILLISECONDS = 12_000;
const PODS_MILLISECONDS = 10_000;

/** One custom resource in a namespace of its own, what is done to it, and how that was told. */
export class Trial implements AsyncDisposable {
  /** What was done so far, for whoever wants to do it again. */
  readonly steps: string[] = [];
  readonly name = nextName();
  private running: Operator | undefined;

  private constructor(
    readonly stand: Stand,
    readonly namespace: string,
  ) {}

  static async begin(stand: Stand): Promise<Trial> {
    return new Trial(stand, await stand.cluster.makeNamespace('sweep'));
  }

  get operator(): Operator {
    if (!this.running) throw new Error('No operator runs');
    return this.running;
  }

  /** Starts an operator, in place of the one before, which is killed. */
  async start(prepare?: (wire: Wire) => void): Promise<Operator> {
    await this.running?.kill();
    const { kind, kubeconfig } = this.stand;
    this.running = await Operator.start({
      ...{ kubeconfig, kinds: [kind], namespaces: [this.namespace] },
      ...(prepare && { prepare }),
    });
    return this.running;
  }

  async restart(prepare?: (wire: Wire) => void): Promise<Operator> {
    this.steps.push('the operator is killed and started again');
    return this.start(prepare);
  }

  async create({ spec, labels, annotations }: Sample, name = this.name): Promise<void> {
    const { kind, cluster } = this.stand;
    const { apiVersion, kind: kindName } = kind.type;
    this.steps.push(`create ${kindName} ${name} with ${JSON.stringify(spec)}`);
    await cluster.create(kind.type, {
      ...{ apiVersion, kind: kindName, spec },
      metadata: {
        ...{ name, namespace: this.namespace },
        ...(labels && { labels }),
        ...(annotations && { annotations }),
      },
    });
  }

  async edit({ spec }: Sample): Promise<void> {
    this.steps.push(`replace its spec by ${JSON.stringify(spec)}`);
    await this.stand.cluster.replaceSpec(this.place(), spec);
  }

  async delete(): Promise<void> {
    this.steps.push(`delete it`);
    await this.stand.cluster.delete(this.place());
  }

  /** Deletes one of its objects. */
  async removeOne(): Promise<void> {
    const [object] = await this.objects();
    if (object) await this.remove(object);
  }

  async remove(object: AnyObject): Promise<void> {
    this.steps.push(`delete ${object.kind} ${object.metadata.name}`);
    const type = this.stand.types.find(({ kind }) => kind === object.kind);
    if (type)
      await this.stand.cluster.delete({ type, namespace: this.namespace, name: object.metadata.name });
  }

  get(name = this.name): Promise<LiveResource> {
    return this.stand.cluster.get<LiveResource>(this.place(name));
  }

  objects(): Promise<AnyObject[]> {
    return appliedObjects(this.stand, this.namespace);
  }

  /** Waits until the operator has seen the present generation and asks for nothing more, or is dead. */
  async settled(name = this.name): Promise<LiveResource> {
    await eventually(
      async () => {
        if (this.operator.wire.diedAt !== undefined) return;
        const { metadata, status } = await this.get(name);
        const { observedGeneration } = status ?? {};
        if (observedGeneration !== metadata.generation)
          throw new Error(
            `its status speaks of generation ${observedGeneration ?? 'none'}, not of ${metadata.generation ?? 0}`,
          );
      },
      { deadlineMilliseconds: SEEN_MILLISECONDS },
    );
    await this.operator.quiet(QUIET_MILLISECONDS);
    return this.get(name);
  }

  /** Settled, and with its pods; some never come, and are waited for only so long. */
  async rolledOut(): Promise<void> {
    const started = performance.now();
    await this.settled();
    while (performance.now() - started < PODS_MILLISECONDS && !(await this.objects()).every(isReady))
      await delay(100);
    await this.settled();
  }

  /** What there is of it now, comparable to that of others. */
  async state(name = this.name): Promise<Normal> {
    const cr = await this.get(name);
    const { uid = '' } = cr.metadata;
    const objects = normal(await this.objects(), { name, namespace: this.namespace, uid });
    return { ...objects, '<readiness>': readinessOf(cr) };
  }

  /** Waits until it is so, and stays so once the operator is at rest. @throws with where it differs */
  async becomes(expected: Normal): Promise<void> {
    const patience = new Patience(performance.now());
    for (;;) {
      await this.settled();
      const state = await this.state();
      const lines = differences(expected, state);
      if (lines.length === 0) return;
      // Pods may take their time.
      const { '<readiness>': _, ...objects } = state;
      const waits =
        differences(expected, { ...objects, '<readiness>': expected['<readiness>'] }).length === 0;
      const isRolling = waits && !(await this.objects()).every(isReady);
      if (patience.isOver(performance.now(), isRolling)) throw new Error(lines.join('; '));
      await delay(200);
    }
  }

  /** Waits until it fares as in that state, whatever its objects are like. */
  async fares(expected: Normal): Promise<void> {
    await eventually(
      async () => {
        await this.settled();
        const [first] = differences(expected['<readiness>'], (await this.state())['<readiness>']);
        if (first !== undefined) throw new Error(first);
      },
      { deadlineMilliseconds: CONVERGENCE_MILLISECONDS, intervalMilliseconds: 200 },
    );
  }

  /** Waits until it and all that was made of it are gone. */
  async isGone(): Promise<void> {
    await eventually(
      async () => {
        if (await this.stand.cluster.find(this.place())) throw new Error('it is still there');
        const left = (await this.objects()).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
        if (left.length > 0) throw new Error(`${left.join(', ')} stays when it is deleted`);
      },
      { deadlineMilliseconds: 20_000, intervalMilliseconds: 100 },
    );
  }

  /** The namespace goes by and by. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.running?.kill();
    await this.stand.cluster.send('DELETE', `/api/v1/namespaces/${this.namespace}`);
  }

  private place(name = this.name) {
    return { type: this.stand.kind.type, namespace: this.namespace, name };
  }
}

/** How it fares, without words that name it. */
function readinessOf(cr: LiveResource): object {
  return Object.fromEntries(
    ['Ready', 'Reconciling', 'Stalled'].map((type) => {
      const { status, reason } = conditionOf(cr, type) ?? {};
      return [type, `${status ?? 'absent'} ${reason ?? ''}`];
    }),
  );
}
