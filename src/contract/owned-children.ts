import type { Action, ChangeSet } from './change.js';
import { dateConditions, standardConditions } from './conditions.js';
import type { Condition, ConditionProps, Readiness } from './conditions.js';
import { DRIFT_MODES } from './controller.js';
import type { ApplyStep, Controller, DriftMode, Lookup, Plan, Reader, Watch } from './controller.js';
import { contentHash, controllerOf, describeRef, keyOf, objectId, objectKey, refOf } from './object.js';
import { driftingRender, unsteadiness } from './deterministic.js';
import { isGenerated, secretType } from './generated.js';
import { OperatorError } from './error.js';
import { parseLabelSelector, selects } from './label-selector.js';
import type { LabelSelector } from './label-selector.js';
import type { HandOver, HandOverFunction } from './hand-over.js';
import type { Render, Rendered, RenderedKind, RenderInputs } from './kind.js';
import {
  APPLIED_HASH_ANNOTATION,
  childrenFieldManager,
  DRIFT_ANNOTATION,
  PAUSED_ANNOTATION,
  statusFieldManager,
} from './names.js';
import type { AnyObject, CustomResource } from './object.js';
import { observedOf, Settling } from './observed.js';
import { waitingReadiness, waitOf } from './order.js';
import { describeThrown } from './origin.js';
import { keepIdentity, keepStatus } from './projections.js';
import { childReadiness, worstReadiness } from './readiness.js';
import { groupKind } from './resource.js';
import type { ResourceType } from './resource.js';
import {
  driftedCondition,
  driftEvent,
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

/** Until what is referred to is known, as a rule a few milliseconds, it is looked again so often. */
const UNKNOWN_MILLISECONDS = 2_000;

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** Status of a plan after which the next one follows at once. */
const UNFINISHED = {
  readiness: worstReadiness([]),
  requeueAt: undefined,
  status: undefined,
  error: undefined,
  failure: undefined,
};

/** What a plan may have changed of what its construct reads. */
const WRITTEN: ReadonlySet<Action> = new Set(['created', 'configured', 'corrected', 'recreated', 'deleted']);

/** So many custom resources are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** The adapter from "one custom resource, its own children" to the core contract; made by `defineKind`. */
export class OwnedChildren implements Controller {
  readonly name: string;
  readonly kind: string;
  readonly watches: readonly Watch[];
  readonly lookups?: readonly Lookup[];
  private readonly selected?: LabelSelector;
  /** By key, the last rendering that was accepted, and what it was made of. */
  private readonly renderings = new Map<string, { inputs: string; policy: unknown; hash: string }>();

  private readonly settling = new Settling();
  private readonly mayHaveSecrets: boolean;

  constructor(
    private readonly owning: OwningKind,
    private readonly render: Render,
    private readonly own: OwnFunctions = {},
    /** Of its custom resources. */
    selector?: string,
  ) {
    this.name = owning.name;
    this.kind = owning.type.kind;
    const [first, ...others] = watchesFor(owning) as [Watch, ...Watch[]];
    this.watches = [selector === undefined ? first : { ...first, selector }, ...others];
    if (selector !== undefined) this.selected = parseLabelSelector(selector);
    if (owning.references) this.lookups = owning.references.lookups;
    const types = [...owning.children, ...owning.formerChildren].map(groupKind);
    this.mayHaveSecrets = types.includes(groupKind(secretType));
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const cr = reader.get(this.owning.type, key) as LiveResource | undefined;
    // What is gone or going is cleaned up by the garbage collector, through the owner references.
    if (!cr || cr.metadata.deletionTimestamp) {
      this.renderings.delete(key);
      this.settling.forget(key);
      return NOTHING;
    }
    // The answer to a write may come after the watch has reported that it isn't selected any more.
    if (this.selected && !selects(this.selected, cr.metadata.labels ?? {})) return NOTHING;
    const { name, uid = '' } = cr.metadata;
    const owned = (types: readonly ResourceType[]): AnyObject[] => {
      const all = types.flatMap((type) => reader.controlledBy(type, uid));
      return this.mayHaveSecrets ? all.filter((object) => !isGenerated(object)) : all;
    };
    const handOver = (of: readonly AnyObject[]): readonly HandOver[] =>
      this.own.handOver?.({ cr: cr as never, children: of }) ?? [];
    const children = owned(this.owning.children);
    let [rendered, handedOver]: [Rendered, readonly HandOver[]] = [[], []];
    const { generated } = this.owning;
    const secret = generated && reader.get(secretType, generated.keyOf(cr));
    const missing = generated?.missing(cr, secret);
    let error: OperatorError | undefined;
    let control: Control = {};
    const observed = this.owning.observes ? observedOf(children) : undefined;
    try {
      if (cr.metadata.annotations) control = controlOf(cr.metadata.annotations);
      const references = this.owning.references?.resolve(cr, (...query) => reader.find(...query));
      if (this.owning.references && !references)
        return { ...NOTHING, requeueAt: new Date(now.getTime() + UNKNOWN_MILLISECONDS) };
      const inputs = (references ?? generated ?? observed) && {
        ...(references && { references }),
        ...(generated && { generated: generated.propsOf(cr, secret) }),
        ...(observed && { observed }),
      };
      const course = observed && this.courseOf(cr, inputs);
      if (course) this.settling.require(key, course.edit, course.policy);
      const objects = this.render(this.owning, cr, inputs);
      if (!missing) error = this.unsteadiness(cr, objects, children, inputs);
      if (course && !missing && !error) this.settling.note(key, course, describeRef(refOf(cr)), objects, now);
      if (!error) [rendered, handedOver] = [objects, handOver(children)];
    } catch (thrown) {
      const bug = { reason: 'RenderFailed', message: describeThrown(thrown), isBug: true, cause: thrown };
      error = thrown instanceof OperatorError ? thrown : new OperatorError(bug);
    }
    const { kind } = this.owning.type;
    const owner = {
      apiVersion: cr.apiVersion,
      kind: cr.kind,
      name,
      uid,
      controller: true,
      blockOwnerDeletion: true,
    };
    const regarding = { ...refOf(cr), uid };
    const wanted = new Set(rendered.map(objectId));
    const { isPaused = false, drift } = control;
    // The values come first, so that Pods aren't replaced at once for their checksum.
    const generate = error || isPaused ? undefined : missing;
    const pause = isPaused ? pauseOf(rendered, children) : undefined;
    // In a pause nothing is applied, so nothing waits.
    const dependencies = isPaused ? undefined : rendered.dependencies;
    const computed = oncePerOutcome((changes) => {
      if (generate && changes.every(({ action }) => action !== 'failed')) return UNFINISHED;
      const left = changes.every(({ action }) => action === 'unchanged')
        ? children
        : owned(this.owning.children);
      const waiting = dependencies && waitingReadiness(cr, dependencies, left, now);
      const isDrifted = changes.some(({ action }) => action === 'drifted');
      const held = { pause, waiting, drifted: isDrifted ? driftedCondition(changes) : undefined };
      return this.computeStatus(cr, failuresOf(changes, error), left, reader, now, held);
    });
    const fieldManager = childrenFieldManager(kind);
    let apply: ApplyStep[] = [
      ...handedOver.map((step) => ({ ...step, handOver: true, owner })),
      ...rendered.map((object) => ({
        ...{ object, fieldManager, owner },
        ...(this.isRecreated(object) && { recreate: true }),
        ...(dependencies?.has(object) && {
          waitsFor: () => waitOf(object, dependencies, owned(this.owning.children)),
        }),
        ...(drift && { drift }),
      })),
    ];
    if (generated && generate) apply = [{ object: generated.secretOf(cr), fieldManager, owner, generate }];
    if (isPaused) apply = [];
    return {
      apply,
      delete:
        error || isPaused || generate
          ? []
          : [...children, ...owned(this.owning.formerChildren)]
              .filter((child) => !child.metadata.deletionTimestamp && !wanted.has(objectId(child)))
              .map((object) => ({ object })),
      status: [
        {
          ...{ target: cr, fieldManager: statusFieldManager(kind) },
          status: (changes) => computed(changes).status,
        },
      ],
      events: [
        {
          regarding,
          event: (changes) => {
            const { failure, readiness } = computed(changes);
            return failure ? failureEvent(cr, failure) : stalledEvent(cr, readiness);
          },
        },
        { regarding, event: (changes) => driftEvent(cr, changes) },
        ...(generate && generated
          ? [{ regarding, event: (changes: ChangeSet) => generated.eventOf(cr, secret, changes) }]
          : []),
      ],
      requeueAt: (changes) => computed(changes).requeueAt,
      // What is to be handed over, or is rendered next, may depend on what was created.
      ...((this.own.handOver ?? generate ?? observed) &&
        !isPaused && {
          again: (changes) =>
            generate
              ? changes.some(({ action }) => action === 'created' || action === 'configured')
              : (changes.some(({ action }) => action === 'created' || action === 'recreated') &&
                  handOver(owned(this.owning.children)).length > 0) ||
                (observed !== undefined &&
                  changes.some(({ action }) => WRITTEN.has(action)) &&
                  contentHash(observed) !== contentHash(observedOf(owned(this.owning.children)))),
        }),
      ...(error && { error }),
      statusError: (changes) => computed(changes).error,
      ...(isPaused && { explain: () => [{ of: refOf(cr), summary: PAUSED_SUMMARY, differs: false }] }),
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
    around: RenderInputs | undefined,
  ): OperatorError | undefined {
    const key = keyOf(cr);
    // Not the generation, which stays where another schema of the CRD changes the spec.
    const inputs = `${cr.metadata.uid} ${contentHash(cr.spec ?? {})}${around ? contentHash(around) : ''}`;
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
    const error = isTrusted
      ? undefined
      : unsteadiness(owner, rendered, () => this.render(this.owning, cr, around));
    if (error ?? isKnown) return error ?? driftingRender(owner);
    this.renderings.set(key, { inputs, policy, hash });
    return undefined;
  }

  /** Returns what renderings have in common that differ by what children say alone. */
  private courseOf({ metadata, spec }: LiveResource, inputs: RenderInputs = {}) {
    const { observed, ...others } = inputs;
    const edit = `${metadata.uid} ${contentHash(spec ?? {})} ${contentHash(others)}`;
    return { edit, policy: this.render.policyInForce?.() };
  }

  private isRecreated(object: AnyObject): boolean {
    return this.owning.children.some((type) => type.recreate && groupKind(type) === groupKind(object));
  }

  /** A failure stands in the conditions, but what the children say stays of use beside it. */
  private computeStatus(
    cr: LiveResource,
    failures: readonly Failure[],
    children: readonly AnyObject[],
    reader: Reader,
    now: Date,
    { pause, waiting, drifted }: Held,
  ) {
    const worst = worstOf(failures);
    let report: StatusReport<object> = {};
    let error: OperatorError | undefined;
    try {
      const related = (this.owning.related ?? []).flatMap((type) => reader.mappedTo(type, keyOf(cr)));
      if (this.own.status) report = this.own.status({ cr: cr as never, children, related, failures, now });
      requireKnownFields(report.fields ?? {}, this.owning.statusFields);
    } catch (thrown) {
      report = {};
      error = new OperatorError({
        reason: 'StatusFailed',
        message: `The status of ${describeRef(refOf(cr))} can't be computed: ${describeThrown(thrown)}`,
        // What is missing now, as the status of a child that was created a moment ago, may be there at the next try; beside
        // another failure, that one says when to try again.
        retry: worst ? 'onChange' : 'backoff',
        ...{ isBug: true, cause: thrown },
      });
    }
    const failure = worst ?? error;
    const { fields, conditions = [], requeueAt } = report;
    const judged = failure
      ? failureReadiness(failure)
      : (pausedReadiness(pause) ?? report.readiness ?? worstReadiness(children.map(childReadiness)));
    const readiness = waiting && !failure ? worstReadiness([waiting.readiness, judged]) : judged;
    const until = waiting?.requeueAt;
    // An edit that waits has not been observed, so tools don't take the state of its children for that of the edit.
    const generation = pause ? observedGenerationOf(cr) : cr.metadata.generation;
    const held = [...(pause ? [pausedCondition(cr)] : []), ...(drifted ? [drifted] : [])];
    const isOther = ({ type }: ConditionProps): boolean => !held.some((condition) => condition.type === type);
    const others = held.length > 0 ? conditions.filter(isOther) : conditions;
    const all = [...standardConditions(readiness), ...held, ...others];
    const status = {
      ...fields,
      ...(generation !== undefined && { observedGeneration: generation }),
      conditions: dateConditions(all, cr.status?.conditions ?? [], now, generation),
    };
    const isFirst = until && (!requeueAt || until < requeueAt);
    return { readiness, requeueAt: isFirst ? until : requeueAt, status, error, failure };
  }
}

/** What the annotations of a custom resource ask for. */
interface Control {
  /** @default false */
  readonly isPaused?: boolean;
  /** @default - as for all custom resources */
  readonly drift?: DriftMode;
}

/** What is held back of a custom resource, as its status reports it. */
interface Held {
  readonly pause: Pause | undefined;
  /** Why it waits for some of its children. */
  readonly waiting: ReturnType<typeof waitingReadiness> | undefined;
  readonly drifted: ConditionProps | undefined;
}

/** Pause of a custom resource. */
interface Pause {
  /** The first object that is not created for it. */
  readonly missing: AnyObject | undefined;
}

function pauseOf(rendered: readonly AnyObject[], children: readonly AnyObject[]): Pause {
  const present = new Set(children.map(objectId));
  return { missing: rendered.find((object) => !present.has(objectId(object))) };
}

const PAUSED_SUMMARY = `is paused: nothing would be done; remove the annotation ${PAUSED_ANNOTATION} to go on`;

type Annotations = NonNullable<AnyObject['metadata']['annotations']>;

/** @throws OperatorError `InvalidAnnotation` */
function controlOf(annotations: Annotations): Control {
  const drift = annotated(annotations, DRIFT_ANNOTATION, DRIFT_MODES);
  return { isPaused: pausedBy(annotations), ...(drift && { drift }) };
}

/** Reports whether a custom resource is paused. @throws OperatorError `InvalidAnnotation` */
export function pausedBy(annotations: Annotations = {}): boolean {
  return annotated(annotations, PAUSED_ANNOTATION, ['true', 'false']) === 'true';
}

function annotated<T extends string>(
  annotations: Annotations,
  name: string,
  known: readonly T[],
): T | undefined {
  const value = annotations[name];
  if (value === undefined) return undefined;
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  throw invalidAnnotation(name, value, known);
}

function invalidAnnotation(name: string, value: string, known: readonly string[]): OperatorError {
  const path = ['metadata', 'annotations', name];
  const message = `metadata.annotations[${JSON.stringify(name)}]: ${JSON.stringify(value)} is none of ${known.join(', ')}; write one of them, or remove the annotation. Nothing is written until then`;
  return new OperatorError({ reason: 'InvalidAnnotation', path, message });
}

function pausedReadiness(pause: Pause | undefined): Readiness | undefined {
  if (!pause?.missing) return undefined;
  const message = `${describeRef(refOf(pause.missing))} is missing, and is not created during a pause`;
  return { phase: 'progressing', reason: 'Paused', message };
}

function pausedCondition(cr: LiveResource): ConditionProps {
  const { generation } = cr.metadata;
  const waiting = generation === observedGenerationOf(cr) ? '' : `; generation ${generation} waits`;
  const message = `Nothing but this status is written${waiting}; remove the annotation ${PAUSED_ANNOTATION} to go on`;
  return { type: 'Paused', status: 'True', reason: 'Paused', message };
}

/** The schema's default of -1 means none. */
function observedGenerationOf({ status }: LiveResource): number | undefined {
  const { observedGeneration = -1 } = status ?? {};
  return observedGeneration < 0 ? undefined : observedGeneration;
}

/** Computes the status once for its several readers. */
function oncePerOutcome<T>(compute: (changes: ChangeSet) => T): (changes: ChangeSet) => T {
  let known: { readonly changes: ChangeSet; readonly value: T } | undefined;
  return (changes) => {
    if (known?.changes !== changes) known = { changes, value: compute(changes) };
    return known.value;
  };
}

/** The API server drops what the schema doesn't list, without a word. @param known undefined where any field may be there */
function requireKnownFields(fields: object, known: readonly string[] | undefined): void {
  const unknown = known && Object.keys(fields).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new Error(
    `it has a field ${unknown}, of which the schema knows nothing; add ${unknown}: { type: 'string' }, or whatever it is, to "status" of defineCrd, or to the properties of the status in the CRD`,
  );
}

type LiveResource = CustomResource<
  unknown,
  { readonly conditions?: readonly Partial<Condition>[]; readonly observedGeneration?: number }
>;

type Keep = (object: AnyObject) => Readonly<Record<string, unknown>> | undefined;

/** A type of children, and how its objects are treated. */
export interface ChildType extends ResourceType, Pick<Watch, 'optional' | 'claims'> {
  /** See `ApplyStep.recreate`. @default false */
  readonly recreate?: boolean;
  /** @default - identity, our annotations and the status */
  readonly keep?: Keep;
}

interface RelatedType extends ResourceType {
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
  const watches: Watch[] = [
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
      mapsTo: (object: AnyObject) => keysIn(kind.type, object, type.nameOf(object)),
    })),
  ];
  if (!kind.generated) return watches;
  const secrets = watches.find(({ type }) => groupKind(type) === groupKind(secretType));
  const { selector } = kind.generated;
  const watch = kind.generated.watch(secrets ?? { ...owned(secretType), selector });
  return [...watches.filter((other) => other !== secrets), watch];
}

/** Returns the key of the custom resource that controls the object, whatever version its owner reference was written in. */
function ownersKey(type: ResourceType, object: AnyObject): string[] {
  const owner = controllerOf(object);
  return owner && groupKind(owner) === groupKind(type) ? keysIn(type, object, owner.name) : [];
}

function keysIn({ namespaced }: ResourceType, { metadata }: AnyObject, name: string | undefined): string[] {
  return name ? [objectKey(namespaced ? metadata.namespace : undefined, name)] : [];
}

/** Custom resources are kept whole, for the renderer, but for the bookkeeping that nothing reads. */
function keepWithoutManagedFields(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

/** Keeps the labels too, which `nameOf` reads. */
function keepRelated(object: AnyObject): AnyObject {
  const identity = keepIdentity(object);
  const { labels } = object.metadata;
  return labels ? { ...identity, metadata: { ...identity.metadata, labels } } : identity;
}

type Projection = (object: AnyObject) => AnyObject | undefined;

/** One function for each `keep`: kinds that keep the same share a store. */
const projections = new WeakMap<Keep, Map<typeof keepStatus, Projection>>();

/** Returns the object as `base` keeps it, and what `keep` returns beside that. */
function projection(keep: Keep, base: typeof keepStatus): Projection {
  const known = projections.get(keep) ?? new Map<typeof keepStatus, Projection>();
  projections.set(keep, known);
  const combined: Projection = (object) => {
    const more = keep(object);
    if (more === undefined) return undefined;
    const kept = base(object);
    const metadata = { ...(more.metadata as object | undefined), ...kept.metadata };
    return { ...more, ...kept, metadata };
  };
  const projected = known.get(base) ?? combined;
  known.set(base, projected);
  return projected;
}
