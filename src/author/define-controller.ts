import type { ChangeSet } from '../contract/change.js';
import type { Readiness } from '../contract/conditions.js';
import type { Controller, Reader, Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { Kind, StandaloneController } from '../contract/kind.js';
import { childrenFieldManager } from '../contract/names.js';
import { byName, describeRef, keyOf, objectId, ownerOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { NOTHING } from '../contract/plan.js';
import type { HandOverStep, OwnStep, PruneStep, Step } from '../contract/plan.js';
import { groupKind } from '../contract/resource.js';
import { controlOf } from '../values/control.js';
import { operatorErrorOf, reading } from '../values/origin.js';
import { requireReadable } from '../values/projections.js';
import { childReadiness, worstReadiness } from '../values/readiness.js';
import { kindOf } from './define-kind.js';
import { checkNames, isLabel, misdefined, NO_NAME } from './definition.js';
import { keepWithoutManagedFields, ownersKeys } from './owned-children.js';
import * as statuses from './status.js';
import type { TypedCrd } from './typed-crd.js';

/** Plan for one custom resource. */
export interface PlannedResource<Status extends object> {
  /** Steps, in their order. What it has made and no longer plans needs a step that prunes it. @default - none */
  readonly steps?: readonly (
    (Omit<OwnStep, 'owner' | 'fieldManager'> & Partial<OwnStep>) | PruneStep | HandOverStep
  )[];
  /**
   * Returns the status after the steps, whose results the reader then shows. The error of a failed one stands in the conditions.
   * @default - ready when the objects of `own` steps are, by the rules of kstatus
   */
  readonly status?: (changes: ChangeSet) => statuses.StatusReport<Status>;
}

/** Parts of a kind on the core contract. */
export interface ControllerProps<Spec, Status extends object> extends Pick<Controller, 'settle' | 'lookups'> {
  /** See `KindProps.crd`. */
  readonly crd: TypedCrd<Spec, Status> | string | URL;
  /** Work of its operator, as in `deletes finished Pods`: `synth` says it, since it renders nothing without a cluster. */
  readonly does: string;
  /**
   * Types that the plan reads. Without `mapsTo`, objects have the key by `keyOf`, or that of the custom resource which owns them. Those that
   * the plan never creates, by `writes`, are `readOnly`: `keep` may leave them out.
   */
  readonly watches: readonly (Omit<Watch, 'mapsTo'> & Partial<Pick<Watch, 'mapsTo'>>)[];
  /**
   * Returns the key of a custom resource or of a watched object, such as its namespace: a change of one plans for all custom resources
   * of the key.
   * @default - each custom resource has its own
   */
  readonly keyOf?: (object: AnyObject) => string;
  /** Returns the plan of a custom resource. It must be pure; its conditions show an `OperatorError` that this throws, and a bug as `PlanFailed`. */
  readonly plan: (input: {
    readonly cr: CustomResource<Spec, Status>;
    readonly key: string;
    readonly reader: Reader;
    /** The only clock to read. */
    readonly now: Date;
  }) => PlannedResource<Status>;
}

/** Parts of a controller without custom resources, which has one plan for all that it watches. */
export interface StandaloneProps extends Pick<Controller, 'settle' | 'lookups'> {
  /** In lower case, as `--kinds` takes it; its field manager is `<name>-controller`. */
  readonly name: string;
  /** Types that the plan reads: a change of any object plans again. Those that it never creates, by `writes`, are `readOnly`. */
  readonly watches: readonly Omit<Watch, 'mapsTo'>[];
  /** Returns the steps. It must be pure; an error that it throws is logged and counted, and the next change plans again. */
  readonly plan: (input: {
    readonly reader: Reader;
    /** Key under which the reader has all objects, by `mappedTo`. */
    readonly key: string;
    /** The only clock to read. */
    readonly now: Date;
  }) => readonly ((Omit<OwnStep, 'fieldManager'> & Partial<OwnStep>) | PruneStep | HandOverStep)[];
}

const REQUIRED = ['crd', 'does', 'watches', 'plan'];

/**
 * Makes an operator of a plan, for what is more than "one custom resource, its own children": objects of others, or what several custom
 * resources decide together.
 *
 * **Caveats.** What a custom resource owns has to be in its namespace, unless it has none itself: then it goes with it.
 *
 * @throws OperatorError `InvalidDefinition` when the CRD can't be read, or an option is missing or unknown
 */
export function defineController<Spec, Status extends object = Record<string, unknown>>(
  props: ControllerProps<Spec, Status>,
): Kind;
/**
 * Makes a controller that has no custom resources, and one plan for all that it watches.
 * @throws OperatorError `InvalidDefinition` when an option is missing, unknown or wrong
 */
export function defineController(props: StandaloneProps): StandaloneController;
export function defineController(
  props: ControllerProps<unknown, object> | StandaloneProps,
): Kind | StandaloneController {
  if (!('crd' in props) && 'name' in props) return standalone(props);
  const names = [...REQUIRED, 'keyOf', 'settle', 'lookups'];
  checkNames('defineController', props, names, 'takes { crd, does, watches, plan }', REQUIRED);
  const { statusFields, ...kind } = kindOf(props.crd);
  const message = `${kind.type.kind} renders nothing without a cluster, where its operator ${props.does}`;
  return {
    ...kind,
    rendering: {
      together: (crs) => ({ manifests: [], findings: crs.map((of) => ({ level: 'note', of, message })) }),
    },
    // The adapter knows no kind's types.
    controllers: () => [controllerOf(kind, props as unknown as ControllerProps<never, object>, statusFields)],
  };
}

/** Returns a watch whose `keep` may leave objects out, unless the plan creates some of its type. */
function withReadOnly<Given extends Partial<Watch>>(watch: Given): Given & Pick<Watch, 'readOnly'> {
  return { readOnly: !watch.writes?.includes('create'), ...watch };
}

/** Checks that what is to be owned is of a type of which it is known who owns what. @throws OperatorError `PlanFailed` where it isn't */
function requireCreated(
  watches: readonly Partial<Watch>[],
  steps: readonly (Pick<OwnStep, 'do' | 'object'> | Exclude<Step, OwnStep>)[],
): void {
  const created = new Set(
    watches.flatMap(({ type, writes }) => (type && writes?.includes('create') ? groupKind(type) : [])),
  );
  for (const step of steps)
    if (step.do === 'own' && !created.has(groupKind(step.object)))
      throw new OperatorError({
        reason: 'PlanFailed',
        message: `${describeRef(step.object)} is owned, and its watch doesn't say so; give it writes: ['create', 'patch', 'delete']`,
        isBug: true,
      });
}

function missing(object: AnyObject): Readiness {
  return { phase: 'progressing', reason: 'NotApplied', message: `${describeRef(object)} isn't there yet` };
}

function standalone(props: StandaloneProps): StandaloneController {
  const required = ['name', 'watches', 'plan'];
  const names = [...required, 'settle', 'lookups'];
  checkNames('defineController', props, names, 'takes { name, watches, plan }', required);
  const { name, watches, plan, ...others } = props;
  if (!isLabel(name)) throw misdefined('defineController: name', NO_NAME);
  const fieldManager = childrenFieldManager(name);
  const reconcile: Controller['reconcile'] = (key, reader, now) => {
    try {
      const steps = reading(
        watches.map(({ type }) => type),
        () => plan({ reader, key, now }),
      );
      requireCreated(watches, steps);
      return {
        ...NOTHING,
        steps: steps.map((step) => (step.do === 'own' ? { fieldManager, ...step } : step)),
      };
    } catch (error) {
      return { ...NOTHING, error: operatorErrorOf(error, 'PlanFailed') };
    }
  };
  const watched = watches.map((watch) => ({ ...withReadOnly(watch), mapsTo: () => [name] }));
  return { name, controllers: () => [{ ...others, name, kind: name, watches: watched, reconcile }] };
}

function controllerOf(
  { name, type }: Pick<Kind, 'name' | 'type'>,
  { crd: _, does: _does, watches, keyOf: shared, plan, ...others }: ControllerProps<never, object>,
  statusFields: readonly string[] | undefined,
): Controller {
  const fieldManager = childrenFieldManager(type.kind);
  const mapsTo = (object: AnyObject) => (shared ? [shared(object)] : ownersKeys(type, object));
  const watched = watches.map((watch) => ({ mapsTo, ...withReadOnly(watch) }));
  const types = watches.map((watch) => watch.type);
  const isOwner = watches.some(({ writes }) => writes?.includes('create'));

  function planOf(cr: statuses.LiveResource, key: string, reader: Reader, now: Date) {
    let steps: readonly (OwnStep | PruneStep | HandOverStep)[] = [];
    let isPaused = false;
    let report: PlannedResource<object>['status'];
    let thrown: OperatorError | undefined;
    try {
      requireReadable([cr]);
      const control = controlOf(cr.metadata.annotations ?? {});
      isPaused = control.isPaused ?? false;
      const planned = reading(types, () => plan({ cr: cr as never, key, reader, now }));
      const defaults = { owner: ownerOf(cr), fieldManager, ...(control.drift && { drift: control.drift }) };
      requireCreated(watches, planned.steps ?? []);
      steps = (planned.steps ?? []).map((step) => (step.do === 'own' ? { ...defaults, ...step } : step));
      report = planned.status;
    } catch (error) {
      thrown = operatorErrorOf(error, 'PlanFailed');
    }
    const reportOn = (changes: ChangeSet) => {
      const ids = new Set(steps.map(({ object }) => objectId(object)));
      const failed = changes.flatMap(({ ref, error }) =>
        error && ids.has(objectId(ref)) ? { ref, error } : [],
      );
      const failures = thrown ? [{ error: thrown }, ...failed] : failed;
      const { report: said, error } = statuses.reportOf(cr, statusFields, failures, () => {
        const own = steps.flatMap((step) => (step.do === 'own' ? step.object : []));
        const judged = own.map((object) => {
          const live = reader.get(object, keyOf(object));
          return live ? childReadiness(live) : missing(object);
        });
        return { readiness: worstReadiness(judged), ...report?.(changes) };
      });
      const failure = statuses.worstOf(failures) ?? error;
      const { fields, readiness: judged = worstReadiness([]), conditions = [], requeueAt } = said;
      const shown = isPaused ? statuses.asPaused(judged) : judged;
      const generation = isPaused ? statuses.observedGenerationOf(cr) : cr.metadata.generation;
      const paused = isPaused ? [statuses.pausedCondition(cr)] : [];
      const all = [
        ...statuses.standardConditions(failure ? statuses.failureReadiness(failure) : shown),
        ...paused,
        ...conditions,
      ];
      const status = {
        ...fields,
        ...(generation !== undefined && { observedGeneration: generation }),
        conditions: statuses.dateConditions(all, cr.status?.conditions ?? [], now, generation),
      };
      const event = failure ? statuses.failureEvent(cr, failure) : statuses.stalledEvent(cr, judged);
      return { status, events: [event], error, requeueAt };
    };
    return { cr, steps: isPaused ? [] : steps, thrown, reportOn };
  }

  return {
    ...{ ...others, name, kind: type.kind },
    watches: [
      {
        ...{ type, keep: keepWithoutManagedFields, mapsTo: (cr) => [(shared ?? keyOf)(cr)] },
        // The owner of objects that block its deletion has to be one that we may finalize.
        writes: isOwner ? ['status', 'finalizers'] : ['status'],
      },
      ...watched,
    ],
    reconcile(key, reader, now) {
      const crs = byName(reader.mappedTo(type, key)) as unknown as readonly statuses.LiveResource[];
      const living = crs.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const plans = living.map((cr) => planOf(cr, key, reader, now));
      const error = statuses.worstOf(plans.flatMap(({ thrown }) => (thrown ? { error: thrown } : [])));
      return {
        steps: plans.flatMap(({ steps }) => steps),
        ...(error && { error }),
        conclude: (changes) => {
          const { reports, ...conclusion } = statuses.concludeEach(type.kind, plans, (one) =>
            one.reportOn(changes),
          );
          const [next] = reports.flatMap(({ requeueAt }) => requeueAt ?? []).sort((a, b) => +a - +b);
          const unsaid = statuses.worstOf(reports.flatMap(({ error }) => (error ? { error } : [])));
          return { ...conclusion, ...(next && { next }), ...(unsaid && { error: unsaid }) };
        },
      };
    },
  };
}
