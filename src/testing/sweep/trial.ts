import { messageOf } from '../../contract/error.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind, resourceType } from '../../contract/resource.js';
import { eventually } from '../eventually.js';
import { Operator } from '../operator.js';
import type { Wire } from '../wire.js';
import { digestsOfLive, normal } from './normal.js';
import type { Normal } from './normal.js';
import type { Pace, LiveResource, Sample, Stand } from './stand.js';
import { readinessOf, make, typeOf } from './stand.js';
import { Scene } from './scene.js';

const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });

let trials = 0;

/** One that no construct has seen before, as long as any other. */
function nextName(): string {
  return `swept-${String(++trials).padStart(5, '0')}`;
}

const QUIET_MILLISECONDS = 400;
const SEEN_MILLISECONDS = 30_000;

/** One custom resource in namespaces of its own, what is done to it, and how that was told. */
export class Trial implements AsyncDisposable {
  /** What was done so far, for whoever wants to do it again. */
  readonly steps: string[] = [];
  readonly name = nextName();
  private running: Operator | undefined;

  /** What of the surroundings is compared as a whole, before the operator has done anything. */
  untouched: Normal = {};

  private constructor(
    readonly stand: Stand,
    readonly scene: Scene,
  ) {}

  static async begin(stand: Stand): Promise<Trial> {
    const trial = new Trial(stand, await Scene.set(stand));
    try {
      trial.untouched = await trial.content();
      return trial;
    } catch (error) {
      await trial.scene.strike();
      throw error;
    }
  }

  get namespace(): string {
    return this.scene.namespace;
  }

  get pace(): Pace {
    return this.stand.pace;
  }

  get operator(): Operator {
    if (!this.running) throw new Error('No operator runs');
    return this.running;
  }

  /** Starts an operator, in place of the one before, which is killed. */
  async start(prepare?: (wire: Wire) => void): Promise<Operator> {
    this.running?.kill();
    const { kind, kubeconfig } = this.stand;
    const started = performance.now();
    this.running = await Operator.start({
      ...{ kubeconfig, kinds: [kind], namespaces: [this.namespace], given: this.scene.given },
      ...(prepare && { prepare }),
    });
    this.pace.started(performance.now() - started);
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
    const metadata = {
      ...{ name, namespace: this.namespace },
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    };
    await refusable(cluster.create(kind.type, { apiVersion, kind: kindName, spec, metadata }));
  }

  async edit({ spec }: Sample): Promise<void> {
    this.steps.push(`replace its spec by ${JSON.stringify(spec)}`);
    await refusable(this.stand.cluster.replaceSpec(this.place(), spec));
  }

  async delete(): Promise<void> {
    this.steps.push(`delete it`);
    await this.stand.cluster.delete(this.place());
  }

  /** Deletes one of its objects. */
  async removeOne(): Promise<void> {
    const object = (await this.objects()).find((one) => this.scene.isMadeAnew(one));
    if (object) await this.remove(object);
  }

  /** Deletes an object; what somebody else had made, he makes anew. */
  async remove(object: AnyObject): Promise<void> {
    const { namespace, name } = object.metadata;
    const original = this.scene.original(object);
    const again = original ? ', and whoever had made it makes it anew' : '';
    this.steps.push(`delete ${object.kind} ${name}${again}`);
    const { cluster, types } = this.stand;
    const type = types.find((one) => groupKind(one) === groupKind(object)) ?? typeOf(object);
    await cluster.delete({ type, ...(namespace && { namespace }), name });
    if (original) await make(cluster, original);
  }

  /** What the kind deletes is made anew, for the present spec to decide on. */
  async renew(): Promise<void> {
    if (this.stand.removes.length === 0) return;
    this.steps.push('everything that it deletes is made anew');
    await this.scene.renew();
  }

  get(name = this.name): Promise<LiveResource> {
    return this.stand.cluster.get<LiveResource>(this.place(name));
  }

  objects(): Promise<AnyObject[]> {
    return this.scene.applied();
  }

  /** Waits until the operator has seen the present generation and asks for nothing more, or is dead. */
  async settled(name = this.name): Promise<LiveResource> {
    await eventually(
      async () => {
        if (!this.isAlive()) return;
        const { metadata, status } = await this.get(name);
        const { observedGeneration } = status ?? {};
        if (observedGeneration !== metadata.generation)
          throw new Error(
            `its status speaks of generation ${observedGeneration ?? 'none'}, not of ${metadata.generation ?? 0}`,
          );
      },
      { deadlineMilliseconds: SEEN_MILLISECONDS },
    );
    await this.quiet();
    return this.get(name);
  }

  /** Waits until nothing is asked for any more, nor will be of what has happened so far. */
  async quiet(leastMilliseconds = QUIET_MILLISECONDS): Promise<void> {
    await this.operator.quiet(this.stand.settleMilliseconds + leastMilliseconds);
  }

  pods(): Promise<AnyObject[]> {
    return this.stand.cluster.list(pods, this.namespace);
  }

  /** What there is of it now, comparable to that of others. */
  async state(name = this.name): Promise<Normal> {
    return { ...(await this.content(await this.get(name))), ...(await this.fate(name)) };
  }

  /** How it fares, and what it has left of what it found. */
  async fate(name = this.name): Promise<Normal> {
    return { '<found>': await this.scene.left(), '<readiness>': readinessOf(await this.get(name)) };
  }

  /** The namespaces go by and by. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.running?.kill();
    await this.scene.strike();
  }

  /** Of all objects that it has applied, or may apply to; without a custom resource, before there is one and after it. */
  async content(cr?: LiveResource): Promise<Normal> {
    const { namespace, elsewhere } = this.scene;
    const { name = this.name, uid = '<none>' } = cr?.metadata ?? {};
    const digests = cr ? digestsOfLive(this.stand.kind, cr, this.scene.given) : [];
    return normal(await this.scene.compared(), {
      ...{ name, namespace, uid, digests },
      ...(elsewhere && { elsewhere }),
    });
  }

  isAlive(): boolean {
    return this.operator.wire.diedAt === undefined;
  }

  place(name = this.name) {
    return { type: this.stand.kind.type, namespace: this.namespace, name };
  }
}

/** The API server takes no custom resource with that spec. What else it refuses is none of these. */
export class SpecRefused extends Error {}

/** @param write of the custom resource */
export async function refusable(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    const message = messageOf(error);
    throw message.includes('answered 422') ? new SpecRefused(message) : error;
  }
}

/** Undefined where the spec is refused. */
export async function unlessRefused<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SpecRefused) return undefined;
    throw error;
  }
}
