import type { ChangeSet } from './change.js';
import { dateConditions, standardConditions } from './conditions.js';
import type { Condition, Readiness } from './conditions.js';
import type { Controller, Plan, Reader, Watch, DeleteStep } from './controller.js';
import { contentHash, controllerOf, describeRef, groupOf, objectKey, refOf } from './object.js';
import { driftingRender, unsteadiness } from './deterministic.js';
import { OperatorError } from './error.js';
import type { HandOver, HandOverFunction } from './hand-over.js';
import type { Render, RenderedKind } from './kind.js';
import { APPLIED_HASH_ANNOTATION, childrenFieldManager, statusFieldManager } from './names.js';
import type { AnyObject, CustomResource } from './object.js';
import { describeThrown } from './origin.js';
import { keepIdentity, keepStatus } from './projections.js';
import { childReadiness, worstReadiness } from './readiness.js';
import { groupKind } from './resource.js';
import type { ResourceType } from './resource.js';
import {
  correctionEvent,
  failureEvent,
  failureReadiness,
  failuresOf,
  stalledEvent,
  worstOf,
} from './status.js';
import type { Failure, StatusFunction, StatusReport } from './status.js';

/** Functions of a kind beside its construct; the adapter handles kinds of every type. */
export interface OwnFunctions {
  readonly status?: StatusFunction<never, object>;
  readonly handOver?: HandOverFunction<never>;
}

/** Status of a custom resource, and what went wrong. */
interface Told {
  readonly readiness: Readiness;
  /** Time at which it changes although nothing happens. */
  readonly requeueAt?: Date | undefined;
  readonly status: object;
  /** Error of the kind's status function. */
  readonly error: OperatorError | undefined;
  readonly failure: OperatorError | undefined;
}

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** So many custom resources are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** A rendering, and what it was made of. */
interface AcceptedRendering {
  readonly inputs: string;
  readonly policy: unknown;
  readonly hash: string;
}

/** The adapter from "one custom resource, its own children" to the core contract; made by `defineKind`. */
export class OwnedChildren implements Controller {
  readonly name: string;
  readonly kind: string;
  readonly watches: readonly Watch[];
  /** By key, the last rendering that was accepted. */
  private readonly renderings = new Map<string, AcceptedRendering>();

  constructor(
    private readonly owning: OwningKind,
    private readonly render: Render,
    private readonly own: OwnFunctions = {},
  ) {
    this.name = owning.name;
    this.kind = owning.type.kind;
    this.watches = watchesFor(owning);
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const cr = reader.get(this.owning.type, key) as LiveResource | undefined;
    // What is gone or going is cleaned up by the garbage collector, through the owner references.
    if (!cr || cr.metadata.deletionTimestamp) {
      this.renderings.delete(key);
      return NOTHING;
    }
    let [rendered, handOver]: [readonly AnyObject[], readonly HandOver[]] = [[], []];
    let error: OperatorError | undefined;
    try {
      const objects = this.render(this.owning, cr);
      error = this.unsteadiness(cr, objects, this.children(cr, reader));
      if (!error) [rendered, handOver] = [objects, this.handOver(cr, reader)];
    } catch (thrown) {
      error =
        thrown instanceof OperatorError
          ? thrown
          : new OperatorError({
              ...{ reason: 'RenderFailed', message: describeThrown(thrown), isBug: true, cause: thrown },
            });
    }
    const { kind } = this.owning.type;
    const { apiVersion, metadata } = cr;
    const { name, uid = '' } = metadata;
    const owner = { apiVersion, kind: cr.kind, name, uid, controller: true, blockOwnerDeletion: true };
    const regarding = { ...refOf(cr), uid };
    const told = oncePerOutcome((changes) => this.tell(cr, failuresOf(changes, error), reader, now));
    return {
      apply: [
        ...handOver.map((step) => ({ ...step, handOver: true, owner })),
        ...rendered.map((object) => ({
          ...{ object, fieldManager: childrenFieldManager(kind), owner },
          ...(this.isRecreated(object) && { recreate: true }),
        })),
      ],
      delete: error ? [] : this.pruneSteps(cr, rendered, reader),
      status: [
        { target: cr, fieldManager: statusFieldManager(kind), status: (changes) => told(changes).status },
      ],
      events: [
        {
          regarding,
          event: (changes) => {
            const { failure, readiness } = told(changes);
            return failure ? failureEvent(cr, failure) : stalledEvent(cr, readiness);
          },
        },
        { regarding, event: correctionEvent },
      ],
      requeueAt: (changes) => told(changes).requeueAt,
      // What is to be handed over may depend on what was made.
      ...(this.own.handOver && {
        again: (changes) => hasMade(changes) && this.handOver(cr, reader).length > 0,
      }),
      ...(error && { error }),
      statusError: (changes) => told(changes).error,
    };
  }

  /**
   * Returns why the same custom resource would be applied over and over. One that is edited, or under another policy, is
   * rendered twice, unless its children have been made of the same rendering; so is one that is new, but in a burst only
   * before its second write. One whose inputs are those of the accepted rendering has to render to the same again, which also
   * finds what changes with the time of day. Nothing is known after a restart, so a rendering that was refused is checked again.
   */
  private unsteadiness(
    cr: LiveResource,
    rendered: readonly AnyObject[],
    children: readonly AnyObject[],
  ): OperatorError | undefined {
    const key = keyOf(cr);
    // Not the generation, which stays where another schema of the CRD changes the spec.
    const inputs = `${cr.metadata.uid} ${contentHash(cr.spec ?? {})}`;
    const policy = this.render.policyInForce?.();
    const hash = rendered.map(contentHash).join();
    const last = this.renderings.get(key);
    const isKnown = last?.inputs === inputs && last.policy === policy;
    if (isKnown && last.hash === hash) return undefined;
    const owner = describeRef(refOf(cr));
    const applied = new Set(children.map(({ metadata }) => metadata.annotations?.[APPLIED_HASH_ANNOTATION]));
    const isApplied =
      rendered.length === children.length && rendered.every((object) => applied.has(contentHash(object)));
    const isNew = children.length === 0 && this.renderings.size >= CHECKED_BEFORE_CREATION;
    const isTrusted = !isKnown && (isApplied || isNew);
    const error = isTrusted ? undefined : unsteadiness(owner, rendered, () => this.render(this.owning, cr));
    if (error ?? isKnown) return error ?? driftingRender(owner);
    this.renderings.set(key, { inputs, policy, hash });
    return undefined;
  }

  private handOver(cr: LiveResource, reader: Reader): readonly HandOver[] {
    const { handOver } = this.own;
    return handOver ? handOver({ cr: cr as never, children: this.children(cr, reader) }) : [];
  }

  private isRecreated(object: AnyObject): boolean {
    return this.owning.children.some((type) => type.recreate && groupKind(type) === groupKind(object));
  }

  /** Returns what the custom resource controls and no longer renders. */
  private pruneSteps(cr: LiveResource, rendered: readonly AnyObject[], reader: Reader): DeleteStep[] {
    const wanted = new Set(rendered.map((object) => `${groupKind(object)} ${keyOf(object)}`));
    return [...this.owning.children, ...this.owning.formerChildren]
      .flatMap((type) => reader.controlledBy(type, cr.metadata.uid ?? ''))
      .filter((child) => !child.metadata.deletionTimestamp)
      .filter((child) => !wanted.has(`${groupKind(child)} ${keyOf(child)}`))
      .map((object) => ({ object }));
  }

  /** A failure stands in the conditions, but what the children say stays of use beside it. */
  private tell(cr: LiveResource, failures: readonly Failure[], reader: Reader, now: Date): Told {
    const children = this.children(cr, reader);
    const worst = worstOf(failures);
    let report: StatusReport<object> = {};
    let error: OperatorError | undefined;
    try {
      const related = (this.owning.related ?? []).flatMap((type) => reader.mappedTo(type, keyOf(cr)));
      if (this.own.status) report = this.own.status({ cr: cr as never, children, related, failures, now });
      requireKnownFields(report.fields ?? {}, this.owning.statusFields);
    } catch (thrown) {
      report = {};
      error = statusFailed(cr, thrown, worst !== undefined);
    }
    const failure = worst ?? error;
    const { fields, conditions = [], requeueAt } = report;
    const readiness = failure
      ? failureReadiness(failure)
      : (report.readiness ?? worstReadiness(children.map(childReadiness)));
    const { generation } = cr.metadata;
    const all = [...standardConditions(readiness), ...conditions];
    const status = {
      ...fields,
      ...(generation !== undefined && { observedGeneration: generation }),
      conditions: dateConditions(all, cr.status?.conditions ?? [], now, generation),
    };
    return { readiness, requeueAt, status, error, failure };
  }

  private children(cr: LiveResource, reader: Reader): AnyObject[] {
    return this.owning.children.flatMap((type) => reader.controlledBy(type, cr.metadata.uid ?? ''));
  }
}

/** The status is asked for several times with the same outcome, and the kind's function is called once. */
function oncePerOutcome<T>(compute: (changes: ChangeSet) => T): (changes: ChangeSet) => T {
  let known: { readonly changes: ChangeSet; readonly value: T } | undefined;
  return (changes) => {
    if (known?.changes !== changes) known = { changes, value: compute(changes) };
    return known.value;
  };
}

function hasMade(changes: ChangeSet): boolean {
  return changes.some(({ action }) => action === 'created' || action === 'recreated');
}

/** The API server drops what the schema doesn't list, without a word. @param known undefined where any field may be there */
function requireKnownFields(fields: object, known: readonly string[] | undefined): void {
  const unknown = known && Object.keys(fields).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new Error(
    `it has a field ${unknown}, of which the schema knows nothing; add ${unknown}: { type: 'string' }, or whatever it is, to "status" of defineCrd, or to the properties of the status in the CRD`,
  );
}

/** What is missing now, as the status of a child that was made a moment ago, may be there at the next try. */
function statusFailed(cr: LiveResource, thrown: unknown, besideFailure: boolean): OperatorError {
  return new OperatorError({
    reason: 'StatusFailed',
    message: `The status of ${describeRef(refOf(cr))} can't be computed: ${describeThrown(thrown)}`,
    // Beside another failure, that one says when to try again.
    retry: besideFailure ? 'onChange' : 'backoff',
    isBug: true,
    cause: thrown,
  });
}

interface LiveStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Partial<Condition>[];
}

/** A custom resource as the cluster has it, as far as its own status is read. */
type LiveResource = CustomResource<unknown, LiveStatus>;

type Keep = (object: AnyObject) => Readonly<Record<string, unknown>> | undefined;

/** A type of children, and how its objects are treated. */
export interface ChildType extends ResourceType {
  /** See `ApplyStep.recreate`. @default false */
  readonly recreate?: boolean;
  /** See `Watch.optional`. @default false */
  readonly optional?: boolean;
  /** See `Watch.claims`. @default - none */
  readonly claims?: (object: AnyObject) => readonly string[];
  /** @default - identity, our annotations and the status */
  readonly keep?: Keep;
}

/** A type of objects that are read for the status. */
export interface RelatedType extends ResourceType {
  readonly selector: string;
  readonly keep: Keep;
  readonly nameOf: (object: AnyObject) => string | undefined;
}

/** A kind without what the adapter doesn't need. */
export interface OwningKind extends RenderedKind {
  readonly name: string;
  readonly children: readonly ChildType[];
  readonly formerChildren: readonly ResourceType[];
  /** @default - none */
  readonly related?: readonly RelatedType[];
  /** The fields that the schema of the status has. @default - any */
  readonly statusFields?: readonly string[];
}

/** Returns the watches of a kind whose custom resources own their children; the kind itself first. */
export function watchesFor(kind: OwningKind): Watch[] {
  const owned = (type: ResourceType): Watch => ({ type, mapsTo: (object) => ownersKey(kind.type, object) });
  return [
    {
      type: kind.type,
      keep: keepWithoutManagedFields,
      // An owner reference that blocks the owner's deletion may only be set by who may finalize the owner.
      // https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement
      writes: ['status', 'finalizers'],
      mapsTo: (cr) => [keyOf(cr)],
    },
    ...kind.children.map((type) => ({
      ...owned(type),
      writes: ['create', 'patch', 'delete'] as const,
      ...(type.optional && { optional: true }),
      ...(type.claims && { claims: type.claims }),
      ...(type.keep && { keep: projection(type.keep, keepStatus) }),
    })),
    // Of what isn't installed any more, nothing is left to be pruned.
    ...kind.formerChildren.map((type) => ({
      ...owned(type),
      optional: true,
      writes: ['delete'] as const,
    })),
    ...(kind.related ?? []).map((type) => ({
      type,
      selector: type.selector,
      readOnly: true,
      keep: projection(type.keep, keepRelated),
      mapsTo: (object: AnyObject) => relatedKey(kind.type, type, object),
    })),
  ];
}

function keyOf({ metadata }: Pick<AnyObject, 'metadata'>): string {
  return objectKey(metadata.namespace, metadata.name);
}

/** The custom resource that controls the object, whatever version of its API the owner reference was written in. */
function ownersKey({ apiVersion, kind, namespaced }: ResourceType, object: AnyObject): string[] {
  const owner = controllerOf(object);
  if (owner?.kind !== kind) return [];
  if (groupOf(owner.apiVersion) !== groupOf(apiVersion)) return [];
  return [objectKey(namespaced ? object.metadata.namespace : undefined, owner.name)];
}

function relatedKey({ namespaced }: ResourceType, { nameOf }: RelatedType, object: AnyObject): string[] {
  const name = nameOf(object);
  return name ? [objectKey(namespaced ? object.metadata.namespace : undefined, name)] : [];
}

/** Custom resources are kept whole, for the renderer, but for the bookkeeping that nobody reads. */
function keepWithoutManagedFields(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

/** What `nameOf` goes by too: the labels. */
function keepRelated(object: AnyObject): AnyObject {
  const identity = keepIdentity(object);
  const { labels } = object.metadata;
  return labels ? { ...identity, metadata: { ...identity.metadata, labels } } : identity;
}

type Projection = NonNullable<Watch['keep']>;

/** One function for each `keep`: kinds that keep the same share a store. */
const projections = new WeakMap<Keep, Map<Projection, Projection>>();

/** The object as `base` keeps it, and what `keep` returns beside that. */
function projection(keep: Keep, base: Projection): Projection {
  const known = projections.get(keep) ?? new Map<Projection, Projection>();
  projections.set(keep, known);
  const made = known.get(base) ?? combined(keep, base);
  known.set(base, made);
  return made;
}

function combined(keep: Keep, base: Projection): Projection {
  return (object) => {
    const more = keep(object);
    if (more === undefined) return undefined;
    const kept = base(object);
    if (!kept) return undefined;
    const metadata = { ...(more.metadata as object | undefined), ...kept.metadata };
    return { ...more, ...kept, metadata };
  };
}
