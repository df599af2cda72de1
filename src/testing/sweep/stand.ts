import type { Condition } from '../../contract/conditions.js';
import type { Watch } from '../../contract/controller.js';
import type { FlagValues, Kind, KindContext, Policy } from '../../contract/kind.js';
import { isHashAnnotation } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { resourceType, groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { render } from '../../synth/render.js';
import { collection } from '../cluster.js';
import type { Cluster } from '../cluster.js';
import type { Random } from '../random.js';

export type Spec = Readonly<Record<string, unknown>>;

/** A custom resource whose operator is swept, without what makes it a certain one. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

/** As it is in the cluster. */
export type LiveResource = CustomResource<
  Spec,
  { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
>;

/** What all checks of a sweep share. */
export interface Stand extends Swept {
  readonly cluster: Cluster;
  /** Whose ServiceAccount has the rights that are derived from the kind, and no others. */
  readonly user: string;
  /** To act as it. */
  readonly kubeconfig: string;
  readonly random: Random;
  readonly seed: number;
  readonly pace: Pace;
  /** Fields of the spec that a walk leaves alone, as in `limits.mode`. */
  readonly notWalked: readonly string[];
  /** Whether something of an earlier spec stays under this one by design. */
  readonly keepsEarlier: (spec: Spec) => boolean;
  /** Whether it rightly doesn't become ready under this one. */
  readonly waits: (spec: Spec) => boolean;
}

/** What is swept, without a cluster. */
export interface Swept {
  readonly kind: Kind;
  readonly samples: readonly [Sample, ...Sample[]];
  /** What each trial finds. @default - nothing */
  readonly surroundings?: MakeSurroundings;
  /** What its controllers are made with, wherever a trial takes place. */
  readonly context: KindContext;
  /** Types of which the kind makes objects, or applies shared ones. */
  readonly types: readonly ResourceType[];
  /** Types of others' objects, which it deletes. */
  readonly removes: readonly ResourceType[];
  /** How long its controllers wait for quiet. */
  readonly settleMilliseconds: number;
  /**
   * How long something may be other than it should be, while nothing else is waited for and nothing else keeps the machine
   * busy.
   * @default 12000
   */
  readonly convergenceMilliseconds?: number;
}

export function sweptOf({
  surroundings,
  ...props
}: Pick<Swept, 'kind' | 'samples'> & {
  readonly surroundings?: MakeSurroundings | undefined;
}): Swept {
  const { kind } = props;
  const context = contextOf(surroundings?.(ANY_SITE) ?? {});
  return {
    ...{ ...props, context, ...(surroundings && { surroundings }) },
    types: distinct(madeBy(kind, context).map(({ type }) => type)),
    removes: removedBy(kind, context),
    settleMilliseconds: settleMilliseconds(kind, context),
  };
}

export function isApplied({ metadata }: AnyObject): boolean {
  return Object.keys(metadata.annotations ?? {}).some(isHashAnnotation);
}

/** The status of a condition. */
export function conditionOf({ status }: LiveResource, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** Where a trial takes place: namespaces that nobody else has. */
export interface Site {
  /** Of the custom resource. */
  readonly namespace: string;
  /** Another one, for what a kind shares or finds elsewhere. */
  readonly elsewhere: string;
  /**
   * How often what the kind deletes was made anew in this trial, from 0 on; for names, since the next one of a name may be
   * treated differently.
   */
  readonly round: number;
}

/** What a kind expects to find, and how its operator was started. */
export interface Surroundings {
  /** Namespaced objects, made in this order before the operator starts, each with its status if it has one. @default - none */
  readonly objects?: readonly AnyObject[];
  /** Of the kind, as given on the command line. @default - none is given */
  readonly flags?: FlagValues;
  /** The kind's section of a policy. @default - nothing is restricted */
  readonly policy?: unknown;
}

/** Must give the same for the same site, and as many objects of the same kinds for every other. */
export type MakeSurroundings = (site: Site) => Surroundings;

/** Stands for every site, in what is compared. */
export const ANY_SITE: Site = { namespace: 'namespace', elsewhere: 'elsewhere', round: 0 };

/** What the controllers of a kind are made with there. */
export function contextOf({ flags, policy }: Surroundings): KindContext {
  return { render, ...(flags && { flags }), ...(policy !== undefined && { policy }) };
}

/** The policy of all kinds, of which only this one's section is known. */
export function policyFor({ name }: Kind, { policy }: Pick<Surroundings, 'policy'>): Policy | undefined {
  return policy === undefined ? undefined : { [name]: policy };
}

export function typeOf({ apiVersion, kind }: AnyObject): ResourceType {
  return resourceType({ apiVersion, kind });
}

/** Makes an object as it was written down, in place of none. Its status is written as by whoever is in charge of it. */
export async function make(cluster: Cluster, object: AnyObject): Promise<void> {
  const { status, ...content } = object;
  const type = typeOf(object);
  await cluster.apply(type, content, 'surroundings');
  if (status === undefined) return;
  const { namespace, name } = object.metadata;
  const answer = await cluster.send('PATCH', `${collection(type, namespace)}/${name}/status`, {
    ...{ body: { status }, contentType: 'application/merge-patch+json' },
  });
  if (answer.status !== 200)
    throw new Error(`The status of ${object.kind} ${name} is refused: ${String(answer.body.message)}`);
}

/** Objects of a type that a kind applies, as far as its watches say where. */
export interface Made {
  readonly type: ResourceType;
  /** Shared by many, and in these namespaces alone. @default - they are the custom resource's own, beside it */
  readonly namespaces?: readonly string[];
  /** Of what is shared. @default - every name */
  readonly name?: string;
  /** Whether one that has gone is made anew, not only applied to. */
  readonly isCreated: boolean;
}

/** What the controllers of a kind apply. */
export function madeBy(kind: Kind, context: KindContext): Made[] {
  return watchesOf(kind, context)
    .filter(applies)
    .map(({ type, namespaces, name, writes = [] }) => ({
      ...{ type, isCreated: writes.includes('create') },
      ...(namespaces && { namespaces }),
      ...(name !== undefined && { name }),
    }));
}

/** Types of objects that a kind deletes and never applies: they are others'. */
export function removedBy(kind: Kind, context: KindContext): ResourceType[] {
  const watches = watchesOf(kind, context);
  const applied = new Set(watches.filter(applies).map(({ type }) => groupKind(type)));
  return distinct(
    watches
      .filter(({ type, writes = [] }) => writes.includes('delete') && !applied.has(groupKind(type)))
      .map(({ type }) => type),
  );
}

function distinct(types: readonly ResourceType[]): ResourceType[] {
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

/** For how long the controllers of a kind may wait for further events before they do anything. */
export function settleMilliseconds(kind: Kind, context: KindContext): number {
  return Math.max(0, ...kind.controllers(context).map(({ settle }) => settle?.quietMilliseconds ?? 0));
}

export function isMadeBy(
  { type, namespaces, name }: Made,
  { kind, apiVersion, metadata }: AnyObject,
): boolean {
  return (
    groupKind(type) === groupKind({ kind, apiVersion }) &&
    (namespaces?.includes(metadata.namespace ?? '') ?? true) &&
    (name ?? metadata.name) === metadata.name
  );
}

function watchesOf(kind: Kind, context: KindContext): Watch[] {
  return kind
    .controllers(context)
    .flatMap(({ watches }) => watches)
    .filter(({ type }) => type.namespaced && groupKind(type) !== groupKind(kind.type));
}

function applies({ writes = [] }: Watch): boolean {
  return writes.includes('create') || writes.includes('patch');
}

/** What an operator takes at most to start, where nothing else keeps the machine busy. */
const IDLE_START_MILLISECONDS = 250;
/** Four trials at a time, twice. */
const RECENT = 8;
const MOST = 5;

/**
 * How long is long enough, on the machine as it is now: a wait that runs out is told as a fault of the kind. An operator that
 * starts is the measure, since nothing of the kind is to be done yet: connections, lists and watches, all of which wait their
 * turn on a machine that is busy. A kind that keeps the process busy meanwhile gets more time too, but never without end.
 */
export class Pace {
  private readonly recent: number[] = [];

  started(milliseconds: number): void {
    this.recent.push(milliseconds);
    if (this.recent.length > RECENT) this.recent.shift();
  }

  /**
   * At most five times as much.
   * @param milliseconds that are enough where nothing else keeps the machine busy
   */
  scaled(milliseconds: number): number {
    const slowest = Math.max(...this.recent, IDLE_START_MILLISECONDS);
    return milliseconds * Math.min(MOST, slowest / IDLE_START_MILLISECONDS);
  }
}

/** How it fares, without words that name it. */
export function readinessOf(cr: LiveResource): object {
  return Object.fromEntries(
    ['Ready', 'Reconciling', 'Stalled'].map((type) => {
      const { status, reason } = conditionOf(cr, type) ?? {};
      return [type, `${status ?? 'absent'} ${reason ?? ''}`];
    }),
  );
}
