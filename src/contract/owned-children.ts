import type { Change, ChangeSet } from './change.js';
import { dateConditions, standardConditions } from './conditions.js';
import type { Condition, Readiness } from './conditions.js';
import type { ApplyStep, Controller, DeleteStep, EventProps, Plan, Reader, Watch } from './controller.js';
import { messageOf, OperatorError } from './error.js';
import type { RenderedKind, Render } from './kind.js';
import { childrenFieldManager, statusFieldManager } from './names.js';
import { controllerOf, describeRef, groupOf, objectKey, refOf } from './object.js';
import type { AnyObject, CustomResource, OwnerReference } from './object.js';
import { childReadiness, worstReadiness } from './readiness.js';
import { groupKind } from './resource.js';
import type { ResourceType } from './resource.js';
import type { StatusFunction, StatusReport } from './status.js';

/** A type of children, and how its objects are treated. */
export interface ChildType extends ResourceType {
  /** See `ApplyStep.recreate`. @default false */
  readonly recreate?: boolean;
}

/** A kind without what the adapter doesn't need. */
export interface OwningKind extends RenderedKind {
  readonly name: string;
  readonly children: readonly ChildType[];
  readonly formerChildren: readonly ResourceType[];
}

type LiveResource = CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>;

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** The adapter from "one custom resource, its own children" to the core contract; made by `defineKind`. */
export class OwnedChildren implements Controller {
  readonly name: string;
  readonly kind: string;
  readonly watches: readonly Watch[];

  constructor(
    private readonly owning: OwningKind,
    private readonly render: Render,
    private readonly statusFunction: StatusFunction<never, object> | undefined,
  ) {
    this.name = owning.name;
    this.kind = owning.type.kind;
    const owned = (type: ResourceType): Watch => ({ type, mapsTo: (object) => this.ownersKey(object) });
    this.watches = [
      { type: owning.type, keep: keepWithoutManagedFields, mapsTo: (cr) => [keyOf(cr)] },
      ...owning.children.map(owned),
      // Of what isn't installed any more, nothing is left to be pruned.
      ...owning.formerChildren.map((type) => ({ ...owned(type), optional: true })),
    ];
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const cr = reader.get(this.owning.type, key) as LiveResource | undefined;
    // What is gone or going is cleaned up by the garbage collector, through the owner references.
    if (!cr || cr.metadata.deletionTimestamp) return NOTHING;
    const rendered = this.renderSafely(cr);
    const error = rendered instanceof OperatorError ? rendered : undefined;
    const regarding = { ...refOf(cr), uid: cr.metadata.uid ?? '' };
    return {
      apply: error ? [] : this.applySteps(cr, rendered as AnyObject[]),
      delete: error ? [] : this.pruneSteps(cr, rendered as AnyObject[], reader),
      status: [
        {
          target: cr,
          fieldManager: statusFieldManager(this.owning.type.kind),
          status: (changes) => this.status(cr, error ?? failureOf(changes), reader, now),
        },
      ],
      events: [
        { regarding, event: (changes) => failureEvent(cr, error ?? failureOf(changes)) },
        { regarding, event: correctionEvent },
      ],
      ...(error && { error }),
    };
  }

  private renderSafely(cr: LiveResource): AnyObject[] | OperatorError {
    try {
      return this.render(this.owning, cr);
    } catch (error) {
      if (error instanceof OperatorError) return error;
      return new OperatorError({ reason: 'RenderFailed', message: messageOf(error), cause: error });
    }
  }

  private applySteps(cr: LiveResource, rendered: readonly AnyObject[]): ApplyStep[] {
    const owner: OwnerReference = {
      apiVersion: cr.apiVersion,
      kind: cr.kind,
      name: cr.metadata.name,
      uid: cr.metadata.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    };
    const fieldManager = childrenFieldManager(this.owning.type.kind);
    return rendered.map((object) => ({
      object,
      fieldManager,
      owner,
      ...(this.isRecreated(object) && { recreate: true }),
    }));
  }

  private isRecreated(object: AnyObject): boolean {
    return this.owning.children.some((type) => type.recreate && groupKind(type) === groupKind(object));
  }

  /** What the custom resource controls and no longer renders. */
  private pruneSteps(cr: LiveResource, rendered: readonly AnyObject[], reader: Reader): DeleteStep[] {
    const wanted = new Set(rendered.map((object) => `${groupKind(object)} ${keyOf(object)}`));
    return [...this.owning.children, ...this.owning.formerChildren]
      .flatMap((type) => reader.controlledBy(type, cr.metadata.uid ?? ''))
      .filter((child) => !child.metadata.deletionTimestamp)
      .filter((child) => !wanted.has(`${groupKind(child)} ${keyOf(child)}`))
      .map((object) => ({ object }));
  }

  private status(cr: LiveResource, error: OperatorError | undefined, reader: Reader, now: Date): object {
    const report = error ? this.reportBesideFailure(error, cr, reader, now) : this.report(cr, reader, now);
    const { readiness } = report;
    const generation = cr.metadata.generation;
    const conditions = [...standardConditions(readiness), ...(report.conditions ?? [])];
    return {
      ...report.fields,
      ...(generation !== undefined && { observedGeneration: generation }),
      conditions: dateConditions(conditions, cr.status?.conditions ?? [], now, generation),
    };
  }

  /** The failure is the news, but what the children say stays of use, where they are enough to say something. */
  private reportBesideFailure(
    error: OperatorError,
    cr: LiveResource,
    reader: Reader,
    now: Date,
  ): StatusReport<object> {
    const readiness = failureReadiness(error);
    try {
      return { ...this.report(cr, reader, now), readiness };
    } catch {
      return { readiness };
    }
  }

  private report(cr: LiveResource, reader: Reader, now: Date): StatusReport<object> {
    const children = this.owning.children.flatMap((type) => reader.controlledBy(type, cr.metadata.uid ?? ''));
    if (this.statusFunction)
      return this.statusFunction({ cr: cr as never, children, related: [], failures: [], now });
    return { readiness: worstReadiness(children.map(childReadiness)) };
  }

  /** The custom resource that controls the object, whatever version of its API the owner reference was written in. */
  private ownersKey(object: AnyObject): string[] {
    const owner = controllerOf(object);
    if (owner?.kind !== this.owning.type.kind) return [];
    if (groupOf(owner.apiVersion) !== groupOf(this.owning.type.apiVersion)) return [];
    return [objectKey(this.owning.type.namespaced ? object.metadata.namespace : undefined, owner.name)];
  }
}

function keyOf(object: AnyObject | LiveResource): string {
  return objectKey(object.metadata.namespace, object.metadata.name);
}

/** Custom resources are kept whole, for the renderer, but for the bookkeeping that nobody reads. */
function keepWithoutManagedFields(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

function failureOf(changes: ChangeSet): OperatorError | undefined {
  const failed = changes.filter((change): change is Change & { error: OperatorError } => !!change.error);
  // What needs somebody's hand is worth more to the reader than what passes by itself.
  return (failed.find(({ error }) => error.retry === 'onChange') ?? failed[0])?.error;
}

function failureReadiness({ retry, reason, message }: OperatorError): Readiness {
  return { phase: retry === 'onChange' ? 'stalled' : 'failing', reason, message };
}

/** What takes a person to end is told in one Warning when it begins, and in none while it stays the same. */
function failureEvent(cr: LiveResource, error: OperatorError | undefined): EventProps | undefined {
  if (!error || (error.retry !== 'onChange' && error.reason !== 'FieldContested')) return undefined;
  const type = error.retry === 'onChange' ? 'Stalled' : 'Reconciling';
  const told = cr.status?.conditions?.find((condition) => condition.type === type);
  const known = told?.status === 'True' && told.message === error.message;
  return known
    ? undefined
    : { type: 'Warning', reason: error.reason, action: 'Reconcile', note: error.message };
}

/** One event when somebody's changes were undone, so that they learn why theirs didn't last, and from whom. */
function correctionEvent(changes: ChangeSet): EventProps | undefined {
  const notes = changes.flatMap(({ ref, action, drift }) => {
    if (action !== 'corrected' || !drift) return [];
    const who = drift.managers.join(', ') || 'somebody';
    return [`${describeRef(ref)}: put back ${drift.fields.join(', ') || 'fields'}, changed by ${who}`];
  });
  if (notes.length === 0) return undefined;
  return { type: 'Normal', reason: 'DriftCorrected', action: 'Apply', note: notes.join('; ') };
}
