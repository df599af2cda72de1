import type { Condition } from '../contract/conditions.js';
import { storedVersion } from '../contract/crd.js';
import { contributedType, isElsewhere } from '../contract/kind.js';
import type { FlagValues, Generated, Kind, KindContext, Rendered } from '../contract/kind.js';
import type { RenderedKind, RenderedType, RenderInputs, StandaloneController } from '../contract/kind.js';
import { groupOf, objectId } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { keepStatus } from '../values/projections.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { offlineInputs } from '../render/references.js';
import { render } from '../render/renderer.js';
import { applyDefaults } from '../validate/defaults.js';
import type { Spec } from './walk.js';

/** Namespaces of one trial. */
export interface Site {
  /** Namespace of the custom resource. */
  readonly namespace: string;
  /** Another one, for what a kind shares or finds elsewhere. */
  readonly elsewhere: string;
  /**
   * Number of times that what the kind deletes was created again in this trial, from 0 on; for names, since the next object of a name
   * may be treated differently.
   */
  readonly round: number;
}

/** Objects that a kind expects to find, and flags, policy and settings of its operator. */
export interface Surroundings {
  /** Namespaced objects, made in this order before the operator starts, each with its status if it has one. @default - none */
  readonly objects?: readonly AnyObject[];
  /** Flags of the kind, as given on the command line. @default - none is given */
  readonly flags?: FlagValues;
  /** The kind's section of a policy. @default - nothing is restricted */
  readonly policy?: unknown;
  /** The kind's section of the operator's settings. @default - those of its schema */
  readonly settings?: unknown;
}

/** Names that a sample may hold, also within longer texts. */
export interface SampleSite extends Omit<Site, 'round'> {
  /** Name of the custom resource. */
  readonly name: string;
}

/** Names that stand in samples for those of each trial. */
export const SAMPLE_SITE: SampleSite = {
  ...{ name: 'swept-resource', namespace: 'swept-namespace', elsewhere: 'swept-elsewhere' },
};

/** Returns data of a sample with the names of a trial. */
export function placed<T>(data: T, site: SampleSite): T {
  const names = Object.entries(SAMPLE_SITE) as [keyof SampleSite, string][];
  const text = names.reduce((all, [name, own]) => all.replaceAll(own, site[name]), JSON.stringify(data));
  return JSON.parse(text) as T;
}

/** Returns the surroundings at a site: deterministic, with the same kinds and counts of objects at every site. */
export type MakeSurroundings = (site: Site) => Surroundings;

/** A custom resource without its identity. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

/** A custom resource as it is in the cluster. */
export type LiveResource = CustomResource<
  Spec,
  { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
>;

/** A kind and its samples, without a cluster. */
export interface TestedKind {
  readonly kind: Kind;
  readonly samples: readonly [Sample, ...Sample[]];
  readonly surroundings?: MakeSurroundings | undefined;
  readonly context: KindContext;
  readonly types: readonly ResourceType[];
  readonly removes: readonly ResourceType[];
  /** Longest time that its controllers wait for further events. */
  readonly settleMilliseconds: number;
}

/** Returns a decorator as a kind whose custom resources are the objects that it chooses. Its CRD allows anything, and isn't installed. */
export function decoratorKind(controller: StandaloneController, each: RenderedKind): Kind {
  const { type } = each;
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
  const version = {
    name: type.apiVersion.split('/').at(-1) ?? '',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: any },
  };
  const crd: Kind['crd'] = {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: type.plural },
    spec: {
      ...{ group: groupOf(type.apiVersion), scope: type.namespaced ? 'Namespaced' : 'Cluster' },
      ...{ names: { kind: type.kind, plural: type.plural }, versions: [version] },
    },
  };
  return { ...controller, type, crd, rendering: { each } };
}

/** Reports whether the custom resources of a kind are objects of others, which have no status of it. */
export function isDecorator({ rendering }: Kind): boolean {
  return 'each' in rendering && rendering.each.decorates === true;
}

/** Site that stands for every other in comparisons. */
export const ANY_SITE: Site = { namespace: 'namespace', elsewhere: 'elsewhere', round: 0 };

export function contextOf({ name }: Kind, { flags, policy, settings }: Surroundings): KindContext {
  const current = { policy: policy ? { [name]: policy } : undefined, settings: { [name]: settings } };
  return { render, inForce: { current }, ...(flags && { flags }), policy };
}

export function testedKind(
  kind: Kind,
  samples: TestedKind['samples'],
  surroundings: MakeSurroundings | undefined,
): TestedKind {
  const context = contextOf(kind, surroundings?.(ANY_SITE) ?? {});
  const { made, removes } = effectsOf(kind, context);
  const quiet = kind.controllers(context).map(({ settle }) => settle?.quietMilliseconds ?? 0);
  return {
    ...{ kind, samples, surroundings, context, removes },
    types: distinct(made.map(({ type }) => type)),
    settleMilliseconds: Math.max(0, ...quiet),
  };
}

export interface Made {
  readonly type: ResourceType;
  /** Namespaces of shared objects; undefined where they belong to the custom resource, in its namespace. */
  readonly namespaces: readonly string[] | '*' | undefined;
  /** Name of a shared object. */
  readonly name: string | undefined;
  /** Whether a deleted one is created again. */
  readonly isCreated: boolean;
}

/** Reads from the watches of a kind what it applies, and what of others it deletes. */
export function effectsOf(kind: Kind, context: KindContext): { made: Made[]; removes: ResourceType[] } {
  const elsewhere = elsewhereOf(kind).map(groupKind);
  const watches = kind
    .controllers(context)
    .flatMap((controller) => controller.watches)
    .filter(({ type }) => groupKind(type) !== groupKind(kind.type));
  const made = watches
    .filter(({ writes = [] }) => writes.includes('create') || writes.includes('patch'))
    .map(({ type, namespaces, name, writes }) => ({
      ...{ type, name, isCreated: writes?.includes('create') ?? false },
      // Children elsewhere are one custom resource's all the same.
      namespaces: elsewhere.includes(groupKind(type)) ? undefined : namespaces,
    }));
  const applied = made.map(({ type }) => groupKind(type));
  const removed = watches.filter(
    ({ type, writes }) => writes?.includes('delete') && !applied.includes(groupKind(type)),
  );
  return { made, removes: distinct(removed.map(({ type }) => type)) };
}

/** Returns how a kind renders its custom resources one by one; nothing where it renders them together. */
export function ownRendering({ kind: { rendering } }: Pick<TestedKind, 'kind'>): Partial<RenderedKind> {
  return 'each' in rendering ? rendering.each : {};
}

/** Reports whether a kind sets only fields of such an object, which belongs to others. */
export function isContributed(tested: Pick<TestedKind, 'kind'>, object: AnyObject): boolean {
  return contributedType(ownRendering(tested), object) !== undefined;
}

/** Reports whether such an object stays when its custom resource is deleted. */
export function isKept(tested: Pick<TestedKind, 'kind'>, object: AnyObject): boolean {
  const { children = [] } = ownRendering(tested);
  return children.some((type) => type.onDelete === 'keep' && groupKind(type) === groupKind(object));
}

/** Returns the types of children that may be where their owner is only recorded. */
export function elsewhereOf(kind: Kind): readonly RenderedType[] {
  const { children = [] } = ownRendering({ kind });
  return children.filter((child) => isElsewhere(kind.type, child));
}

export function distinct(types: readonly ResourceType[]): ResourceType[] {
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

/**
 * Renders one custom resource, of which a spec that is valid is known at least.
 * @param inputs what its construct reads beside it; by default, the surroundings are all that there is
 */
export function rendered(
  { kind, context, surroundings }: Pick<TestedKind, 'kind' | 'context' | 'surroundings'>,
  given: Pick<CustomResource, 'metadata' | 'spec'>,
  { references, ...others }: Partial<ReadInputs> = {},
): Rendered {
  const { apiVersion, kind: kindName } = kind.type;
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  const named = placed(given, { ...ANY_SITE, ...given.metadata });
  const cr = applyDefaults({ ...named, apiVersion, kind: kindName }, schema) as CustomResource;
  if ('each' in kind.rendering) {
    const { each } = kind.rendering;
    const namespace = cr.metadata.namespace ?? ANY_SITE.namespace;
    const around = references ?? surroundings?.({ ...ANY_SITE, namespace }).objects ?? [];
    const inputs = offlineInputs(each, cr, { references: around, ...context.inForce?.current });
    return render(each, cr, { ...inputs, ...others });
  }
  const { manifests, findings = [] } = kind.rendering.together([cr], context);
  const refused = findings.find(({ level }) => level === 'error');
  if (refused) throw new Error(refused.message);
  return manifests.flatMap(({ objects }) => [...objects]);
}

interface ReadInputs extends Pick<RenderInputs, 'generated' | 'observed' | 'status'> {
  /** Objects that it may refer to. */
  readonly references: readonly AnyObject[];
}

/** Returns what the samples render to; what can't be rendered is up to other checks. */
export function renderedSamples(tested: TestedKind): Rendered[] {
  return tested.samples.flatMap(({ spec, ...meta }) => {
    try {
      return [rendered(tested, { metadata: { name: 'sample', namespace: 'sweep', ...meta }, spec })];
    } catch {
      return [];
    }
  });
}

/** Returns what a construct gets of the values that are generated for a custom resource, and the values. */
export function generatedOf(
  tested: TestedKind,
  cr: CustomResource,
  live: readonly AnyObject[],
): { readonly generated?: Generated; readonly texts: readonly string[] } {
  const ofKind = ownRendering(tested).generated;
  const secret = live.find((object) => ofKind && objectId(object) === objectId(ofKind.secretOf(cr)));
  if (!ofKind || !secret) return { texts: [] };
  const generated = ofKind.propsOf(cr, kept(tested, secret));
  return {
    generated,
    texts: [generated.checksum, ...Object.values(secret.data as Readonly<Record<string, string>>)],
  };
}

/** Returns an object as the kind keeps it in memory. */
export function kept({ kind, context }: TestedKind, object: AnyObject): AnyObject | undefined {
  const watches = kind.controllers(context).flatMap((controller) => controller.watches);
  const { keep = keepStatus } = watches.find(({ type }) => groupKind(type) === groupKind(object)) ?? {};
  return keep(object);
}
