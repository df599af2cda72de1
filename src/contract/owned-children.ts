import type { ChangeSet } from './change.js';
import { keyOf, watchesFor } from './child-types.js';
import type { OwningKind } from './child-types.js';
import { dateConditions, standardConditions } from './conditions.js';
import type { Condition } from './conditions.js';
import type { ApplyStep, Controller, Plan, Reader, Watch } from './controller.js';
import type { DeleteStep } from './delete-step.js';
import { messageOf, OperatorError } from './error.js';
import { correctionEvent, failureEvent, failureReadiness, failuresOf, worstOf } from './failures.js';
import type { HandOver, HandOverFunction } from './hand-over.js';
import type { Render } from './kind.js';
import { childrenFieldManager, statusFieldManager } from './names.js';
import { refOf } from './object.js';
import type { AnyObject, CustomResource, OwnerReference } from './object.js';
import { childReadiness, worstReadiness } from './readiness.js';
import { groupKind } from './resource.js';
import type { Failure, StatusFunction, StatusReport } from './status.js';

type LiveResource = CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>;

/** What the author of a kind has written beside its construct; the adapter handles kinds of every type. */
export interface OwnFunctions {
  readonly status?: StatusFunction<never, object>;
  readonly handOver?: HandOverFunction<never>;
}

/** What is to be applied. */
interface Wanted {
  readonly rendered: readonly AnyObject[];
  readonly handOver: readonly HandOver[];
}

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** The adapter from "one custom resource, its own children" to the core contract; made by `defineKind`. */
export class OwnedChildren implements Controller {
  readonly name: string;
  readonly kind: string;
  readonly watches: readonly Watch[];

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
    if (!cr || cr.metadata.deletionTimestamp) return NOTHING;
    const wanted = this.wanted(cr, reader);
    const error = wanted instanceof OperatorError ? wanted : undefined;
    const { rendered, handOver } = wanted instanceof OperatorError ? { rendered: [], handOver: [] } : wanted;
    const regarding = { ...refOf(cr), uid: cr.metadata.uid ?? '' };
    return {
      apply: [...handOver.map((step) => ({ ...step, handOver: true })), ...this.applySteps(cr, rendered)],
      delete: error ? [] : this.pruneSteps(cr, rendered, reader),
      status: [
        {
          target: cr,
          fieldManager: statusFieldManager(this.owning.type.kind),
          status: (changes) => this.status(cr, failuresOf(changes, error), reader, now),
        },
      ],
      events: [
        { regarding, event: (changes) => failureEvent(cr, worstOf(failuresOf(changes, error))) },
        { regarding, event: correctionEvent },
      ],
      // What is to be handed over may depend on what was made.
      ...(this.own.handOver && {
        again: (changes) => hasMade(changes) && this.handOver(cr, reader).length > 0,
      }),
      ...(error && { error }),
    };
  }

  private wanted(cr: LiveResource, reader: Reader): Wanted | OperatorError {
    try {
      return { rendered: this.render(this.owning, cr), handOver: this.handOver(cr, reader) };
    } catch (error) {
      if (error instanceof OperatorError) return error;
      return new OperatorError({ reason: 'RenderFailed', message: messageOf(error), cause: error });
    }
  }

  private handOver(cr: LiveResource, reader: Reader): readonly HandOver[] {
    const { handOver } = this.own;
    return handOver ? handOver({ cr: cr as never, children: this.children(cr, reader) }) : [];
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

  private status(cr: LiveResource, failures: readonly Failure[], reader: Reader, now: Date): object {
    const report = this.reportBesideFailures(cr, failures, reader, now);
    const { readiness } = report;
    const generation = cr.metadata.generation;
    const conditions = [...standardConditions(readiness), ...(report.conditions ?? [])];
    return {
      ...report.fields,
      ...(generation !== undefined && { observedGeneration: generation }),
      conditions: dateConditions(conditions, cr.status?.conditions ?? [], now, generation),
    };
  }

  /** A failure is the news, but what the children say stays of use, where they are enough to say something. */
  private reportBesideFailures(
    cr: LiveResource,
    failures: readonly Failure[],
    reader: Reader,
    now: Date,
  ): StatusReport<object> {
    const worst = worstOf(failures);
    if (!worst) return this.report(cr, failures, reader, now);
    const readiness = failureReadiness(worst);
    try {
      return { ...this.report(cr, failures, reader, now), readiness };
    } catch {
      return { readiness };
    }
  }

  private report(
    cr: LiveResource,
    failures: readonly Failure[],
    reader: Reader,
    now: Date,
  ): StatusReport<object> {
    const children = this.children(cr, reader);
    if (!this.own.status) return { readiness: worstReadiness(children.map(childReadiness)) };
    const related = (this.owning.related ?? []).flatMap((type) => reader.mappedTo(type, keyOf(cr)));
    return this.own.status({ cr: cr as never, children, related, failures, now });
  }

  private children(cr: LiveResource, reader: Reader): AnyObject[] {
    return this.owning.children.flatMap((type) => reader.controlledBy(type, cr.metadata.uid ?? ''));
  }
}

function hasMade(changes: ChangeSet): boolean {
  return changes.some(({ action }) => action === 'created' || action === 'recreated');
}
