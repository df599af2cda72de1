import { isDeepStrictEqual } from 'node:util';
import type { Change, ChangeSet, FieldConflict } from '../../contract/change.js';
import type { Controller } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import { keyOf, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { DriftMode, Explanation, Plan } from '../../contract/plan.js';
import { Api } from '../../client/api.js';
import type { Transport } from '../../client/transport.js';
import { Metrics } from '../../telemetry/metrics.js';
import { Memory } from '../steps/memory.js';
import type { Hand, HandledStep } from '../plan/hand.js';
import { handlersOf, interpret } from '../plan/interpret.js';
import type { Handlers, InterpretOptions, PlanOutcome } from '../plan/interpret.js';
import { MAX_ROUNDS, Planning } from '../plan/planning.js';
import { DryRun, visible, withoutPicks } from './dry-run.js';
import type { Tried } from './dry-run.js';
import { isMap } from '../../values/json.js';

/**
 * Outcome for an object.
 *
 * - `created`, `changed`, `deleted`, `unchanged`: as the words say.
 * - `recreated`: deleted and created again.
 * - `failed`: refused; `error` says why.
 * - `skipped`: not tried, because something before it failed.
 */
export type PreviewAction =
  'created' | 'changed' | 'recreated' | 'deleted' | 'unchanged' | 'failed' | 'skipped';

export interface ObjectPreview {
  readonly ref: ObjectRef;
  readonly action: PreviewAction;
  /** Object as it is, whole. @default - none is there, or nothing was to be found out */
  readonly before?: AnyObject;
  /**
   * Object as it would be: whole, or what is applied where it would be made.
   * @default - none: the object would go, or stays, or no dry run of a foreign step shows it
   */
  readonly after?: AnyObject;
  readonly error?: OperatorError;
  /** Whether its pods stay, where it would be recreated: the next one takes them over. @default false */
  readonly keepsPods?: boolean;
  /** Object that it would wait for. @default - nothing */
  readonly waitsFor?: ObjectRef;
  /** Fields that would be taken from other managers. */
  readonly takes: readonly FieldConflict[];
  /** Fields that would be left out, since others own them. */
  readonly leaves: readonly FieldConflict[];
  /** Fields that would go with the manager that set them, where the object is taken over. @default - none */
  readonly drops?: readonly FieldConflict[];
  /** Whether it is an object of others, which a foreign step deletes. @default false */
  readonly isOthers?: boolean;
}

/** Takes up what was found of an object; one may be in a plan twice: the last result counts, skipped and unchanged ones aside. */
function note(objects: Map<string, ObjectPreview>, found: ObjectPreview): void {
  const id = objectId(found.ref);
  const known = objects.get(id);
  const saysLess = found.action === 'unchanged' || found.action === 'skipped';
  if (known && saysLess) return;
  const leaves = [...(known?.leaves ?? []), ...found.leaves];
  objects.set(id, { ...found, leaves });
}

export interface Preview {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
  /** The same as things are, where something is touched for others than the custom resources that are given. */
  readonly explainedBefore: readonly Explanation[];
}

/** A custom resource, as it is and as it would be. */
export interface GivenResource {
  /** Object as it is. @default - none: the object would be new */
  readonly before?: AnyObject;
  readonly after: AnyObject;
}

export interface PreviewProps {
  readonly controllers: readonly Controller[];
  readonly given: readonly GivenResource[];
  readonly transport: Transport;
  /** The namespaces that the operator watches. @default - all */
  readonly namespaces?: readonly string[];
  /** Mode for objects whose steps don't give one. @default correct */
  readonly drift?: DriftMode;
  readonly now: () => Date;
  /** Whether blocking the deletion of an owner before its object is tried as well. @default false */
  readonly blocking?: boolean;
  /**
   * See `PlanningProps.ownedSelector`; what it selects is kept whole, and compared without being read one by one.
   * @default - whole lists are read, and little of them is kept
   */
  readonly ownedSelector?: string;
}

/** Preview of one controller. */
export class ControllerPreview {
  private readonly dryRun: DryRun;
  private readonly planning: Planning;
  private readonly hand: Hand;
  private readonly handlers: Handlers;

  constructor(
    private readonly controller: Controller,
    private readonly props: PreviewProps,
  ) {
    const { transport, given, namespaces, drift, blocking = false, ownedSelector } = props;
    this.dryRun = new DryRun(transport, { blocking, keepsLists: ownedSelector !== undefined });
    this.planning = new Planning({
      ...{ controller, transport: this.dryRun, given: given.map(({ after }) => after) },
      ...(namespaces && { namespaces }),
      ...(ownedSelector !== undefined && { ownedSelector }),
    });
    this.handlers = handlersOf(controller.handlers);
    this.hand = this.planning.hand(true, drift);
  }

  /** Keys that the custom resources map to, as they are and as they would be. */
  keys(): readonly string[] {
    const { given } = this.props;
    return this.planning.keysOf(given.flatMap(({ before, after }) => [after, ...(before ? [before] : [])]));
  }

  async preview(key: string): Promise<Preview> {
    const objects = new Map<string, ObjectPreview>();
    const explanations: Explanation[] = [];
    const explainedBefore: Explanation[] = [];
    const made = new Set<string>();
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      const now = this.props.now();
      const { plan, explained } = await this.planning.plan(key, now);
      if (round === 1) {
        explanations.push(...explained);
        explainedBefore.push(...(await this.explainedBefore(key, now, explained)));
      }
      await this.planning.look(plan.steps);
      const { changes, conclusion } = await this.carryOut(plan, made, objects);
      const { error } = plan;
      if (error) note(objects, { ref: this.refOfKey(key), action: 'failed', error, takes: [], leaves: [] });
      if (conclusion.next !== 'now') break;
      const generated = plan.steps.flatMap((step) => (step.do === 'generate' ? objectId(step.object) : []));
      this.pretend(changes, objects, made, generated);
    }
    return { objects: [...objects.values()], explanations, explainedBefore };
  }

  /** Explains things as they are, where something is touched for others than the custom resources that are given. */
  private async explainedBefore(
    key: string,
    now: Date,
    explained: readonly Explanation[],
  ): Promise<readonly Explanation[]> {
    const touching = explained.filter(({ touches }) => touches);
    const given = new Set(touching.length > 0 ? this.props.given.map(({ after }) => objectId(after)) : []);
    if (!touching.some(({ of }) => !given.has(objectId(of)))) return [];
    this.lay(({ before }) => before);
    try {
      return (await this.planning.plan(key, now)).explained;
    } finally {
      this.lay(({ after }) => after);
    }
  }

  /** Puts one state of the custom resources in place of the other. */
  private lay(state: (given: GivenResource) => AnyObject | undefined): void {
    for (const given of this.props.given) {
      const store = this.planning.reader.store(given.after);
      store.gone(keyOf(given.after));
      const object = state(given);
      if (object) store.observed(object);
    }
  }

  /** @param made what exists in the dry run alone, so that nothing can be tried on it */
  private async carryOut(
    plan: Plan,
    made: ReadonlySet<string>,
    objects: Map<string, ObjectPreview>,
  ): Promise<PlanOutcome> {
    const steps = plan.steps.filter((step) => step.do === 'barrier' || !made.has(objectId(step.object)));
    // What waits is tried all the same: it follows.
    const options = { waits: false, status: false, pretends: true };
    const tried = await previewPlan({ ...plan, steps }, this.hand, this.dryRun, this.handlers, options);
    // Where a plan has words, these say which objects of others go, and why.
    const { explains = false } = this.controller;
    for (const found of tried.objects) if (!(explains && found.isOthers)) note(objects, found);
    // What exists in the dry run alone is completed.
    const handed = new HandedOver(plan.steps);
    for (const id of handed.objects.filter((id) => made.has(id))) {
      const known = objects.get(id);
      if (known?.after) objects.set(id, { ...known, after: handed.laidOver(known.after) });
    }
    return tried.outcome;
  }

  /** Takes what was done in the dry run for done, so that the next plan goes on from there. */
  private pretend(
    changes: ChangeSet,
    objects: ReadonlyMap<string, ObjectPreview>,
    made: Set<string>,
    generated: readonly string[],
  ): void {
    for (const { ref, action } of changes) {
      const id = objectId(ref);
      const { namespace, name } = ref;
      const store = this.planning.reader.store({
        ...ref,
        metadata: { name, ...(namespace !== undefined && { namespace }) },
      });
      const isGenerated = generated.includes(id);
      if (action === 'deleted' || isGenerated) store.gone(objectKey(ref.namespace, ref.name));
      const answer = this.dryRun.tried.get(id)?.after;
      if ((objects.get(id)?.action !== 'created' && !isGenerated) || !answer) continue;
      made.add(id);
      // What is generated in a dry run is another one each time, and so would be its checksum, which the UID keys.
      const { uid, ...metadata } = answer.metadata;
      store.observed(isGenerated ? { ...answer, metadata } : answer);
    }
  }

  private refOfKey(key: string): ObjectRef {
    const given = this.props.given.find(({ after }) => keyOf(after) === key);
    return given ? refOf(given.after) : { apiVersion: '', kind: this.controller.kind, name: key };
  }
}

/**
 * Previews what the controllers would do if custom resources were as they are given.
 *
 * **Guarantees.** Nothing is written. Plans, ownership and shared objects are judged by the code that `run` judges them
 * by.
 *
 * **Caveats.** Where an object has to be deleted before it is created again, its defaults aren't known. What would follow
 * from what Kubernetes does of all this, such as a rollout, isn't either.
 *
 * @throws ApiError, or whatever the transport throws, where something that a plan needs can't be read
 */
export async function preview(props: PreviewProps): Promise<Preview> {
  const parts: Preview[] = [];
  for (const controller of props.controllers) {
    const one = new ControllerPreview(controller, props);
    for (const key of one.keys()) parts.push(await one.preview(key));
  }
  return {
    objects: parts.flatMap(({ objects }) => objects),
    explanations: parts.flatMap(({ explanations }) => explanations),
    explainedBefore: parts.flatMap(({ explainedBefore }) => explainedBefore),
  };
}

/** Metrics that are never scraped: they count writes. */
const unscraped = new Metrics();

/** Returns a hand that only tries, on what another one knows. */
export function dryHand(hand: Omit<Hand, 'api' | 'events' | 'isDry' | 'metrics'>, dryRun: DryRun): Hand {
  const { clock, drift, log, memory, reader, writer, signal, stopping } = hand;
  return {
    ...{ api: new Api(dryRun), memory: new Memory(clock, memory.lastApplies) },
    ...{ clock, drift, log, metrics: unscraped, events: { send: () => undefined } },
    ...{ reader, writer: { ...writer, isDry: true }, isDry: true, signal, stopping },
  };
}

/** Carries a plan out by a dry hand, and returns what would become of its objects. */
export async function previewPlan(
  plan: Plan,
  hand: Hand,
  dryRun: DryRun,
  handlers: Handlers,
  options?: InterpretOptions,
): Promise<{ readonly outcome: PlanOutcome; readonly objects: readonly ObjectPreview[] }> {
  const handed = new HandedOver(plan.steps);
  const steps = plan.steps.map((step) =>
    step.do === 'barrier' ? step : { ...step, object: handed.without(step.object) },
  );
  const outcome = await interpret({ ...plan, steps }, hand, handlers, options);
  const active = plan.steps.flatMap((step) => (step.do === 'barrier' ? [] : step));
  const objects = outcome.changes.flatMap((change, index) => {
    const step = active[index] as HandledStep;
    if (step.do === 'handOver') return [];
    const found = previewOf(change, step, handed, dryRun.tried.get(objectId(step.object)));
    const isHeld = change.waitsFor && found.action !== 'unchanged' && found.action !== 'failed';
    const isOthers = found.action === 'deleted' && step.do !== 'prune';
    return [{ ...found, ...(isHeld && { waitsFor: change.waitsFor.ref }), ...(isOthers && { isOthers }) }];
  });
  return { outcome, objects };
}

/** Returns what a step would do, by its outcome, and by its dry run where there was one. */
function previewOf(
  change: Change,
  { do: name, object, ...step }: HandledStep,
  handed: HandedOver,
  tried: Tried | undefined,
): ObjectPreview {
  const { ref, action, error, conflicts: leaves = [] } = change;
  const base = { ref, takes: [], leaves };
  if (error) return { ...base, action: 'failed', error };
  const keepsPods = 'recreate' in step && step.recreate === 'orphan';
  if (action === 'recreated') return { ...base, action, after: object, ...(keepsPods && { keepsPods }) };
  if (action === 'deleted') return { ...base, action };
  if (action === 'drifted') return { ...base, action: 'unchanged', leaves: leftIn(change) };
  if (action === 'skipped') return { ...base, action };
  if (!tried) {
    // A step of the engine that applies nothing changes no more than the records of field managers.
    const isSeen = name.includes('/') && action !== 'unchanged';
    return { ...base, action: !isSeen ? 'unchanged' : action === 'created' ? action : 'changed' };
  }
  const { before, takes, drops } = tried;
  if (!before) return { ...base, action: 'created', after: handed.laidOver(object) };
  const after = handed.laidOver(withoutPicks(tried.after, before, object));
  if (isDeepStrictEqual(visible(before), visible(after))) return { ...base, action: 'unchanged' };
  return { ...base, action: 'changed', before, after, takes, ...(drops && { drops }) };
}

/** Returns the drift that the drift mode leaves. */
function leftIn({ drift }: Change): FieldConflict[] {
  const manager = drift?.managers.join(', ') ?? '';
  return (drift?.fields ?? []).map((field) => ({ field, manager }));
}

type Path = readonly string[];
type Map_ = Readonly<Record<string, unknown>>;

/** A field that passes to another manager, and what it comes to. */
interface Handed {
  readonly path: Path;
  readonly value: unknown;
}

/**
 * The fields that a plan hands over. A dry run leaves nothing on which another could build, so they are left out of what
 * is tried, and set in what it came to.
 */
export class HandedOver {
  private readonly byObject = new Map<string, readonly Handed[]>();

  constructor(steps: Plan['steps']) {
    const handing = steps.filter((step) => step.do === 'handOver');
    for (const [id, ofOne] of Map.groupBy(handing, ({ object }) => objectId(object))) {
      const applied = steps
        .filter((step) => step.do === 'own')
        .filter(({ object }) => objectId(object) === id);
      const of = ({ object }: { readonly object: AnyObject }): AnyObject => object;
      this.byObject.set(id, handedIn(ofOne.map(of), applied.map(of)));
    }
  }

  /** The objects of which something is handed over. */
  get objects(): readonly string[] {
    return [...this.byObject.keys()];
  }

  /** Returns what is tried of an apply. */
  without(object: AnyObject): AnyObject {
    return this.of(object).reduce((left, { path }) => withoutPath(left, path), object);
  }

  /** Returns an object as it is once everything has been handed over. */
  laidOver(object: AnyObject): AnyObject {
    return this.of(object).reduce((left, { path, value }) => withPath(left, path, value), object);
  }

  private of(object: AnyObject): readonly Handed[] {
    return this.byObject.get(objectId(object)) ?? [];
  }
}

/** Returns the fields; the apply that follows decides their values, else the step that hands over. */
function handedIn(handing: readonly AnyObject[], applied: readonly AnyObject[]): Handed[] {
  return handing.flatMap((from) =>
    leaves(from).map((path) => {
      const values = [...applied, from].map((object) => valueAt(object, path));
      return { path, value: values.find((value) => value !== undefined) };
    }),
  );
}

/** Returns the paths of all values but the identity. */
function leaves({ apiVersion, kind, metadata, ...content }: AnyObject): Path[] {
  return leavesOf(content, []);
}

function leavesOf(value: unknown, path: Path): Path[] {
  if (!isMap(value)) return value === undefined ? [] : [path];
  return Object.entries(value).flatMap(([name, member]) => leavesOf(member, [...path, name]));
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce(
    (at: unknown, name) => (isMap(at) && Object.hasOwn(at, name) ? at[name] : undefined),
    value,
  );
}

function withoutPath<T extends Map_>(map: T, [name = '', ...rest]: Path): T {
  if (!Object.hasOwn(map, name)) return map;
  const { [name]: member, ...others } = map;
  const left = rest.length > 0 && isMap(member) ? withoutPath(member, rest) : undefined;
  const isGone = left === undefined || Object.keys(left).length === 0;
  return { ...others, ...(!isGone && { [name]: left }) } as unknown as T;
}

function withPath<T extends Map_>(map: T, [name = '', ...rest]: Path, value: unknown): T {
  const member = Object.hasOwn(map, name) ? map[name] : undefined;
  const inner = rest.length === 0 ? value : withPath(isMap(member) ? member : {}, rest, value);
  return { ...map, [name]: inner };
}
