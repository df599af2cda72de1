import type { Construct } from 'constructs';
import type { Controller, Found, Lookup, Query, TypeRef } from './controller.js';
import type { CustomResourceDefinition, StructuralSchema } from './crd.js';
import type { AnyObject, CustomResource, ObjectMeta } from './object.js';
import type { ForeignHandler } from './plan.js';
import { groupKind } from './resource.js';
import type { ResourceType } from './resource.js';

/** Props of a construct: the custom resource, without what only a live object has. */
export interface CustomResourceProps<Spec> {
  readonly metadata: {
    readonly name: string;
    /** @default - the objects are rendered without a namespace */
    readonly namespace?: string;
    /** Labels, of a kind that `readsMetadata`. @default - the kind doesn't, or there are none */
    readonly labels?: Readonly<Record<string, string>>;
    /** Annotations but for those of this project and of `kubectl apply`, of a kind that `readsMetadata`. @default - as labels */
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /** Spec as the API server would store it: validated, and with the defaults of the schema. */
  readonly spec: Spec;
  /** Rendered API version: a construct may serve several groups. @default - the one that the construct was written for */
  readonly apiVersion?: string;
  /**
   * The section of this kind in the admin's policy, valid by the kind's `policySchema`. What it forbids is refused with
   * an OperatorError of the reason `PolicyDenied`.
   * @default - nothing is forbidden
   */
  readonly policy?: unknown;
  /** The section of this kind in the operator's settings, with the defaults of its `settingsSchema`. @default - the kind has none */
  readonly settings?: unknown;
  /** Objects that the custom resource refers to, by the names of the kind's `references`. @default - the kind declares none */
  readonly references?: unknown;
  /** Names of the Secret and the keys that hold the values of the kind's `generated`. @default - the kind declares none */
  readonly generated?: unknown;
  /** The children as they are, of a kind that `observes` them; none of them without a cluster. @default - the kind doesn't */
  readonly observed?: unknown;
  /** Fields that the kind's `status` returned last, of a kind that `remembers` them; none at first. @default - the kind doesn't */
  readonly status?: unknown;
  /** Whether the custom resource is being deleted, of a kind that `finalizes`. @default - the kind doesn't */
  readonly deleted?: unknown;
  /** The object of others, without metadata and status, for the construct of `decorate`. @default - a custom resource is rendered */
  readonly object?: unknown;
  /** The `related` objects, of a kind that `readsRelated`; none of them without a cluster. @default - the kind doesn't */
  readonly related?: unknown;
}

/** File of an admin with a section for each kind: `--policy`, and `--settings`. */
export type AdminFile = 'policy' | 'settings';
export const ADMIN_FILES: readonly AdminFile[] = ['policy', 'settings'];

/** Contents of a file of the admin, by the name of the kind, e.g. `widget`. */
export type Sections = Readonly<Record<string, unknown>>;

/** Files of the admin. */
export interface AdminFiles {
  /** Limits. @default - nothing is forbidden, as where there is no operator */
  readonly policy?: Sections | undefined;
  /** Values of the operator's own configuration. @default - the defaults of each kind */
  readonly settings?: Sections | undefined;
}

/**
 * A cdk8s construct that builds the objects of one custom resource. It must depend on its props alone.
 * @typeParam Parts props beside those of every construct, or their types
 */
export type KindConstruct<Spec, Parts = unknown> = new (
  scope: Construct,
  id: string,
  props: CustomResourceProps<Spec> & Parts,
) => Construct;

/** A referenced object, without what has no meaning for others: its UID, versions, owners and managers. */
export type Referenced = AnyObject & {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'labels' | 'annotations'>;
};

/** References as the construct gets them, whatever their types. */
export type ReferencedByName = Readonly<Record<string, Referenced | readonly Referenced[] | undefined>>;

/** Looks up objects: in the cluster, or among those of files. */
export type Find = (lookup: Lookup, query: Query) => Found;

/** References of the custom resources of one kind. */
export interface KindReferences {
  /** Types that its references are of. */
  readonly lookups: readonly Lookup[];
  /**
   * Returns what a custom resource refers to; undefined while that isn't known yet.
   * @param isOffline permissions of other namespaces aren't asked for
   * @throws OperatorError `ReferenceNotFound`, `ReferenceNotPermitted`, `ReferenceTooLarge`, `ReferenceUnknown`
   */
  resolve(cr: CustomResource, find: Find, isOffline?: boolean): ReferencedByName | undefined;
}

/** Names by which a construct refers to generated values; it never gets the values themselves. */
export interface Generated<Name extends string = string> {
  /** The Secret that holds all values, e.g. for `envFrom` or a volume. */
  readonly secretName: string;
  /** Values for `secretKeyRef`, by name. */
  readonly keys: { readonly [Key in Name]: { readonly name: string; readonly key: Key } };
  /**
   * Hash of the values, keyed by the UID of their Secret, for `checksumAnnotations({ generated })`; without a cluster, or before they
   * are made, `unknown-without-a-cluster`.
   */
  readonly checksum: string;
}

/** Secrets of the values that are generated for the custom resources of one kind. */
export interface KindGenerated {
  /** Returns the Secret of a custom resource, without its values. */
  secretOf(cr: CustomResource): AnyObject;
  /** Returns what the construct gets. @param known the Secret as it is kept */
  propsOf(cr: CustomResource, known?: AnyObject): Generated;
}

/** Inputs of a construct beside its custom resource. */
export interface RenderInputs extends AdminFiles {
  /** @default - the kind has no references */
  readonly references?: ReferencedByName;
  /** @default - as before they are made */
  readonly generated?: Generated;
  /** The children, for a kind that observes them. @default - none is there, or known */
  readonly observed?: readonly AnyObject[];
  /** The related objects, for a kind that reads them. @default - none */
  readonly related?: readonly AnyObject[];
  /** Fields of the status, for a kind that remembers them. @default - none */
  readonly status?: object;
  /** Whether the custom resource is being deleted, for a kind that finalizes. @default false */
  readonly deleted?: boolean;
}

/** Objects of one custom resource, in the order of their application. */
export interface Rendered extends Array<AnyObject> {
  /**
   * Objects that each depends on, also through others, in this order. Not enumerable, so that a rendering equals a
   * list of its objects.
   * @default - none depends on another
   */
  readonly dependencies?: ReadonlyMap<AnyObject, readonly AnyObject[]>;
}

/**
 * Turns a custom resource into objects: in memory, without I/O, always the same for the same input.
 * @throws OperatorError when the resource can't be rendered
 */
export type Render = (kind: RenderedKind, cr: CustomResource, inputs?: RenderInputs) => Rendered;

/** A type of children. */
export interface RenderedType extends ResourceType {
  /**
   * Namespaces beside that of the custom resource in which its objects may be; `*` for all. What is there, or has no namespace, has no
   * owner reference: the operator deletes it once the custom resource is gone.
   * @default - none: children live in the namespace of their custom resource
   */
  readonly namespaces?: readonly string[] | '*';
  /**
   * Fate of its objects when their custom resource is deleted: with `keep` they stay as they are, without an owner, and
   * `reconstruct adopt` hands them over to another one. What is no longer rendered is deleted all the same.
   * @default delete
   */
  readonly onDelete?: 'delete' | 'keep';
  /**
   * Whether an object is deleted and created again where an immutable field has to change, such as the template of a Job. Only for
   * objects that hold nothing of value. With `orphan`, what it owns stays, and the next one takes it over: the Pods of a StatefulSet
   * whose claim templates change.
   * @default false - the custom resource is stalled with the reason `ImmutableField`
   */
  readonly recreate?: boolean | 'orphan';
  /**
   * Paths of fields that are applied as they were rendered when the object was created, such as `.spec` or
   * `.spec.volumeClaimTemplates`. Their drift is corrected. An annotation on the object records them. Not for Secrets.
   * @default - none: what is rendered now is applied
   */
  readonly createOnly?: readonly string[];
}

/** Reports whether objects of a type may be where an owner reference to a custom resource would have them deleted. */
export function isElsewhere(
  owner: ResourceType,
  { namespaced, namespaces }: Pick<RenderedType, 'namespaced' | 'namespaces'>,
): boolean {
  return owner.namespaced && (!namespaced || namespaces !== undefined);
}

/** A type of objects of others, of which custom resources set some fields. */
export interface ContributedType extends ResourceType, Pick<RenderedType, 'namespaces'> {
  /**
   * Paths of fields that are taken from other writers, such as `.spec.replicas`, and given back with the value from before. Autoscalers
   * and other custom resources keep theirs. Not for Secrets.
   * @default - none: a field that others set to another value is refused with the reason `FieldConflict`
   */
  readonly takes?: readonly string[];
}

/** Returns the type of an object of which a kind only sets fields; undefined where its custom resources own it. */
export function contributedType(
  { contributes = [] }: Pick<RenderedKind, 'contributes'>,
  object: TypeRef,
): ContributedType | undefined {
  return contributes.find((type) => groupKind(type) === groupKind(object));
}

/** Reports whether custom resources of a kind have its finalizer, or had it in an earlier release. */
export function hasFinalizers(kind: Pick<RenderedKind, 'finalizes' | 'contributes'>): boolean {
  const { finalizes, contributes = [] } = kind;
  return finalizes !== undefined || contributes.length > 0;
}

/** A kind as far as the renderer needs to know it. */
export interface RenderedKind extends Pick<Kind, 'type' | 'policySchema' | 'settingsSchema'> {
  readonly construct: KindConstruct<never>;
  /** Anything else that the construct makes is refused. */
  readonly children: readonly RenderedType[];
  /** Types of objects of others, of which it sets fields. @default - none */
  readonly contributes?: readonly ContributedType[];
  /** References of its custom resources. @default - nothing */
  readonly references?: KindReferences;
  /** Values that are generated for its custom resources. @default - nothing */
  readonly generated?: KindGenerated;
  /** Whether the construct reads labels and annotations of the custom resource. @default false */
  readonly readsMetadata?: boolean;
  /** Whether its resources are objects of others, of which the construct reads all but the status. @default false */
  readonly decorates?: boolean;
  /** Whether the construct reads the related objects. @default false */
  readonly readsRelated?: boolean;
  /** Whether the construct reads what its children say. @default false */
  readonly observes?: boolean;
  /** Whether the construct reads what the kind's own status said last. @default false */
  readonly remembers?: boolean;
  /** Whether the construct renders the work on deletion, too; with false it did earlier. @default - never */
  readonly finalizes?: boolean;
}

/** Surroundings of a kind's controllers. */
export interface KindContext {
  readonly render: Render;
  /** Files by which custom resources are rendered now: the same object until one changes. @default - none is given */
  readonly inForce?: { readonly current: AdminFiles };
  /** The values of the kind's flags, by name. @default - none is given */
  readonly flags?: FlagValues;
  /**
   * The kind's section of the admin's policy at the start, valid by its `policySchema`. What controllers are made of
   * doesn't follow it: a kind that uses it says so by `policyAtStart`.
   * @default - nothing is restricted
   */
  readonly policy?: unknown;
  /** The namespaces that the operator watches. @default - all */
  readonly namespaces?: readonly string[];
  /** Label selector of the custom resources that the operator looks after. @default - all */
  readonly selector?: string;
  /** Label selector of the namespaces whose custom resources the operator looks after; not beside `namespaces`. @default - all */
  readonly namespaceSelector?: string;
  /** Namespace of the operator itself. @default default */
  readonly operatorNamespace?: string;
  /** Treatment of what another build of a kind would change. @default - all is applied at once */
  readonly upgrades?: Upgrades;
}

/** Holds back what another build of a kind would change of custom resources that weren't edited. */
export interface Upgrades {
  /** Returns the short name of the present build of a kind, of eight hexadecimal digits; nothing where its updates are applied at once. */
  build(kind: string): string | undefined;
  /** Number of the term in which this process leads: in between, another one may have had another build. */
  term(): number;
  /** Handler of `HoldStep`. */
  readonly handler: ForeignHandler;
  /** Rollout of updates by number. @default - each waits for its release */
  readonly rollout?: Rollout;
}

/** An update that goes from custom resource to custom resource by itself. */
export interface Rollout {
  /** Maximum number of custom resources of the present build that aren't ready. */
  readonly atOnce: number;
  /** Time in which one that was ready before has to be ready again; else the rollout is stopped. */
  readonly readyMilliseconds: number;
  /** Returns whether a rollout has been stopped, or since when it was resumed, in milliseconds since the epoch; nothing where neither was. */
  stateOf(
    kind: string,
    build: string,
  ): { readonly isStopped: boolean; readonly resumedAt?: number } | undefined;
  /** Stops a rollout. @param why a sentence without a full stop */
  stop(kind: string, build: string, why: string): void;
}

/** Rendering of a kind's custom resources to manifests. */
export type Rendering =
  /** Rendered one by one, each through the construct. */
  | { readonly each: RenderedKind }
  /** All that are given at once, since they share objects, contradict each other, or make none. */
  | { readonly together: RenderTogether };

/**
 * A kind of custom resource and what is done for it: what `reconstruct.config.mjs` lists and every command works on.
 */
export interface Kind {
  /** The kind in lower case, as `--kinds` takes it; unique together with the group. */
  readonly name: string;
  /** The type of its custom resources. */
  readonly type: ResourceType;
  readonly crd: CustomResourceDefinition;
  /** Schema of the kind's section of a policy. @default - the kind knows no policy, and a section for it is refused */
  readonly policySchema?: StructuralSchema;
  /** Schema of the kind's section of the settings. @default - as `policySchema` */
  readonly settingsSchema?: StructuralSchema;
  /** Whether its controllers depend on its section of the policy, so that a change needs a restart, and says so. @default false */
  readonly policyAtStart?: boolean;
  /** Options of `run`, `synth`, `diff` and `install` for this kind; only of kinds that come with the project. @default - none */
  readonly flags?: readonly KindFlag[];
  readonly rendering: Rendering;
  /** User-facing role that may write its custom resources: `admin` where they reach beyond their namespace. @default edit */
  readonly writers?: 'edit' | 'admin';
  /**
   * The kind as the engine runs it: one controller, or several with a queue each. The rights of the operator follow
   * from what they watch. Nothing begins by it: it is called too to check a policy that has changed.
   * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
   */
  controllers(context: KindContext): readonly Controller[];
}

/**
 * Controllers that have no custom resources: made by `decorate`, or by `defineController` without a CRD. Listed as `controllers` in
 * `reconstruct.config.mjs`.
 */
export interface StandaloneController {
  /** In lower case, as `--kinds` takes it, and unique among the kinds. */
  readonly name: string;
  /** Rendering of an object of others to its children. @default - nothing is rendered */
  readonly renders?: RenderedKind;
  /** See `Kind.controllers`. */
  controllers(context: KindContext): readonly Controller[];
}

/** A kind whose custom resources own what is made of them; made by `defineKind`. */
export interface OwnedKind extends Kind, RenderedKind {
  /** Types that earlier releases rendered; found and pruned, never applied. */
  readonly formerChildren: readonly RenderedType[];
  /** Types that are read for the status, and never written. */
  readonly related: readonly ResourceType[];
}

/** An option of the command line that belongs to one kind. */
export interface KindFlag {
  /** With two dashes and in lower case, e.g. `--ingress-namespace`; unique among all kinds and commands. */
  readonly name: string;
  /** Placeholder of the value in the help, e.g. `namespace`. */
  readonly value: string;
  readonly description: string;
  /** Whether it takes several values, separated by commas or given several times. @default false */
  readonly list?: boolean;
  /** Returns why a value can't be taken, as a sentence. @default - any value can */
  readonly check?: (value: string) => string | undefined;
  /** Schema for callers that can't call `check`, such as a Helm chart; of one value of a list. @default - any string */
  readonly schema?: StructuralSchema;
  /** Forms of a value, where that decides on rights: `Deployment/*`, with `*` for any name. @default - the name alone */
  readonly forms?: readonly string[];
}

/** Flags as given, by name: a value, or a list of them where the flag takes one. */
export type FlagValues = Readonly<Record<string, string | readonly string[]>>;

/**
 * Turns all custom resources of a kind into objects: in memory, without I/O, always the same for the same input, and
 * whatever their order.
 * @param resources valid, and with the defaults of the schema
 */
export type RenderTogether = (resources: readonly CustomResource[], context: KindContext) => RenderedTogether;

/** Outcome of rendering all custom resources of a kind. */
export interface RenderedTogether {
  /** In the order in which they are written. */
  readonly manifests: readonly TogetherManifest[];
  /** Remarks on the resources. @default - nothing */
  readonly findings?: readonly Finding[];
}

/** Objects that are written to one file. */
export interface TogetherManifest {
  /** Their custom resource, which names the file. @default - several: the file is named by the kind */
  readonly of?: CustomResource;
  readonly objects: readonly AnyObject[];
}

/** Remark on the custom resources that were given. */
export interface Finding {
  /** An `error` refuses everything that was given, with exit code 2; a `note` is said on stderr. */
  readonly level: 'error' | 'note';
  /** A sentence: what is wrong, and what to do about it. */
  readonly message: string;
  /** The one that it is about, as given. @default - all of them */
  readonly of?: CustomResource;
  /** Path in it. @default - the whole */
  readonly path?: readonly (string | number)[];
}
