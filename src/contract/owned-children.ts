import type { ChangeSet } from './change.js';
import { keyOf, watchesFor } from './child-types.js';
import type { OwningKind } from './child-types.js';
import { dateConditions, standardConditions } from './conditions.js';
import type { Condition, Readiness } from './conditions.js';
import type { ApplyStep, Controller, Plan, Reader, Watch } from './controller.js';
import type { DeleteStep } from './delete-step.js';
import { OperatorError } from './error.js';
import {
  correctionEvent,
  failureEvent,
  failureReadiness,
  failuresOf,
  stalledEvent,
  worstOf,
} from './failures.js';
import type { HandOver, HandOverFunction } from './hand-over.js';
import type { Render } from './kind.js';
import { childrenFieldManager, statusFieldManager } from './names.js';
import { describeRef, refOf } from './object.js';
import type { AnyObject, CustomResource, OwnerReference } from './object.js';
import { describeThrown } from './origin.js';
import { childReadiness, worstReadiness } from './readiness.js';
import { groupKind } from './resource.js';
import type { Failure, StatusFunction, StatusReport } from './status.js';

type LiveResource = CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>;

/** What the author of a kind has written beside its construct; the adapter handles kinds of every type. */
export interface OwnFunctions {
  readonly status?: StatusFunction<never, object>;
  readonly handOver?: HandOverFunction<never>;
}

/** The status, and why it can't say more. */
interface Told {
  readonly readiness: Readiness;
  /** When it says something else although nothing happens. */
  readonly requeueAt?: Date;
  readonly status: object;
  /** What the status function of the kind has thrown. */
  readonly error?: OperatorError;
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
    const told = oncePerOutcome((changes) => this.tell(cr, failuresOf(changes, error), reader, now));
    return {
      apply: [...handOver.map((step) => ({ ...step, handOver: true })), ...this.applySteps(cr, rendered)],
      delete: error ? [] : this.pruneSteps(cr, rendered, reader),
      status: [
        {
          target: cr,
          fieldManager: statusFieldManager(this.owning.type.kind),
          status: (changes) => told(changes).status,
        },
      ],
      events: [
        {
          regarding,
          event: (changes) => {
            const { error: thrown, readiness } = told(changes);
            const failure = worstOf(failuresOf(changes, error)) ?? thrown;
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

  private wanted(cr: LiveResource, reader: Reader): Wanted | OperatorError {
    try {
      return { rendered: this.render(this.owning, cr), handOver: this.handOver(cr, reader) };
    } catch (error) {
      if (error instanceof OperatorError) return error;
      const message = describeThrown(error);
      return new OperatorError({ reason: 'RenderFailed', message, isBug: true, cause: error });
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

  /** A failure is the news, but what the children say stays of use, where they are enough to say something. */
  private tell(cr: LiveResource, failures: readonly Failure[], reader: Reader, now: Date): Told {
    const worst = worstOf(failures);
    const news = worst && { readiness: failureReadiness(worst) };
    try {
      const report = this.report(cr, failures, reader, now);
      const { requeueAt } = report;
      const all = { ...report, ...news };
      return {
        ...{ status: statusOf(cr, all, now), readiness: all.readiness },
        ...(requeueAt && { requeueAt }),
      };
    } catch (thrown) {
      const error = statusFailed(cr, thrown, worst !== undefined);
      const all = news ?? { readiness: failureReadiness(error) };
      return { status: statusOf(cr, all, now), readiness: all.readiness, error };
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

function statusOf(
  cr: LiveResource,
  { readiness, conditions = [], fields }: StatusReport<object>,
  now: Date,
): object {
  const { generation } = cr.metadata;
  const all = [...standardConditions(readiness), ...conditions];
  return {
    ...fields,
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: dateConditions(all, cr.status?.conditions ?? [], now, generation),
  };
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
