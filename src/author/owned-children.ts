import type { Action, ChangeSet } from '../contract/change.js';
import type { ConditionProps, Readiness } from '../contract/conditions.js';
import { controlOf } from '../values/control.js';
import type { Control } from '../values/control.js';
import type { Controller, Lookup, Reader, Watch } from '../contract/controller.js';
import { NOTHING } from '../contract/plan.js';
import type {
  Conclusion,
  ContributeStep,
  EventProps,
  FinalizerStep,
  ForeignHandler,
  HoldStep,
  OwnStep,
  Plan,
  Step,
} from '../contract/plan.js';
import { Renderer } from '../render/renderer.js';
import { isInReach, settingsOf } from '../render/synthesize.js';
import type { OperatorError } from '../contract/error.js';
import { secretType } from '../values/generated.js';
import type { GeneratedSecrets, Missing } from './generated.js';
import type { HandOver, HandOverFunction } from './hand-over.js';
import { contributedType, hasFinalizers, isElsewhere } from '../contract/kind.js';
import type {
  ContributedType,
  KindContext,
  KindReferences,
  ReferencedByName,
  Rendered,
  RenderedKind,
  RenderedType,
} from '../contract/kind.js';
import { parseLabelSelector, selects } from '../values/label-selector.js';
import type { LabelSelector } from '../values/label-selector.js';
import { deletingReadiness, leftToDelete, NOTHING_LEFT, undoneEvent } from './deletion.js';
import {
  APPLIED_HASH_ANNOTATION,
  childrenFieldManager,
  CREATED_ANNOTATION,
  finalizerOf,
  GIVE_UP_ANNOTATION,
  isHashAnnotation,
  PAUSED_ANNOTATION,
  recordedFieldManager,
  statusFieldManager,
} from '../contract/names.js';
import { setLatest } from '../values/latest.js';
import { asRecorded } from '../values/created.js';
import { canonicalJson, contentHash } from '../values/json.js';
import { controllerOf, keyOf, objectId, objectKey, ownerOf, refOf, splitKey } from '../contract/object.js';
import type { AnyObject, KubernetesObject, OwnerReference } from '../contract/object.js';
import { waitingOf } from './order.js';
import { withoutData } from './references.js';
import { operatorErrorOf, reading } from '../values/origin.js';
import {
  keepIdentity,
  keepObserved,
  keepStatus,
  observedOf,
  ownerUidOf,
  recordOf,
  rememberedOf,
  requireReadable,
  unreadableFor,
  withKeptStatus,
} from '../values/projections.js';
import type { AppliedRecord, IsCurrent } from '../values/projections.js';
import { keepsTroubles, withTroubles } from './pods.js';
import { childReadiness, worstReadiness } from '../values/readiness.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import {
  asPaused,
  dateConditions,
  driftedCondition,
  driftEvent,
  failureEvent,
  failureReadiness,
  observedGenerationOf,
  pausedCondition,
  pausedReadiness,
  reportOf,
  SETTLING,
  stalledEvent,
  standardConditions,
  worstOf,
} from './status.js';
import type { Failure, LiveResource, RelatedTypeProps, StatusFunction, StatusReport } from './status.js';
import type { ChildTypeProps } from './listed-types.js';
import { namespaceType } from './namespace-selector.js';
import type { Concluded } from './rollout.js';
import { NO_BUILD, standing, Updates } from './updates.js';
import type { Update } from './updates.js';

/** Functions of a kind beside its construct; the adapter handles kinds of every type. */
export interface OwnFunctions {
  readonly status?: StatusFunction<never, object>;
  readonly handOver?: HandOverFunction<never>;
}

/** Interval of looks until what is referred to is known, which usually takes a few milliseconds. */
const UNKNOWN_MILLISECONDS = 2_000;

/** Maximum number of objects of which the last warning is remembered. */
const MAX_WARNINGS = 1_000;

/** Actions that may have changed what the construct of a plan reads. */
const WRITTEN: readonly Action[] = ['created', 'configured', 'corrected', 'recreated', 'deleted'];

/** Custom resource at one time. */
interface Pass {
  readonly cr: LiveResource;
  readonly owner: OwnerReference;
  /** Objects of its children's types before the plan, as far as it controls them, and whatever wrote them. */
  readonly controlled: readonly AnyObject[];
  /** Controlled objects that its field manager has applied. */
  readonly own: readonly AnyObject[];
  readonly reader: Reader;
  readonly now: Date;
  /** Whether it is being deleted, and its kind renders the work that is left. @default false */
  readonly isDeleted?: boolean;
  /** Fields that the kind's status returned last, or those of `news`. @default - the kind doesn't remember them */
  readonly remembered?: object;
  /** Status whose fields differ from those that are stored. @default - none does */
  readonly news?: StatusReport<object>;
}

/** Desired state. */
interface Desired {
  readonly control: Control;
  /** Objects to be applied: none where there is an error, but the last rendering of what never settles. */
  readonly rendered: Rendered;
  /** Objects that the construct was given. */
  readonly observed?: readonly AnyObject[];
  /** Reports which of them are as they are rendered now. @default - the construct doesn't observe them, or couldn't be rendered */
  readonly isCurrent?: IsCurrent;
  /** Objects that the custom resource refers to. @default - none, or one is missing */
  readonly references?: ReferencedByName;
  readonly handedOver: readonly HandOver[];
  readonly error?: OperatorError;
  /** Whether an earlier rendering is applied until it is known why the later ones differ. @default false */
  readonly isHeld?: boolean;
  /** Time at which another rendering may count. @default - unknown */
  readonly requeueAt?: Date;
  /** Values that are made before anything else, so that Pods aren't replaced at once for their checksum. */
  readonly generate?: Missing;
  /** The Secret that has the values, as it was before. */
  readonly secret?: AnyObject;
  /** Treatment of what another build would change. @default - updates aren't held */
  readonly update?: Update;
}

/** Parts of a status, beside the desired state. */
interface StatusParts {
  readonly children: readonly AnyObject[];
  /** Status in the words of the kind. */
  readonly report: StatusReport<object>;
  readonly failure: OperatorError | undefined;
  readonly drifted?: ConditionProps | undefined;
  /** Outcome of the steps. @default - the present generation has yet to be carried out */
  readonly changes?: ChangeSet;
}

/** Steps of a plan, and how those are treated that another build would change. */
interface Treated {
  readonly steps: Step[];
  readonly update?: Update;
}

/** The adapter from "one custom resource, its own children" to the core contract; made by `defineKind`. */
export class OwnedChildren implements Controller {
  readonly name: string;
  readonly kind: string;
  private readonly fieldManager: string;
  private readonly statusManager: string;
  readonly watches: readonly Watch[];
  readonly handlers?: readonly ForeignHandler[];
  readonly lookups?: readonly Lookup[];
  private readonly selected?: LabelSelector;
  private readonly renderer: Renderer;
  private readonly childTypes: ReadonlyMap<string, ChildType>;
  /** Types of which objects may have their owner recorded alone. */
  private readonly recorded: readonly RenderedType[];
  private readonly kept: ReadonlySet<string>;
  /** Last warnings about objects of others. */
  private readonly warnings = new Map<string, string>();
  /** Whether its custom resources are to have the finalizer. @default - never, nor had they */
  private readonly finalizing?: boolean;
  private readonly updates?: Updates;

  constructor(
    private readonly owning: OwningKind,
    private readonly context: Pick<
      KindContext,
      'render' | 'inForce' | 'selector' | 'namespaces' | 'namespaceSelector' | 'upgrades'
    >,
    private readonly functions: OwnFunctions = {},
  ) {
    const { selector } = context;
    this.name = owning.name;
    this.kind = owning.type.kind;
    this.fieldManager = childrenFieldManager(this.name);
    this.statusManager = statusFieldManager(this.kind);
    const [first, ...others] = watchesFor(owning) as [Watch, ...Watch[]];
    this.watches = [selector === undefined ? first : { ...first, selector }, ...others];
    if (selector !== undefined) this.selected = parseLabelSelector(selector);
    if (owning.references) this.lookups = owning.references.lookups;
    this.childTypes = new Map(owning.children.map((type) => [groupKind(type), type]));
    this.recorded = [...owning.children, ...owning.formerChildren].filter(
      (type) => isElsewhere(owning.type, type) || type.onDelete === 'keep' || owning.finalizes !== undefined,
    );
    this.kept = new Set(this.recorded.filter(({ onDelete }) => onDelete === 'keep').map(groupKind));
    if (hasFinalizers(owning)) this.finalizing = owning.finalizes ?? true;
    this.renderer = new Renderer(owning, context);
    const { upgrades } = context;
    if (!upgrades || owning.decorates) return;
    this.updates = new Updates(this.name, upgrades);
    this.handlers = [upgrades.handler];
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const cr = reader.get(this.owning.type, key) as LiveResource | undefined;
    const collected = this.recorded.length > 0 ? this.collected(key, cr, reader) : [];
    const hasFinalizer = cr !== undefined && this.finalizing !== undefined && this.hasFinalizer(cr);
    const isGoing = cr?.metadata.deletionTimestamp !== undefined;
    // The answer to a write may come after the watch has reported that it isn't selected any more.
    const isSelected = !cr || !this.selected || selects(this.selected, cr.metadata.labels ?? {});
    const isGivenUp = cr?.metadata.annotations?.[GIVE_UP_ANNOTATION] === 'true';
    const isDeleted = isGoing && hasFinalizer && !isGivenUp && this.finalizing;
    // What is gone or going is cleaned up by the garbage collector, through the owner references.
    if (!cr || (isGoing && !isDeleted)) {
      this.renderer.forget(key);
      const release = cr && hasFinalizer && isSelected ? [this.finalizer(cr, false)] : [];
      return { ...this.unselected(key, now), steps: [...release, ...collected] };
    }
    // What the garbage collector is to release would be deleted as not rendered.
    const isOrphaning = isDeleted && cr.metadata.finalizers?.includes('orphan');
    if (!isSelected) return this.unselected(key, now);
    if (isOrphaning) return NOTHING;
    const owner = { ...ownerOf(cr), blockOwnerDeletion: !this.owning.decorates };
    const controlled = this.controlled(cr, reader);
    const own = this.own(cr, reader);
    const known: Pass = { cr, owner, reader, now, controlled, own, ...(isDeleted && { isDeleted }) };
    const pass = this.owning.remembers ? this.recalled(known) : known;
    const wanted = this.desired(pass);
    if (!wanted) {
      const next = new Date(now.getTime() + UNKNOWN_MILLISECONDS);
      return { steps: [], conclude: () => ({ status: [], events: [], next }) };
    }
    const { steps, update } = this.steps(pass, wanted);
    const desired = update ? { ...wanted, update } : wanted;
    return {
      // What an earlier custom resource has left is no reason to keep this one.
      steps: isDeleted ? [...steps, ...collected] : [...collected, ...steps],
      ...(desired.error && { error: desired.error }),
      conclude: (changes) => this.conclude(pass, desired, changes),
    };
  }

  /** Returns the plan of a custom resource that isn't looked after any more: its objects stay, and others are updated in its place. */
  unselected(key: string, now: Date): Plan {
    const wakes = this.updates?.forget(key, now) ?? [];
    return { steps: [], conclude: () => ({ status: [], events: [], wakes }) };
  }

  /**
   * Returns what the custom resource controls now; for one that is rendered, that makes it a child.
   * @param fieldManager only what that has applied, which is its own, whether or not it is rendered
   */
  private controlled(
    cr: LiveResource,
    reader: Reader,
    fieldManager?: string,
    types: readonly RenderedType[] = this.owning.children,
  ): readonly AnyObject[] {
    const { uid = '', namespace } = cr.metadata;
    const controlled: AnyObject[] = [];
    for (const type of types)
      for (const object of reader.controlledBy(type, uid, fieldManager))
        // What is planted elsewhere isn't its own.
        if (isInReach(this.owning.type, type, namespace, object.metadata.namespace)) controlled.push(object);
    return controlled;
  }

  /** Returns the pass with what the kind remembers as it is going to be: children follow from fields that are stored before them. */
  private recalled(pass: Pass): Pass {
    const { remembered: last = {} } = pass.cr as { readonly remembered?: object };
    // What is remembered changes what is rendered: it stays, too.
    if (this.renderer.isHeld(keyOf(pass.cr))) return { ...pass, remembered: last };
    const { references } = this.owning;
    let found: ReferencedByName | undefined;
    const failures: Failure[] = [];
    try {
      found = references && this.found(pass, references);
    } catch (thrown) {
      failures.push({ error: operatorErrorOf(thrown, 'RenderFailed') });
    }
    const { report, error } = this.ownReport({ ...pass, remembered: last }, pass.own, failures, {
      ...(found && { references: found }),
    });
    const { fields = {} } = report;
    if (error || canonicalJson(fields) === canonicalJson(last)) return { ...pass, remembered: last };
    return { ...pass, remembered: fields, news: report };
  }

  /** Returns what the custom resource controls and the operator has applied for it, whether or not it is rendered. */
  private own(
    cr: LiveResource,
    reader: Reader,
    types: readonly RenderedType[] = this.owning.children,
  ): readonly AnyObject[] {
    const own = this.controlled(cr, reader, this.fieldManager, types);
    if (this.recorded.length === 0) return own;
    return [
      ...own,
      ...this.controlled(cr, reader, recordedFieldManager(this.name, cr.metadata.uid ?? ''), types),
    ];
  }

  /** Reports whether a custom resource has the finalizer of its kind, or of an earlier release of it. */
  private hasFinalizer({ metadata }: LiveResource): boolean {
    const { finalizers = [] } = metadata;
    return this.finalizing !== undefined && finalizers.includes(finalizerOf(this.kind));
  }

  private finalizer(cr: LiveResource, isPresent: boolean, left?: FinalizerStep['left']): FinalizerStep {
    const { fieldManager, kind } = this;
    const object = cr as AnyObject & LiveResource;
    return {
      do: 'finalizer',
      ...{ object, name: finalizerOf(kind), fieldManager, isPresent },
      ...(left && { left }),
    };
  }

  /** Returns the steps that come before all others: no child is made without the finalizer. */
  private secured({ cr, isDeleted }: Pass, { rendered, generate }: Desired): Step[] {
    const { finalizing } = this;
    if (isDeleted || this.hasFinalizer(cr) === finalizing) return [];
    if (!finalizing) return [this.finalizer(cr, false)];
    return rendered.length > 0 || generate ? [this.finalizer(cr, true), { do: 'barrier' }] : [];
  }

  /** Returns the step that takes the finalizer off once nothing is left, behind all that shows it. */
  private released(pass: Pass, { rendered, error, isHeld }: Desired): Step[] {
    if (error) return [this.finalizer(pass.cr, false, 'asked')];
    const isLeft = isHeld ?? this.leftToDelete(pass, rendered) !== undefined;
    return [this.finalizer(pass.cr, false, isLeft ? 'steps' : undefined)];
  }

  private leftToDelete({ cr, reader }: Pass, rendered: Rendered): Readiness | undefined {
    const { children, formerChildren, finalizes } = this.owning;
    // What it owns is collected with it, by its owner references.
    if (!finalizes) return undefined;
    const own = this.own(cr, reader, [...children, ...formerChildren]);
    return leftToDelete(this.ownedAmong(rendered), own, (object) => this.kept.has(groupKind(object)));
  }

  /** Returns the objects of a rendering that are to belong to the custom resource. */
  private ownedAmong(rendered: Rendered): readonly AnyObject[] {
    return rendered.filter((object) => !contributedType(this.owning, object));
  }

  /** Returns the steps of fields of others' objects: those that are rendered, and what is to be given up. */
  private contributions(pass: Pass, { control, rendered }: Desired): ContributeStep[] {
    const { cr, reader, owner } = pass;
    const { contributes = [], type } = this.owning;
    const key = keyOf(cr);
    const step = (object: AnyObject, uid = owner.uid): ContributeStep => ({
      ...{ do: 'contribute', object, owner: { ...owner, uid, recordedKey: key } },
      fieldManager: recordedFieldManager(this.name, uid),
      takes: contributedType(this.owning, object)?.takes ?? [],
      ...(control.drift && { drift: control.drift }),
    });
    // The last to be given up, so that nothing else is left of what it was made for.
    const isOver = pass.isDeleted && this.leftToDelete(pass, rendered) === undefined;
    const wanted = isOver ? [] : rendered.filter((object) => contributedType(this.owning, object));
    const ids = new Set(wanted.map(objectId));
    const left = contributes
      .flatMap((one) => reader.mappedTo(one, key))
      .flatMap((object) =>
        contributorsOf(object).flatMap(({ owner: uid, of }) => {
          if (uid === undefined || of?.key !== key || of.groupKind !== groupKind(type)) return [];
          // That of an earlier custom resource of this name, which has gone without giving it up.
          const isOther = uid !== owner.uid;
          if (!isOther && ids.has(objectId(object))) return [];
          const { apiVersion, kind, metadata } = object;
          const { namespace, name } = metadata;
          return [step({ apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }, uid)];
        }),
      );
    return [...left, ...wanted.map((object) => step(object))];
  }

  /** Returns the steps that delete what was made elsewhere for an earlier custom resource of this key. */
  private collected(key: string, cr: LiveResource | undefined, reader: Reader): Step[] {
    const { recorded, kind } = this;
    const { type } = this.owning;
    const { namespace, name } = splitKey(key);
    // Of what this operator doesn't watch it can't know.
    const isOurs = !this.context.namespaces || this.context.namespaces.includes(namespace ?? '');
    if (!isOurs) return [];
    const owner = { apiVersion: type.apiVersion, kind, name, ...(namespace !== undefined && { namespace }) };
    return recorded.flatMap((one) =>
      reader.mappedTo(one, key).flatMap((object): Step[] => {
        const uid = ownerUidOf(object);
        if (controllerOf(object) || uid === undefined || uid === cr?.metadata.uid) return [];
        if (recordOf(object)?.of?.isKept) return [];
        const isApplied = reader
          .controlledBy(one, uid, recordedFieldManager(this.name, uid))
          .includes(object);
        return isApplied && !object.metadata.deletionTimestamp
          ? [{ do: 'collect', object, owner: { ...owner, uid } }]
          : [];
      }),
    );
  }

  /**
   * Returns undefined while it isn't known what the custom resource refers to.
   * @param isFinal whether it is carried out, so that it counts for what settles
   */
  private desired(pass: Pass, isFinal = true): Desired | undefined {
    const { cr, own, reader } = pass;
    const { references, generated } = this.owning;
    const secret = generated && reader.get(secretType, generated.keyOf(cr));
    let control: Control = {};
    let found: ReferencedByName | undefined;
    try {
      const generate = pass.isDeleted
        ? undefined
        : generated?.missing(cr, secret, {
            now: pass.now,
            settings: settingsOf(this.owning, this.context.inForce?.current),
          });
      if (cr.metadata.annotations) control = controlOf(cr.metadata.annotations);
      if ((pass.isDeleted && !this.owning.finalizes) || (this.owning.decorates && !isChosen(this.owning, cr)))
        return { control, rendered: [], handedOver: [] };
      found = references && this.found(pass, references);
      if (references && !found) return undefined;
      requireReadable([cr]);
      generated?.requireClear(cr, secret);
      const { remembered, isDeleted } = pass;
      const related = this.owning.readsRelated ? observedOf(this.related(pass)) : undefined;
      const inputs = {
        ...(found && { references: found }),
        ...(generated && { generated: generated.propsOf(cr, secret) }),
        ...(related && { related }),
        ...(remembered && { status: remembered }),
        ...(isDeleted && { deleted: true }),
      };
      const isPaused = control.isPaused ?? false;
      const { held, ...rendering } = this.renderer.render(cr, inputs, {
        ...pass,
        isPaused: isPaused || !isFinal,
        isFinal: isFinal && !generate,
      });
      return {
        ...{ control, ...rendering, handedOver: this.handedOver(cr, own) },
        ...(found && { references: found }),
        ...(generate && { generate }),
        ...(secret && { secret }),
        ...(held && { ...(held.error ? { error: held.error } : { isHeld: true }), requeueAt: held.until }),
      };
    } catch (thrown) {
      const error = operatorErrorOf(thrown, 'RenderFailed');
      return { control, rendered: [], handedOver: [], error, ...(found && { references: found }) };
    }
  }

  /** Returns what the custom resource refers to; undefined while that isn't known. @throws OperatorError where one is missing */
  private found({ cr, reader }: Pass, references: KindReferences): ReferencedByName | undefined {
    return references.resolve(cr, (...query) => reader.find(...query));
  }

  private handedOver(cr: LiveResource, children: readonly AnyObject[]): readonly HandOver[] {
    return reading(children, () => this.functions.handOver?.({ cr: cr as never, children }) ?? []);
  }

  private steps(pass: Pass, desired: Desired): Treated {
    const { cr, owner } = pass;
    const { control, error, generate, rendered, handedOver } = desired;
    const { fieldManager } = this;
    const { generated, contributes } = this.owning;
    if (control.isPaused) return { steps: [] };
    const secured = this.finalizing === undefined ? [] : this.secured(pass, desired);
    const remembered: Step[] = pass.news
      ? [this.remembering(pass, pass.news, desired), { do: 'barrier' }]
      : [];
    const first = [...remembered, ...secured];
    if (generated && generate)
      return {
        steps: [
          ...first,
          { do: 'generate', object: generated.secretOf(cr), owner, fieldManager, ...generate },
        ],
      };
    // Once a build is recorded, what is applied later has to say so, too.
    const wasRecorded = pass.own.some((object) => recordOf(object)?.build);
    const build = this.updates?.present() ?? (wasRecorded ? NO_BUILD : undefined);
    const changing: Step[] = [
      ...handedOver.map((step) => ({ do: 'handOver', ...step }) as const),
      ...(contributes ? this.ownedAmong(rendered) : rendered).map((object) => {
        const { recreate, createOnly } = this.childTypes.get(groupKind(object)) ?? {};
        const isKept = this.kept.has(groupKind(object));
        const isHere = !this.owning.type.namespaced || object.metadata.namespace === cr.metadata.namespace;
        // Deletion in the foreground collects at once whatever names an owner that is going.
        const isCollected =
          !pass.isDeleted ||
          pass.controlled.some(
            (one) => objectId(one) === objectId(object) && controllerOf(one)?.uid === owner.uid,
          );
        const isBound = isHere && !isKept && isCollected;
        return {
          ...({ do: 'own', object, owner, fieldManager } as const),
          ...(!isBound && {
            owner: { ...owner, recordedKey: keyOf(cr), ...(isKept && { isKept }) },
            fieldManager: recordedFieldManager(this.name, owner.uid),
          }),
          ...(this.owning.decorates && { ofOthers: true }),
          ...(recreate && { recreate }),
          ...(createOnly && { createOnly }),
          ...(rendered.dependencies?.has(object) && {
            waitsFor: [...(rendered.dependencies.get(object) ?? [])],
          }),
          ...(control.drift && { drift: control.drift }),
          ...(build !== undefined && { build: { name: build, at: pass.now.getTime() } }),
        };
      }),
      ...(error || !contributes ? [] : this.contributions(pass, desired)),
      ...(pass.isDeleted ? this.released(pass, desired) : []),
      { do: 'barrier' },
      ...(error ? [] : this.pruned(pass, desired)),
    ];
    const isAnyRendered = !error || rendered.length > 0;
    if (!this.updates || pass.isDeleted || !isAnyRendered) return { steps: [...first, ...changing] };
    const { steps, update } = this.treated(pass, desired, changing, this.updates);
    return { steps: [...first, ...steps], ...(update && { update }) };
  }

  /** Holds what another build would change; what this one doesn't change, or has to make again, is applied as ever. */
  private treated(
    { cr, reader, now }: Pass,
    { control }: Desired,
    changing: Step[],
    updates: Updates,
  ): Treated {
    const { children, formerChildren, type } = this.owning;
    const { namespaceSelector } = this.context;
    const isAsEver = (step: OwnStep): boolean => {
      const live = reader.get(step.object, keyOf(step.object));
      if (!live) return updates.wasThere(keyOf(cr), step.object);
      return recordOf(live)?.hash === contentHash(asRecorded(step.object, live));
    };
    const [asEver, held, changes]: [OwnStep[], Step[], string[]] = [[], [], []];
    for (const step of changing)
      if (step.do === 'own' && isAsEver(step)) {
        // It is no update, so it doesn't count as one.
        const { build: _, waitsFor: __, ...rest } = step;
        asEver.push(rest);
      } else {
        held.push(step);
        if (step.do === 'barrier') continue;
        const isRendered = step.do === 'own' || step.do === 'contribute';
        changes.push(`${objectId(step.object)} ${isRendered ? contentHash(step.object) : ''}`);
      }
    const ownOf = (one: LiveResource): readonly AnyObject[] =>
      this.own(one, reader, [...children, ...formerChildren]);
    const mayBeUpdated = ({
      metadata: { namespace = '', annotations, deletionTimestamp },
    }: AnyObject): boolean =>
      deletionTimestamp === undefined &&
      annotations?.[PAUSED_ANNOTATION] !== 'true' &&
      (namespaceSelector === undefined || reader.get(namespaceType, namespace) !== undefined);
    const update = updates.judge({
      ...{ cr, now, own: ownOf(cr), release: control.release },
      // Objects come in another order after a restart.
      rendering: changes.length > 0 ? contentHash(changes.sort()) : undefined,
      list: () =>
        (reader.all(type) as (AnyObject & LiveResource)[])
          .filter(mayBeUpdated)
          .map((one) => [one, ownOf(one)] as const),
    });
    if (!update?.isHeld) return { steps: changing, ...(update && { update }) };
    const object = cr as AnyObject & LiveResource;
    const hold: HoldStep = { do: 'reconstruct/hold', object, steps: held, isNews: update.isNews };
    return { steps: [...asEver, hold], update };
  }

  /** Conditions stay as they were: what follows from the fields is yet to be applied, and may fail. */
  private remembering(pass: Pass, report: StatusReport<object>, desired: Desired): Step {
    const parts = { children: pass.own, report, failure: desired.error };
    const { status } = this.statusOf(pass, desired, parts);
    const before = pass.cr.status?.conditions ?? [];
    // Those of others aren't in it. Of drift that is left, only the applies know.
    const own = new Set(['Drifted', ...status.conditions.map(({ type }) => type)]);
    const conditions = before.filter(({ type = '' }) => own.has(type));
    return {
      do: 'remember',
      object: pass.cr as AnyObject & LiveResource,
      fieldManager: this.statusManager,
      status: { ...status, conditions },
    };
  }

  private pruned(pass: Pass, { rendered }: Desired): Step[] {
    const { cr, own, reader, isDeleted } = pass;
    const wanted = new Set(rendered.map(objectId));
    const former = this.own(cr, reader, this.owning.formerChildren);
    const steps: Step[] = [];
    // Without work on deletion, they go with it.
    if (isDeleted && !this.owning.finalizes) return steps;
    for (const object of [...own, ...former])
      if (isDeleted && this.kept.has(groupKind(object))) continue;
      else if (!object.metadata.deletionTimestamp && !wanted.has(objectId(object)))
        steps.push({ do: 'prune', object });
    return steps;
  }

  /** Reports whether a plan has changed what the next one is made of: what is handed over, and what the construct reads. */
  private isUnfinished(
    { cr, reader }: Pass,
    { rendered, generate, observed = [] }: Desired,
    done: ReadonlySet<Action>,
  ): boolean {
    if (generate) return done.has('created') || done.has('configured');
    const isCreated = done.has('created') || done.has('recreated');
    if (isCreated && this.handedOver(cr, this.own(cr, reader)).length > 0) return true;
    if (!this.owning.observes || !WRITTEN.some((action) => done.has(action))) return false;
    const hashOf = (of: readonly AnyObject[]): string =>
      contentHash([observedOf(of), of.map(({ metadata }) => metadata.annotations?.[CREATED_ANNOTATION])]);
    return hashOf(observed) !== hashOf(renderedIn(this.controlled(cr, reader), rendered));
  }

  /** Returns what every plan ends with. A failure stands in the conditions, but what the children say stays of use beside it. */
  private conclude(pass: Pass, desired: Desired, changes: ChangeSet): Conclusion {
    const { cr, owner, reader } = pass;
    const { generated } = this.owning;
    const { generate, secret, control, rendered } = desired;
    const done = new Set(changes.map(({ action }) => action));
    const isUnfinished = this.isUnfinished(pass, desired, done);
    const regarding = { ...refOf(cr), uid: owner.uid };
    const made = generate && !control.isPaused ? generated?.eventOf(cr, secret, changes) : undefined;
    // It has gone, or is left to others.
    if (
      pass.isDeleted &&
      changes.some(({ ref, action }) => action === 'configured' && objectId(ref) === objectId(refOf(cr)))
    )
      return { status: [], events: undoneEvent(cr, changes), next: 'now' };
    // The next plan follows at once, and says more.
    if (generate && !control.isPaused && !done.has('failed'))
      return {
        ...{ status: [], events: made ? [{ regarding, event: made }] : [] },
        ...(isUnfinished && { next: 'now' }),
      };
    const isUnchanged = done.size === Number(done.has('unchanged'));
    // Where nothing can be rendered, what was applied before is all there is to say.
    const children =
      (desired.error && rendered.length === 0) || desired.update?.isHeld
        ? pass.own
        : renderedIn(isUnchanged ? pass.controlled : this.controlled(cr, pass.reader), rendered);
    const failed = done.has('failed')
      ? changes.flatMap(({ ref, error }) => (error ? { ref, error } : []))
      : [];
    const failures = desired.error ? [{ error: desired.error }, ...failed] : failed;
    const { report: latest, error } = this.ownReport(pass, children, failures, desired);
    const { remembered } = pass;
    // What isn't said again would be forgotten.
    const isKept = remembered && (error !== undefined || this.renderer.isHeld(keyOf(cr)));
    const report = isKept ? { ...latest, fields: remembered } : latest;
    const failure = worstOf(failures) ?? error;
    const drifted = done.has('drifted') ? driftedCondition(changes) : undefined;
    const parts = { children, report, failure, drifted, changes };
    const { readiness, status, requeueAt, updated } = this.statusOf(pass, desired, parts);
    const events = [
      failure && !pass.isDeleted ? failureEvent(cr, failure) : stalledEvent(cr, readiness),
      drifted || done.has('corrected') ? driftEvent(cr, changes) : undefined,
      made,
      updated?.event,
    ];
    const { remembers, type, decorates } = this.owning;
    if (decorates && !events.some((event) => event?.type === 'Warning')) this.warnings.delete(owner.uid);
    const said = events.flatMap((event) =>
      event && (!decorates || this.isNews(pass, event)) ? { regarding, event } : [],
    );
    if (decorates) return { status: [], events: said, ...(isUnfinished && { next: 'now' }) };
    // What was remembered before the children came has another version.
    const target = (remembers && (reader.get(type, keyOf(cr)) as LiveResource | undefined)) || cr;
    const isConditional = remembers && { isConditional: true };
    const isReady = pass.isDeleted && !failure && !control.isPaused && !this.leftToDelete(pass, rendered);
    const isNext =
      isUnfinished || isReady || (remembers && !error && this.rendersOtherwise(pass, desired, report));
    const write = { target, fieldManager: this.statusManager, status, ...isConditional };
    return {
      // Of what can't be kept, it isn't known what was remembered.
      status: remembers && unreadableFor(cr) ? [] : [write],
      events: said,
      ...(requeueAt && { next: requeueAt }),
      ...(isNext && { next: 'now' }),
      ...(updated?.wakes && { wakes: updated.wakes }),
      ...(error && { error }),
    };
  }

  /** Reports whether an event isn't the last warning about the same object again, which has no conditions that would show it. */
  private isNews({ owner: { uid } }: Pass, { type, note }: EventProps): boolean {
    if (type !== 'Warning') return true;
    if (this.warnings.get(uid) === note) return false;
    setLatest(this.warnings, uid, note, MAX_WARNINGS);
    return true;
  }

  /** Reports whether the construct makes something else of the fields that its status has now: then a plan of these follows at once. */
  private rendersOtherwise(pass: Pass, desired: Desired, { fields = {} }: StatusReport<object>): boolean {
    if (desired.error || canonicalJson(fields) === canonicalJson(pass.remembered ?? {})) return false;
    const next = this.desired({ ...pass, remembered: fields }, false);
    return (
      next !== undefined && next.rendered.map(contentHash).join() !== desired.rendered.map(contentHash).join()
    );
  }

  private statusOf(
    pass: Pass,
    desired: Desired,
    { children, report, failure, drifted, changes }: StatusParts,
  ) {
    const { cr, reader, now } = pass;
    const { control, rendered, update } = desired;
    const { generated } = this.owning;
    const isPaused = control.isPaused ?? false;
    // In a pause nothing is applied, so nothing waits.
    const waiting =
      rendered.dependencies && !isPaused && !update?.isHeld
        ? waitingOf(cr, rendered.dependencies, children, now)
        : undefined;
    const judged = failure
      ? failureReadiness(failure)
      : pass.isDeleted
        ? (this.leftToDelete(pass, rendered) ?? NOTHING_LEFT)
        : ((isPaused ? pausedReadiness(this.ownedAmong(rendered), children) : undefined) ??
          report.readiness ??
          this.childrenReadiness(pass, children));
    const more = [...(waiting ? [waiting.readiness] : []), ...(desired.isHeld ? [SETTLING] : [])];
    const worst = failure || more.length === 0 ? judged : worstReadiness([...more, judged]);
    const readiness = pass.isDeleted ? deletingReadiness(cr, worst) : worst;
    const secret = generated && reader.get(secretType, generated.keyOf(cr));
    const rotated = generated?.conditionOf(cr, secret);
    const renewal = generated?.renewalOf(secret);
    // While nothing is made, as in a pause, its time may have passed.
    const renewAt = renewal && renewal > now ? renewal : undefined;
    const paused = isPaused ? pausedCondition(cr) : undefined;
    const updated: Concluded | undefined = !changes
      ? { condition: this.updates && standing(cr) }
      : (update?.conclude(changes, readiness) ??
        this.updates?.notApplied(cr, isPaused || pass.isDeleted === true, now));
    const held = [paused, waiting?.condition, drifted, rotated, updated?.condition].filter(isGiven);
    const { conditions = [] } = report;
    const others =
      held.length > 0 ? conditions.filter(({ type }) => !held.some((one) => one.type === type)) : conditions;
    // An edit that waits has not been observed, so tools don't take the state of its children for that of the edit.
    const generation = isPaused || !changes ? observedGenerationOf(cr) : cr.metadata.generation;
    const shown = isPaused && !failure ? asPaused(readiness) : readiness;
    const all = [...standardConditions(shown), ...held, ...others];
    const times = [
      waiting?.requeueAt,
      report.requeueAt,
      desired.requeueAt,
      renewAt,
      updated?.requeueAt,
    ].filter(isGiven);
    const [requeueAt] = times.sort((a, b) => a.getTime() - b.getTime());
    return {
      readiness,
      status: {
        ...report.fields,
        ...(generation !== undefined && { observedGeneration: generation }),
        conditions: dateConditions(all, cr.status?.conditions ?? [], now, generation),
      },
      ...(requeueAt && { requeueAt }),
      ...(updated && { updated }),
    };
  }

  private childrenReadiness(pass: Pass, children: readonly AnyObject[]): Readiness {
    const pods = this.owning.related?.filter(({ keep }) => keepsTroubles.has(keep));
    return withTroubles(worstReadiness(children.map(childReadiness)), children, this.related(pass, pods));
  }

  private related({ cr, reader }: Pass, types = this.owning.related ?? []): AnyObject[] {
    const related: AnyObject[] = [];
    for (const type of types) related.push(...reader.mappedTo(type, keyOf(cr)));
    return related;
  }

  /** Returns what the kind's own function says of the status, or why it can't. */
  private ownReport(
    pass: Pass,
    children: readonly AnyObject[],
    failures: readonly Failure[],
    { references, isCurrent }: Pick<Desired, 'references' | 'isCurrent'>,
  ): { readonly report: StatusReport<object>; readonly error?: OperatorError } {
    const { cr, now, remembered: last } = pass;
    const { status } = this.functions;
    if (!status || unreadableFor(cr)) return { report: {} };
    const related = this.related(pass);
    // Where children follow from what is remembered, it isn't known yet which are current.
    const shown =
      isCurrent && !this.owning.remembers
        ? children.map((child) => ({ ...child, isCurrent: isCurrent(child) }))
        : children;
    const input = { cr: cr as never, children: shown, related, failures, now, ...(last && { last }) };
    return reportOf(cr, this.owning.statusFields, failures, () => {
      const settings = this.owning.settingsSchema && settingsOf(this.owning, this.context.inForce?.current);
      const found = references && withoutData(references);
      return reading([...children, ...related], () => status({ ...input, settings, references: found }));
    });
  }
}

function isGiven<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** Returns those of the objects that a rendering names: no other object says anything of the custom resource. */
function renderedIn(controlled: readonly AnyObject[], rendered: Rendered): readonly AnyObject[] {
  const named = new Set(rendered.map(objectId));
  const found: AnyObject[] = [];
  for (const object of controlled) if (named.has(objectId(object))) found.push(object);
  return found;
}

type Keep = RelatedTypeProps['keep'];

/** A type of children, and how its objects are treated. */
export type ChildType = ChildTypeProps & ResourceType;

/** A kind without what the adapter doesn't need. */
export interface OwningKind extends RenderedKind {
  /** Which objects of others are decorated. @default - its resources are custom resources */
  readonly chosen?: { readonly selector?: LabelSelector; readonly annotation?: string };
  readonly generated?: GeneratedSecrets;
  readonly name: string;
  readonly children: readonly ChildType[];
  readonly formerChildren: readonly RenderedType[];
  /** @default - none */
  readonly related?: readonly (ResourceType & RelatedTypeProps)[];
  /** The fields that the schema of the status has. @default - any */
  readonly statusFields?: readonly string[];
}

/** Returns the watches of a kind whose custom resources own their children; the kind itself first. */
export function watchesFor(kind: OwningKind): Watch[] {
  /** Returns a watch by which objects lead to custom resources, where these may have them. */
  const reached = (type: RenderedType, keysOf: typeof ownersKeys): Watch => ({
    type,
    mapsTo: (object) => {
      const keys: string[] = [];
      for (const key of keysOf(kind.type, object))
        if (isInReach(kind.type, type, splitKey(key).namespace, object.metadata.namespace)) keys.push(key);
      return keys;
    },
  });
  const owned = (type: RenderedType): Watch => reached(type, ownersKeys);
  /** Returns the watch of a type, and the one of its objects elsewhere. */
  const everywhere = (type: ContributedType, watch: Watch): Watch[] => {
    if (!isElsewhere(kind.type, type)) return [watch];
    const { namespaces = '*' } = type;
    return [...(namespaces === '*' ? [] : [watch]), { ...watch, namespaces }];
  };
  const decorated: Watch = {
    // Read by its name where a child has gone: it may have gone, too.
    ...{ type: kind.type, readOnly: true, writes: [], keep: keepDecorated(kind) },
    mapsTo: (object) => [keyOf(object)],
  };
  const own: Watch = {
    type: kind.type,
    keep: kind.remembers ? keepRemembering(statusFieldManager(kind.type.kind)) : keepWithoutManagedFields,
    // An owner reference that blocks the owner's deletion may only be set by who may finalize the owner.
    // https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement
    writes: ['status', 'finalizers', ...(hasFinalizers(kind) ? (['patch'] as const) : [])],
    mapsTo: (cr) => [keyOf(cr)],
  };
  const watches: Watch[] = [
    kind.decorates ? decorated : own,
    ...kind.children.flatMap((type) =>
      everywhere(type, {
        ...owned(type),
        writes: ['create', 'patch', 'delete'],
        ...(type.optional && { optional: true }),
        ...(type.claims && { claims: type.claims }),
        ...(kind.observes
          ? { keep: type.keep ? projection(type.keep, keepObserved) : keepObserved }
          : type.keep && { keep: projection(type.keep, keepStatus) }),
      }),
    ),
    // Of what isn't installed any more, nothing is left to be pruned.
    ...kind.formerChildren.flatMap((type) =>
      everywhere(type, { ...owned(type), optional: true, writes: ['delete'] }),
    ),
    ...(kind.contributes ?? []).flatMap((type) =>
      everywhere(type, { ...reached(type, contributorsKeys), optional: true, writes: ['patch'] }),
    ),
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
export function ownersKeys(type: ResourceType, object: AnyObject): string[] {
  const owner = controllerOf(object);
  if (owner) return groupKind(owner) === groupKind(type) ? keysIn(type, object, owner.name) : [];
  const of = recordOf(object)?.of;
  return of?.groupKind === groupKind(type) ? [of.key] : [];
}

/** Returns the keys of custom resources that have set fields of an object of others, as it says. */
function contributorsKeys(type: ResourceType, object: AnyObject): string[] {
  return contributorsOf(object).flatMap(({ of }) => (of?.groupKind === groupKind(type) ? [of.key] : []));
}

/** Returns the records of those who have set fields of an object of others. */
function contributorsOf(object: AnyObject): AppliedRecord[] {
  const names = Object.keys(object.metadata.annotations ?? {}).filter(isHashAnnotation);
  return names.flatMap((name) => (name === APPLIED_HASH_ANNOTATION ? [] : (recordOf(object, name) ?? [])));
}

function keysIn({ namespaced }: ResourceType, { metadata }: AnyObject, name: string | undefined): string[] {
  return name ? [objectKey(namespaced ? metadata.namespace : undefined, name)] : [];
}

/** Custom resources are kept whole, for the renderer, but for the bookkeeping that nothing reads. */
export function keepWithoutManagedFields(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

/** Objects of others are kept without their status, which changes often; of a Secret, and of what isn't chosen, the metadata alone. */
function keepDecorated(kind: OwningKind): Projection {
  return (object) => {
    const { status: _, ...kept } = keepWithoutManagedFields(object);
    const { apiVersion, metadata } = kept;
    const isWhole = isChosen(kind, object) && groupKind(object) !== groupKind(secretType);
    return isWhole ? kept : { apiVersion, kind: kept.kind, metadata };
  };
}

/** Reports whether an object of others is one that is decorated: what was made of another one is pruned. */
export function isChosen(
  { chosen: { selector, annotation } = {} }: Pick<OwningKind, 'chosen'>,
  { metadata }: Pick<KubernetesObject, 'metadata'>,
): boolean {
  const { labels = {}, annotations = {} } = metadata;
  return (
    (selector === undefined || selects(selector, labels)) &&
    (annotation === undefined || annotations[annotation] !== undefined)
  );
}

/** Returns a projection that keeps what a status manager has applied, too. */
function keepRemembering(manager: string): Projection {
  return (object) => ({ ...keepWithoutManagedFields(object), remembered: rememberedOf(object, manager) });
}

/** Keeps the labels too, which `nameOf` reads. */
function keepRelated(object: AnyObject): AnyObject {
  const identity = keepIdentity(object);
  const { labels } = object.metadata;
  return labels ? { ...identity, metadata: { ...identity.metadata, labels } } : identity;
}

type Projection = (object: AnyObject) => AnyObject | undefined;

/** Functions by `keep`: kinds that keep the same share a store. */
const projections = new WeakMap<Keep, Map<typeof keepStatus, Projection>>();

/** Returns the object as `base` keeps it, and what `keep` returns beside that. */
function projection(keep: Keep, base: typeof keepStatus): Projection {
  const known = projections.get(keep) ?? new Map<typeof keepStatus, Projection>();
  projections.set(keep, known);
  const combined: Projection = (object) => {
    const more = keep(object);
    if (more === undefined) return undefined;
    const kept = withKeptStatus(base(object), more);
    const metadata = { ...(more.metadata as object | undefined), ...kept.metadata };
    const spec = { ...(more.spec as object | undefined), ...(kept.spec as object | undefined) };
    return { ...more, ...kept, ...(kept.spec !== undefined && { spec }), metadata };
  };
  const projected = known.get(base) ?? combined;
  known.set(base, projected);
  return projected;
}
