import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Condition } from '../contract/conditions.js';
import type { Kind, Upgrades } from '../contract/kind.js';
import { isHashAnnotation, selectorLabels } from '../contract/names.js';
import { objectId, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { withoutCreated } from '../values/created.js';
import { recordOf, withKeptStatus } from '../values/projections.js';
import { childReadiness } from '../values/readiness.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { rulesFor } from '../install/rules.js';
import { ApiError } from '../client/api-error.js';
import { grant } from './account.js';
import { WriteAudit } from './audit.js';
import { collection } from './cluster.js';
import type { Answer, Cluster, DeleteOptions, Place } from './cluster.js';
import { differences, digestsOf, normal } from './compare.js';
import type { Normal } from './compare.js';
import { eventually } from './eventually.js';
import { Operator } from './operator.js';
import type { Failure } from './report.js';
import {
  ANY_SITE,
  contextOf,
  effectsOf,
  elsewhereOf,
  generatedOf,
  isContributed,
  isDecorator,
  isKept,
  kept,
  placed,
  rendered,
} from './tested-kind.js';
import type { LiveResource, Made, Sample, Site, Surroundings, TestedKind } from './tested-kind.js';
import type { Random, Spec } from './walk.js';

/** Everything that the checks of a run share. */
export interface ConformanceRun extends TestedKind {
  readonly before?: Kind | undefined;
  readonly notWalked: readonly string[];
  readonly keepsEarlier: (spec: Spec) => boolean;
  readonly waits: (spec: Spec) => boolean;
  readonly cluster: Cluster;
  readonly user: string;
  readonly kubeconfig: string;
  readonly random: Random;
  readonly pace: Pace;
  /** Time for which a state may differ from the expected one while nothing else is waited for, on an idle machine. */
  readonly convergenceMilliseconds: number;
  readonly expected: Map<string, Promise<Normal>>;
}

/** Returns the versions of the kind. */
export function kindsOf({ kind, before }: Pick<ConformanceRun, 'kind' | 'before'>): readonly Kind[] {
  return before ? [kind, before] : [kind];
}

const IDLE_START_MILLISECONDS = 250;
const MAX_TIMES = 5;

/**
 * Scales waits to the load of the machine, since one that runs out is reported as a fault of the kind. The measure is how
 * long operators take to start: connections, lists and watches, before the kind has anything to do.
 */
export class Pace {
  private recent: number[] = [];

  started(milliseconds: number): void {
    this.recent = [...this.recent, milliseconds].slice(-8);
  }

  /** @param milliseconds enough on an idle machine */
  scaled(milliseconds: number): number {
    const slowest = Math.max(...this.recent, IDLE_START_MILLISECONDS);
    return milliseconds * Math.min(MAX_TIMES, slowest / IDLE_START_MILLISECONDS);
  }
}

const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const QUIET_MILLISECONDS = 400;
/** Time in which an operator notices what others do, on an idle machine. */
export const NOTICED_MILLISECONDS = 300;
/** Divides the custom resources of a cluster-scoped kind, which are all in one place, among the operators of trials. */
const TRIAL_LABEL = 'reconstruct.kosmos.io/trial';
let trials = 0;

/** Version of a kind. */
export interface Version {
  readonly kind: Kind;
  /** @default - its updates are applied at once */
  readonly upgrades?: Upgrades;
}

/** Custom resource and its operator, in namespaces of their own; and the steps that were taken. */
export class Trial implements AsyncDisposable {
  readonly steps: string[] = [];
  /** Unique, and as long as any other. */
  readonly name = `trial-${String(++trials).padStart(5, '0')}`;
  untouched: Normal = {};
  /** Version that operators have from now on. */
  version: Version;
  /** Audit of what its operators write. */
  readonly audit: WriteAudit;
  private around: Surroundings;
  private readonly made: readonly Made[];
  private readonly created = new Set<string>();
  private standing: ReadonlySet<unknown> = new Set();
  private running: Operator | undefined;

  private constructor(
    readonly run: ConformanceRun,
    private site: Site,
  ) {
    this.version = { kind: run.kind };
    this.around = run.surroundings?.(site) ?? {};
    this.made = effectsOf(run.kind, contextOf(run.kind, this.around)).made;
    this.audit = new WriteAudit(this);
  }

  /** @throws where something of it can't be made; then nothing of it stays */
  static async begin(run: ConformanceRun): Promise<Trial> {
    const { cluster, user, surroundings } = run;
    const namespaces: string[] = [];
    try {
      for (const purpose of ['sweep', ...(surroundings ? ['elsewhere'] : [])])
        namespaces.push(await cluster.makeNamespace(purpose));
      const [namespace = '', elsewhere = namespace] = namespaces;
      const trial = new Trial(run, { namespace, elsewhere, round: 0 });
      if (surroundings)
        await grant(cluster, { user, rules: rulesFor(kindsOf(run), contextOf(run.kind, trial.around)) });
      for (const object of trial.around.objects ?? []) await make(cluster, object);
      trial.untouched = await trial.content();
      return trial;
    } catch (error) {
      for (const name of namespaces) await removeNamespace(cluster, name);
      throw error;
    }
  }

  get namespace(): string {
    return this.site.namespace;
  }

  /** Namespaces of its objects; an empty one stands for all, since those of a cluster-scoped kind may be anywhere. */
  get namespaces(): readonly string[] {
    return this.isClusterScoped ? [''] : this.sites;
  }

  private get sites(): readonly string[] {
    return [...new Set([this.site.namespace, this.site.elsewhere])];
  }

  private get isClusterScoped(): boolean {
    return !this.run.kind.type.namespaced;
  }

  get operator(): Operator {
    if (!this.running) throw new Error('No operator runs');
    return this.running;
  }

  get isAlive(): boolean {
    return this.operator.wire.diedAt === undefined;
  }

  /** Starts an operator in place of the one before, which is killed. */
  async start(prepare?: (wire: Operator['wire']) => void): Promise<Operator> {
    this.running?.kill();
    const { kubeconfig, pace } = this.run;
    const { kind, upgrades } = this.version;
    const { render: _, ...ofKind } = contextOf(kind, this.around);
    const given = { ...ofKind, ...(upgrades && { upgrades }) };
    const started = performance.now();
    const part = this.isClusterScoped
      ? { given: { ...given, selector: `${TRIAL_LABEL}=${this.name}` } }
      : { given, namespaces: [this.namespace] };
    const prepared = (wire: Operator['wire']): void => {
      wire.pass = (...sent) => this.audit.pass(...sent);
      prepare?.(wire);
    };
    const props = { kubeconfig, kinds: [kind], ...part, prepare: prepared };
    this.running = await Operator.start(props);
    pace.started(performance.now() - started);
    return this.running;
  }

  async restart(): Promise<Operator> {
    this.steps.push('the operator is killed and started again');
    return this.start();
  }

  async create(sample: Sample, name = this.name): Promise<void> {
    const { spec, ...meta } = placed(sample, { ...this.site, name });
    const { kind, cluster } = this.run;
    const { apiVersion, kind: kindName } = kind.type;
    this.steps.push(`create ${kindName} ${name} with ${JSON.stringify(spec)}`);
    const labels = this.isClusterScoped ? { ...meta.labels, [TRIAL_LABEL]: this.name } : meta.labels;
    const metadata = { ...{ name, namespace: this.namespace, ...meta }, ...(labels && { labels }) };
    this.created.add(name);
    await cluster.create(kind.type, { apiVersion, kind: kindName, spec, metadata });
  }

  async startWith(sample: Sample): Promise<void> {
    await this.start();
    await this.create(sample);
    await rolledOut(this);
  }

  async edit(sample: Sample): Promise<void> {
    const { spec, ...metadata } = placed(sample, { ...this.site, name: this.name });
    if (metadata.labels ?? metadata.annotations) {
      this.steps.push(`set ${JSON.stringify(metadata)}`);
      await this.run.cluster.merge(this.place(), { metadata });
    }
    this.steps.push(`replace its spec by ${JSON.stringify(spec)}`);
    await this.run.cluster.replaceSpec(this.place(), spec);
  }

  /** @param value null removes it */
  async annotate(annotation: string, value: string | null): Promise<void> {
    this.steps.push(
      value === null ? `remove its annotation ${annotation}` : `annotate it with ${annotation}=${value}`,
    );
    await this.run.cluster.merge(this.place(), { metadata: { annotations: { [annotation]: value } } });
  }

  async delete(
    propagationPolicy: DeleteOptions['propagationPolicy'] = 'Background',
    name?: string,
  ): Promise<void> {
    this.steps.push(
      propagationPolicy === 'Orphan' ? 'delete it, and keep its objects' : `delete ${name ?? 'it'}`,
    );
    await this.run.cluster.delete(this.place(name), { propagationPolicy });
  }

  /** Deletes an object. One of the surroundings is created again by its author. */
  async remove(object: AnyObject): Promise<void> {
    const original = this.original(object);
    const again = original ? ', and create it again as its author' : '';
    this.steps.push(`delete ${object.kind} ${object.metadata.name}${again}`);
    await this.run.cluster.delete(this.placeOf(object));
    if (original) await make(this.run.cluster, original);
  }

  /** Creates the objects that the kind deletes again, under the names of the next round. */
  async renew(): Promise<void> {
    const { cluster, surroundings, removes } = this.run;
    if (!surroundings || removes.length === 0) return;
    this.steps.push('everything that it deletes is created again');
    const types = removes.map(groupKind);
    const removable = (): AnyObject[] =>
      (this.around.objects ?? []).filter((object) => types.includes(groupKind(object)));
    for (const object of removable()) await cluster.delete(this.placeOf(object), { mayBeMissing: true });
    this.site = { ...this.site, round: this.site.round + 1 };
    this.around = surroundings(this.site);
    for (const object of removable()) await make(cluster, object);
  }

  /** Changes an object of the surroundings, as its author. */
  async changeAround(
    index: number,
    change: 'changed' | 'deleted' | 'created again' | 'replaced by another',
  ): Promise<void> {
    const { cluster } = this.run;
    const object = this.around.objects?.[index];
    if (!object) return;
    this.steps.push(`${object.kind} ${object.metadata.name} is ${change}`);
    if (change !== 'created again' && change !== 'changed')
      await cluster.delete(this.placeOf(object), { mayBeMissing: true });
    if (change === 'deleted') return;
    await make(cluster, change === 'created again' ? object : anotherOf(object, change));
  }

  /** Returns the objects of these types in the namespaces of the trial. */
  async list(types: readonly ResourceType[]): Promise<AnyObject[]> {
    const lists = types.flatMap((type) =>
      this.placesOf(type).map(async (namespace) => {
        const objects = await this.run.cluster.listIfServed(type, namespace);
        const own = this.namespaces.includes(namespace)
          ? objects
          : objects.filter((one) => this.isRecorded(one));
        return own.map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
      }),
    );
    return (await Promise.all(lists)).flat();
  }

  /** Returns the namespaces where objects of a type may be; an empty one stands for all. */
  private placesOf(type: ResourceType): readonly string[] {
    const elsewhere = elsewhereOf(this.run.kind).find((one) => groupKind(one) === groupKind(type));
    if (!elsewhere) return this.namespaces;
    const { namespaces = '*' } = elsewhere;
    return namespaces === '*' ? [''] : [...new Set([...this.namespaces, ...namespaces])];
  }

  /** Reports whether an object is in the trial's namespaces, or belongs to a custom resource there. */
  private isRecorded(object: AnyObject): boolean {
    const key = recordOf(object)?.of?.key;
    const { namespace } = key === undefined ? object.metadata : splitKey(key);
    return this.namespaces.includes(namespace ?? '');
  }

  get(name = this.name): Promise<LiveResource> {
    return this.run.cluster.get<LiveResource>(this.place(name));
  }

  /** Returns what its operators have applied, with the status that the kind keeps of each. */
  async objects(): Promise<AnyObject[]> {
    const applied = (await this.reachable()).filter(isApplied);
    return applied.map((object) => withKeptStatus(object, { status: kept(this.run, object)?.status }));
  }

  pods(): Promise<AnyObject[]> {
    return this.run.cluster.list(pods, this.namespace);
  }

  /** Waits until the operator has seen the present generation and sends nothing more, or is dead. */
  async settled(name = this.name): Promise<LiveResource> {
    if (isDecorator(this.run.kind)) await delay(this.run.pace.scaled(NOTICED_MILLISECONDS));
    const requireSeen = async (): Promise<void> => {
      if (!this.isAlive || isDecorator(this.run.kind)) return;
      const { metadata, status } = await this.get(name);
      const [seen, present] = [status?.observedGeneration ?? 'none', metadata.generation ?? 0];
      if (seen !== present) throw new Error(`its status is of generation ${seen}, not of ${present}`);
    };
    await eventually(requireSeen, { deadlineMilliseconds: 30_000 });
    await this.quiet();
    return this.get(name);
  }

  /** Waits until no request is sent, nor will be because of events so far. */
  async quiet(leastMilliseconds = QUIET_MILLISECONDS): Promise<void> {
    await this.operator.quiet(this.run.settleMilliseconds + leastMilliseconds);
  }

  async state(name = this.name): Promise<Normal> {
    // Read before the objects, so that all that these say is ready is among them.
    const conditions = await this.conditions(name);
    return { ...(await this.content(await this.get(name))), ...conditions };
  }

  /** Returns the conditions, and which objects of the surroundings are left. */
  async conditions(name = this.name): Promise<Normal> {
    const cr = await this.get(name);
    const conditions = ['Ready', 'Reconciling', 'Stalled'].map((type) => {
      const { status = 'absent', reason = '' } = conditionOf(cr, type) ?? {};
      return [type, `${status} ${reason}`] as const;
    });
    return { '<found>': await this.left(), '<readiness>': Object.fromEntries(conditions) };
  }

  /** Returns the objects that the operator applies or may apply to; without a custom resource, before and after it. */
  async content(cr?: LiveResource): Promise<Normal> {
    const { namespace, elsewhere } = this.site;
    const live = await this.reachable();
    const there = live.filter((object) => isApplied(object) || this.original(object));
    const objects = cr ? there : there.filter((object) => !isKept(this.run, object));
    const { rendering } = this.run.kind;
    // A construct that observes can replace what is outdated, and has to end as a new custom resource does.
    const isStrict = 'each' in rendering && rendering.each.observes;
    return normal(isStrict ? objects : objects.map(withoutCreated), {
      ...{ name: cr?.metadata.name ?? this.name, uid: cr?.metadata.uid ?? '<none>', namespace },
      ...(elsewhere !== namespace && { elsewhere }),
      digests: cr ? this.digests(cr, live) : [],
    });
  }

  /** Takes what there is now, as the objects of a neighbour, for what has to be the same in the end. */
  async stand(): Promise<void> {
    this.standing = new Set((await this.objects()).map(({ metadata }) => metadata.uid));
    this.untouched = await this.content();
  }

  /** Reports whether an object stays when the custom resource is deleted. */
  stays(object: AnyObject): boolean {
    return this.standing.has(object.metadata.uid) || isKept(this.run, object);
  }

  /** Reports whether an object belongs to many custom resources, so that none owns it. */
  isShared(object: AnyObject): boolean {
    return this.madeAs(object).some(({ namespaces }) => namespaces) || isContributed(this.run, object);
  }

  /** Reports whether an object that is deleted goes at once, and is created again by the operator or its author. */
  isCreatedAgain(object: AnyObject): boolean {
    // What is in a Namespace goes first, which takes its time.
    if (object.kind === 'Namespace' || (object.metadata.finalizers ?? []).length > 0) return false;
    return !!this.original(object) || this.madeAs(object).some(({ isCreated }) => isCreated);
  }

  /** Kills the operator, and deletes the namespaces without waiting for their end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.running?.kill();
    const { cluster } = this.run;
    // In a namespace, they go with it.
    const left = this.isClusterScoped ? this.created : [];
    for (const name of left) await cluster.delete(this.place(name), { mayBeMissing: true });
    for (const name of this.sites) await removeNamespace(cluster, name);
  }

  place(name = this.name): Place {
    return { type: this.run.kind.type, namespace: this.namespace, name };
  }

  placeOf(object: AnyObject): Place {
    const { namespace = this.namespace, name } = object.metadata;
    const type = this.run.types.find((one) => groupKind(one) === groupKind(object));
    return { type: type ?? resourceType(object), namespace, name };
  }

  private madeAs({ metadata, ...object }: AnyObject): Made[] {
    return this.made.filter(
      ({ type, namespaces, name }) =>
        groupKind(type) === groupKind(object) &&
        (namespaces?.includes(metadata.namespace ?? '') ?? true) &&
        (name ?? metadata.name) === metadata.name,
    );
  }

  private original(object: AnyObject): AnyObject | undefined {
    return this.around.objects?.find((one) => objectId(one) === objectId(object));
  }

  /** Returns its own objects and those of its surroundings, of the types that the kind makes. */
  private async reachable(): Promise<AnyObject[]> {
    const all = await this.list(this.run.types);
    return all.filter((object) => !this.isClusterScoped || this.isOwn(object));
  }

  /** Reports whether an object of a cluster-scoped kind is of this trial. */
  private isOwn(object: AnyObject): boolean {
    const [label = ''] = Object.keys(selectorLabels(this.run.kind.type, ''));
    return this.created.has(object.metadata.labels?.[label] ?? '') || this.original(object) !== undefined;
  }

  /** Returns, for each object of the surroundings that isn't compared as a whole, whether it is there. */
  private async left(): Promise<Readonly<Record<string, 'there' | 'gone'>>> {
    const { cluster, surroundings } = this.run;
    const names = surroundings?.(ANY_SITE).objects ?? [];
    const entries = (this.around.objects ?? []).map(async (object, index) => {
      if (this.madeAs(object).length > 0) return [];
      const found = await cluster.find(this.placeOf(object));
      const isThere = found !== undefined && found.metadata.deletionTimestamp === undefined;
      return [[objectId(names[index] ?? object), isThere ? 'there' : 'gone'] as const];
    });
    return Object.fromEntries((await Promise.all(entries)).flat());
  }

  private digests(cr: LiveResource, live: readonly AnyObject[]): readonly string[] {
    const { kind } = this.run;
    if (!('each' in kind.rendering)) return [];
    const { generated, texts } = generatedOf(this.run, cr, live);
    const made = (name: string): AnyObject[] => {
      const text = JSON.stringify({ spec: cr.spec }).replaceAll(cr.metadata.name, name);
      const named = { ...cr, ...(JSON.parse(text) as Spec), metadata: { ...cr.metadata, name } };
      const own = generated && name === cr.metadata.name ? { generated } : {};
      const tested = { kind, context: contextOf(kind, this.around), surroundings: () => this.around };
      return rendered(tested, named, own);
    };
    try {
      return [...texts, ...digestsOf(made, cr.metadata.name)];
    } catch (error) {
      // The status has it.
      if (error instanceof OperatorError) return texts;
      throw error;
    }
  }
}

/** Returns an object with another label and, where the type has them, other data. */
function anotherOf(object: AnyObject, value: string): AnyObject {
  const { metadata, data } = object;
  const text = value.replaceAll(' ', '-');
  const entry = { conformance: object.kind === 'Secret' ? Buffer.from(text).toString('base64') : text };
  return {
    ...object,
    metadata: { ...metadata, labels: { ...metadata.labels, conformance: text } },
    ...(['Secret', 'ConfigMap'].includes(object.kind) && {
      data: { ...(data as object | undefined), ...entry },
    }),
  };
}

async function make(cluster: Cluster, object: AnyObject): Promise<void> {
  const { status, ...content } = object;
  const type = resourceType(object);
  await cluster.apply(type, content, 'surroundings');
  if (status === undefined) return;
  const { namespace = '', name } = object.metadata;
  const answer = await mergeStatus(cluster, { type, namespace, name }, status);
  if (answer.status !== 200)
    throw new Error(`The status of ${object.kind} ${name} is refused: ${String(answer.body.message)}`);
}

/** Merges a status into that of an object, as another writer. */
export function mergeStatus(
  cluster: Cluster,
  { type, namespace, name }: Place,
  status: unknown,
): Promise<Answer> {
  const contentType = 'application/merge-patch+json';
  const path = `${collection(type, namespace)}/${name}/status`;
  return cluster.send('PATCH', path, { body: { status }, contentType });
}

export async function removeNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.send('DELETE', `/api/v1/namespaces/${name}`);
}

export function conditionOf({ status }: LiveResource, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

function isApplied({ metadata }: AnyObject): boolean {
  return Object.keys(metadata.annotations ?? {}).some(isHashAnnotation);
}

/** Reports whether the API server refuses what a custom resource says. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.code === 422;
}

/** Returns undefined where the API server refuses what a custom resource says. Any other refusal is a failure. */
export async function unlessRefused<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

interface Status {
  readonly conditions?: readonly (Pick<Condition, 'type' | 'status' | 'reason'> &
    Partial<Pick<Condition, 'message'>>)[];
  readonly availableReplicas?: number;
}

/** Reports whether an object is ready by the rules of kstatus, and has as many pods as its spec asks for. */
export function isReady(object: AnyObject): boolean {
  if (childReadiness(object).phase !== 'ready') return false;
  const { replicas = 1 } = (object.spec ?? {}) as { readonly replicas?: number };
  const { availableReplicas = 0 } = (object.status ?? {}) as Status;
  return !['Deployment', 'StatefulSet'].includes(object.kind) || availableReplicas >= replicas;
}

/** Reports whether an object waits for nothing, be it for an autoscaler's first look, after which there may be more pods. */
function isComplete(object: AnyObject): boolean {
  const { conditions = [] } = (object.status ?? {}) as Status;
  const isOver = conditions.some(
    ({ type, status }) => ['Complete', 'Failed', 'Suspended'].includes(type) && status === 'True',
  );
  // What depends on a Job comes once that is over.
  if (object.kind === 'Job') return isOver;
  return (object.kind !== 'HorizontalPodAutoscaler' || conditions.length > 0) && isReady(object);
}

/**
 * Reports whether the cluster says that pods can't be made or placed.
 * @param hasVolumes whether claims would have volumes by now, if there are any
 */
function isStuck({ status }: AnyObject, hasVolumes: boolean): boolean {
  const { conditions = [] } = (status ?? {}) as Status;
  const isUnplaced = (message = ''): boolean => hasVolumes || !message.includes('PersistentVolumeClaim');
  return conditions.some(
    ({ type, status: value, reason, message }) =>
      (type === 'ReplicaFailure' && value === 'True') ||
      (value === 'False' && reason === 'Unschedulable' && isUnplaced(message)),
  );
}

const ROLLOUT_MILLISECONDS = 90_000;
/** Time after which pods that the cluster can't place aren't waited for. */
const STUCK_MILLISECONDS = 5_000;
/** Time after which claims aren't waited for: those of many pods at once compete for volumes. */
const UNBOUND_MILLISECONDS = 20_000;
/** Time after which an operator knows that everything is there. */
const BEHIND_MILLISECONDS = 3_000;
export const CONVERGENCE_MILLISECONDS = 12_000;
export const COLLECTED_MILLISECONDS = 45_000;

/** Members of a trial that waiting needs. */
export type Rolling = Pick<Trial, 'settled' | 'isAlive' | 'objects' | 'pods' | 'state'> & {
  readonly run: Pick<ConformanceRun, 'pace'>;
};

const realClock = { now: () => performance.now(), wait: (milliseconds: number) => delay(milliseconds) };

/**
 * Waits until it is settled and has its pods, or is dead, or the cluster says that pods can't come.
 * @param isRight asked once everything is there; its argument is whether an operator would know that by now. @default - anything is right
 */
export async function rolledOut(
  trial: Rolling,
  name?: string,
  clock = realClock,
  isRight: (isKnown: boolean) => Promise<boolean> = () => Promise.resolve(true),
): Promise<void> {
  const started = clock.now();
  // Since when all is known to be there: a look before that may have been long ago.
  let since = Infinity;
  for (let wasRolling = false; trial.isAlive;) {
    await trial.settled(name);
    const objects = await trial.objects();
    const isRolling = !objects.every(isComplete);
    const [now, { pace }] = [clock.now(), trial.run];
    since = isRolling ? Infinity : Math.min(since, now);
    const mayBeStuck = isRolling && now - started > pace.scaled(STUCK_MILLISECONDS);
    const hasVolumes = now - started > pace.scaled(UNBOUND_MILLISECONDS);
    const isOver =
      now - started > ROLLOUT_MILLISECONDS ||
      (mayBeStuck && [...objects, ...(await trial.pods())].some((one) => isStuck(one, hasVolumes)));
    const isKnown = isOver || now - since > pace.scaled(BEHIND_MILLISECONDS);
    if ((isOver || (!isRolling && !wasRolling)) && (await isRight(isKnown))) return;
    // It may have been quiet until now, and learns of this only in a moment. What has waited for these objects comes then.
    await clock.wait(wasRolling && !isRolling ? QUIET_MILLISECONDS : 100);
    wasRolling = isRolling;
  }
}

/**
 * Returns the state that a custom resource ends in. An autoscaler may ask for more pods when all seems to be over, so a state
 * that is Reconciling counts only where it stays although everything is there, as with a kind that waits for others.
 */
export async function endState(trial: Rolling, clock = realClock): Promise<Normal> {
  let state: Normal = {};
  await rolledOut(trial, undefined, clock, async (isKnown) => {
    state = await trial.state();
    return isKnown || !hasCondition(state, 'Reconciling');
  });
  return state;
}

/** Waits until a custom resource is as it ends: what depends on others comes only when these are there. */
export function ended(
  trial: Rolling & Pick<Trial, 'conditions'>,
  name: string,
  clock = realClock,
): Promise<void> {
  return rolledOut(trial, name, clock, async (isKnown) => {
    return isKnown || !hasCondition(await trial.conditions(name), 'Reconciling');
  });
}

/** Reports whether a condition is True. */
export function hasCondition(state: Normal, type: string): boolean {
  return JSON.stringify(state['<readiness>']).includes(`"${type}":"True`);
}

/** Waits until a probe doesn't throw, by the pace of the machine. */
export function soon<T>(trial: Trial, milliseconds: number, probe: () => Promise<T>): Promise<T> {
  const deadlineMilliseconds = trial.run.pace.scaled(milliseconds);
  return eventually(probe, { deadlineMilliseconds, intervalMilliseconds: 200 });
}

/** Waits until a trial is in a state once its operator is at rest. @throws with where it differs */
export async function becomes(trial: Trial, expected: Normal, isOfConditions = false): Promise<void> {
  const { pace, convergenceMilliseconds } = trial.run;
  const part = (state: Normal): Normal => (isOfConditions ? { '<readiness>': state['<readiness>'] } : state);
  const started = performance.now();
  for (let since = started; ;) {
    await trial.settled();
    const lines = differences(part(expected), part(await trial.state())).map(({ text }) => text);
    if (lines.length === 0) return;
    // Pods may take their time, and watches that were cut are opened again after a pause.
    const waits = lines.every((line) => line.startsWith('<readiness>'));
    const isRolling = waits && !(await trial.objects()).every(isComplete);
    const now = performance.now();
    const isPaused = isRolling || !trial.operator.wire.isWatching;
    if (isPaused) since = now;
    const most = isPaused ? ROLLOUT_MILLISECONDS : pace.scaled(convergenceMilliseconds);
    if (now - (isPaused ? started : since) > most) {
      const message = waits && conditionOf(await trial.get(), 'Ready')?.message;
      throw new Error(lines.slice(0, 3).join('; ') + (message ? `; Ready has the message: ${message}` : ''));
    }
    await delay(200);
  }
}

/** Waits until the custom resource and its objects are gone and shared objects are as before; or the operator is dead. */
export async function isGone(trial: Trial, orDead = false): Promise<void> {
  const requireGone = async (): Promise<void> => {
    if (orDead && !trial.isAlive) return;
    if (await trial.run.cluster.find(trial.place())) throw new Error('it is still there');
    const left = (await trial.objects()).filter((object) => !trial.stays(object));
    const names = (objects: AnyObject[]): string =>
      objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ');
    const own = left.filter((object) => !trial.isShared(object));
    if (own.length > 0) throw new Error(`${names(own)} stays when it is deleted`);
    if (left.length > 0) throw new Error(`of its fields in ${names(left)} some stay when it is deleted`);
    const [changed] = differences(trial.untouched, await trial.content());
    if (changed) throw new Error(`when it is deleted, ${changed.text}`);
  };
  // The garbage collector looks for new kinds every half minute only.
  await soon(trial, COLLECTED_MILLISECONDS, requireGone);
}

/**
 * Returns the state that these specs lead to in turn when nothing is disturbed: that of a new custom resource with the last
 * one, since deletions alone can't be undone by an edit.
 */
export function undisturbed(run: ConformanceRun, ...specs: readonly Sample[]): Promise<Normal> {
  const path = run.removes.length === 0 ? specs.slice(-1) : specs;
  const id = JSON.stringify(path);
  const state = run.expected.get(id) ?? endOf(run, path);
  run.expected.set(id, state);
  // After a wait that ran out, the next one tries again.
  state.catch((error: unknown) => {
    if (!isRefusal(error)) run.expected.delete(id);
  });
  return state;
}

async function endOf(run: ConformanceRun, [first, ...others]: readonly Sample[]): Promise<Normal> {
  await using trial = await Trial.begin(run);
  await trial.start();
  if (first) await trial.create(first);
  for (const sample of others) {
    await rolledOut(trial);
    await trial.edit(sample);
  }
  // Awaited here, since the trial ends with this function.
  return await endState(trial);
}

const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });

/** Lets nothing get ready that needs new pods. */
export async function denyPods({ run, namespace, steps }: Trial): Promise<void> {
  steps.push('allow no pods in the namespace, by a ResourceQuota');
  const { apiVersion, kind } = quotas;
  const metadata = { name: 'no-pods', namespace };
  await run.cluster.create(quotas, { apiVersion, kind, metadata, spec: { hard: { pods: '0' } } });
}

export async function allowPods({ run, namespace, steps }: Trial): Promise<void> {
  steps.push('allow pods again');
  await run.cluster.delete({ type: quotas, namespace, name: 'no-pods' });
}

/** Runs a trial. An error is a failure, with the steps until then. */
export async function attempt(
  run: ConformanceRun,
  body: (trial: Trial) => Promise<void>,
): Promise<Failure[]> {
  let steps: readonly string[] = ['create the namespaces of a trial, and their surroundings'];
  try {
    await using trial = await Trial.begin(run);
    steps = trial.steps;
    // What breaks a rule explains what doesn't hold for it.
    const failed = await body(trial).then(() => undefined, messageOf);
    const what = trial.audit.broken ?? failed;
    return what === undefined ? [] : [{ what, sequence: steps }];
  } catch (error) {
    return [{ what: messageOf(error), sequence: steps }];
  }
}

/** Number of failures after which no further trial begins: each takes its time and adds little. */
export const ENOUGH = 3;

/** Runs a trial for each item, some at a time. */
export async function trialOfEach<T>(
  run: ConformanceRun,
  items: readonly T[],
  body: (trial: Trial, item: T) => Promise<void>,
): Promise<Failure[]> {
  const failures: Failure[] = [];
  await several(items, async (item) => {
    if (failures.length < ENOUGH) failures.push(...(await attempt(run, (trial) => body(trial, item))));
  });
  return failures;
}

/** Returns the results in order; four are worked on at a time. */
export async function several<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await act(item);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return results;
}
