import { url as inspectorUrl } from 'node:inspector';
import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../contract/error.js';
import type {
  KindConstruct,
  KindContext,
  ReferencedByName,
  Render,
  Rendered,
  RenderedKind,
  RenderInputs,
} from '../contract/kind.js';
import { describeRef, keyOf, objectId } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { controlOf } from '../values/control.js';
import { contentHash } from '../values/json.js';
import { setLatest } from '../values/latest.js';
import { readsSecrets } from '../values/origin.js';
import { differences, formatFieldPath, showValue } from '../values/path.js';
import type { Difference } from '../values/path.js';
import { observedOf, recordOf, requireReadable } from '../values/projections.js';
import type { IsCurrent } from '../values/projections.js';
import { Course, renderObserving } from './settling.js';
import type { SteadyRendering } from './settling.js';
import { ownerOf, contentOf, readableMetadata, readOf, synthesize } from './synthesize.js';
import { inTime, MAX_MILLISECONDS, StoppedRender, Stops } from './time-limit.js';

/**
 * Constructs of this project, whose tests show that they end, and depend on their props alone: they are rendered without a limit of
 * time, which costs a quarter of a millisecond, and once.
 */
export const OWN_CONSTRUCTS = new WeakSet<KindConstruct<never>>();

/** Number of custom resources that are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** Number of renderings that are kept for the passes that follow soon: with each status of a child. */
const MAX_RECENT = 512;
const RECENT_MILLISECONDS = 10_000;

/** Inputs of a rendering. */
interface Basis {
  /** Hash of the custom resource, and of what it was rendered from. */
  readonly inputs: string;
  readonly files: unknown;
}

/** Renderings of one custom resource. */
interface Memory {
  /** Inputs that it was rendered from in time: it ends for these. */
  ended?: Basis;
  /** Inputs for which it was stopped, and is not tried again. */
  stopped?: { readonly basis: Basis; readonly error: StoppedRender };
  /** Rendering that was accepted last. */
  accepted?: { readonly basis: Basis; readonly hashes: string };
  /** Renderings since an edit, of a kind that observes its children, or has references. */
  settling?: { readonly basis: Basis; readonly course: Course };
  /** Ids of what was rendered last, of a kind that observes its children. */
  last?: ReadonlySet<string>;
}

/** Children of a custom resource as they are, and what becomes of its rendering. */
interface LiveChildren {
  /** Objects with the owner reference, whatever wrote them. */
  readonly controlled: readonly AnyObject[];
  /** Controlled objects that were applied. */
  readonly own: readonly AnyObject[];
  readonly now: Date;
  /** Whether it is applied, so that it has to be steady. */
  readonly isFinal: boolean;
  /** Whether the next rendering observes what was rendered before this one. */
  readonly isPaused: boolean;
}

/**
 * Renders the custom resources of a kind for its controller.
 *
 * **Guarantees.** A construct is stopped that takes longer than 5 s, once for each custom resource and edit; it rests for a
 * namespace in which that happens again and again, and for all after several in a row. What renders to something else each time
 * is refused; what keeps changing what it reads is held at one rendering for a while.
 */
export class Renderer {
  private readonly memories = new Map<string, Memory>();
  private readonly stops = new Stops();
  /** Renderings that were found steady, by custom resource, and when. */
  private readonly recent = new Map<string, { basis: Basis; rendered: Rendered; at: number }>();

  /**
   * @param maxMilliseconds time after which a construct is stopped
   * @param clock monotonic time in milliseconds
   */
  constructor(
    private readonly kind: RenderedKind,
    private readonly context: Pick<KindContext, 'render' | 'inForce'>,
    private readonly maxMilliseconds = MAX_MILLISECONDS,
    private readonly clock = () => performance.now(),
  ) {}

  /**
   * @returns the latest rendering; where they don't settle, an earlier one, with `NeverSettles`, until they have been the same for
   * a while, others are seen to change what is read, or the custom resource or the policy changes
   * @throws OperatorError what the renderer throws; `RenderFailed` where the construct takes too long, or rests; `NotDeterministic`
   */
  render(
    cr: CustomResource,
    inputs: RenderInputs,
    live: LiveChildren,
  ): SteadyRendering & { readonly observed?: readonly AnyObject[]; readonly isCurrent?: IsCurrent } {
    if (!this.kind.observes) return this.steady(cr, inputs, live);
    const memory = this.memoryOf(cr);
    const given = (objects: readonly AnyObject[], isCurrent: IsCurrent): RenderInputs => {
      requireReadable(objects);
      return { ...inputs, observed: observedOf(objects, isCurrent) };
    };
    const observable = { ...live, types: this.kind.children, ...(memory.last && { last: memory.last }) };
    const once = (objects: readonly AnyObject[], isCurrent: IsCurrent): Rendered => {
      const all = given(objects, isCurrent);
      return this.timed(cr, all, this.basisOf(cr, all));
    };
    const { rendered, observed, isCurrent } = renderObserving(cr, observable, once);
    const rendering = this.steady(cr, given(observed, isCurrent), live, rendered);
    if (!live.isPaused) memory.last = new Set(rendering.rendered.map(objectId));
    return { ...rendering, observed, isCurrent };
  }

  /** @param before rendering of the same inputs that was made already */
  private steady(
    cr: CustomResource,
    inputs: RenderInputs,
    { own, now, isFinal }: LiveChildren,
    before?: Rendered,
  ): SteadyRendering {
    const basis = this.basisOf(cr, inputs);
    const at = now.getTime();
    const recent = isFinal && !before ? this.recentOf(cr, basis, at) : undefined;
    const rendered = before ?? recent ?? this.timed(cr, inputs, basis);
    if (!isFinal) return { rendered };
    if (!recent && this.requireSteady(cr, inputs, basis, rendered, own))
      setLatest(this.recent, keyOf(cr), { basis, rendered, at }, MAX_RECENT);
    const { observed, references, status, related, ...others } = inputs;
    if (!observed && !references && !status && !related) return { rendered };
    const memory = this.memoryOf(cr);
    const edit = this.basisOf(cr, others);
    const course = isSame(memory.settling?.basis, edit)
      ? memory.settling.course.next(cr, rendered, at)
      : new Course(rendered.map(contentHash), at);
    memory.settling = { basis: edit, course };
    return course.applied(rendered, at);
  }

  /** Reports whether an earlier rendering of a custom resource is applied, since the later ones don't settle. */
  isHeld(key: string): boolean {
    return this.memories.get(key)?.settling?.course.isHeld === true;
  }

  /** Forgets a custom resource that has gone. */
  forget(key: string): void {
    this.memories.delete(key);
    this.recent.delete(key);
  }

  /** Returns the rendering of the same inputs a moment ago. */
  private recentOf(cr: CustomResource, basis: Basis, now: number): Rendered | undefined {
    const recent = this.recent.get(keyOf(cr));
    return isSame(recent?.basis, basis) && now - recent.at < RECENT_MILLISECONDS
      ? recent.rendered
      : undefined;
  }

  private memoryOf(cr: CustomResource): Memory {
    const key = keyOf(cr);
    const memory = this.memories.get(key) ?? {};
    this.memories.set(key, memory);
    return memory;
  }

  private basisOf(cr: CustomResource, inputs: RenderInputs): Basis {
    const { metadata, spec = {} } = cr;
    const named = this.kind.readsMetadata ? ` ${contentHash(readableMetadata(cr))}` : '';
    // The generation alone stays where another schema of the CRD changes the spec.
    const edit = `${metadata.uid} ${metadata.generation} ${contentHash(this.kind.decorates ? contentOf(cr) : (spec as object))}${named}`;
    const files = this.context.inForce?.current;
    const { references, ...others } = inputs;
    const read = references ? { ...others, references: digestOf(references) } : others;
    return { inputs: `${edit} ${contentHash(read)}`, files };
  }

  /** Renders within the limit of time, which inputs need only once, and not again where the construct was stopped. */
  private timed(cr: CustomResource, inputs: RenderInputs, basis: Basis): Rendered {
    const { kind, context, stops } = this;
    const memory = this.memoryOf(cr);
    const given = context.inForce ? { ...inputs, ...context.inForce.current } : inputs;
    if (!hasLimit(kind) || isSame(memory.ended, basis)) return context.render(kind, cr, given);
    if (isSame(memory.stopped?.basis, basis)) throw memory.stopped.error;
    const { uid = '', namespace = uid } = cr.metadata;
    const rest = stops.restOf(namespace, this.clock());
    if (rest) {
      const message = `${ownerOf(kind, cr)} isn't rendered: the construct ${kind.construct.name} ${rest.why}; look for an endless loop, or a child process that hangs`;
      const retryAfterMilliseconds = rest.milliseconds;
      throw new OperatorError({ reason: 'RenderFailed', message, retry: 'backoff', retryAfterMilliseconds });
    }
    try {
      const objects = withinLimit(kind, cr, () => context.render(kind, cr, given), this.maxMilliseconds);
      memory.ended = basis;
      stops.ended();
      return objects;
    } catch (error) {
      if (error instanceof StoppedRender) {
        memory.stopped = { basis, error };
        stops.add(namespace, this.clock());
      }
      throw error;
    }
  }

  /**
   * Reports whether a rendering was found steady, and not only taken for it; refuses what the same custom resource doesn't
   * render to again. One that is edited, or under another policy, is
   * rendered twice, unless its children have been made of the same rendering; so is one that is new, but in a burst only
   * before its second write. One whose inputs are those of the accepted rendering has to render to the same again, which also
   * finds what changes with the time of day. Nothing is known after a restart, so a rendering that was refused is checked again.
   * @throws OperatorError `NotDeterministic`
   */
  private requireSteady(
    cr: CustomResource,
    inputs: RenderInputs,
    basis: Basis,
    rendered: Rendered,
    children: readonly AnyObject[],
  ): boolean {
    if (OWN_CONSTRUCTS.has(this.kind.construct)) return true;
    const memory = this.memoryOf(cr);
    const hashes = rendered.map(contentHash);
    const isKnown = isSame(memory.accepted?.basis, basis);
    if (isKnown && memory.accepted?.hashes === hashes.join()) return true;
    const applied = children.map((child) => recordOf(child)?.hash);
    const isApplied = hashes.toSorted().join() === applied.sort().join();
    const isNew = children.length === 0 && this.memories.size > CHECKED_BEFORE_CREATION;
    const again = (): Rendered => this.timed(cr, inputs, basis);
    const isTrusted = !isKnown && (isApplied || isNew);
    const error = isTrusted
      ? undefined
      : unsteadiness(ownerOf(this.kind, cr), rendered, again, readOf(inputs));
    if (error) throw error;
    if (isKnown) throw changesByItself(ownerOf(this.kind, cr));
    memory.accepted = { basis, hashes: hashes.join() };
    return isApplied || !isTrusted;
  }
}

function isSame<T extends Basis>(a: T | undefined, b: Basis): a is T {
  return a?.inputs === b.inputs && a.files === b.files;
}

/** Returns a digest of references. Each object is hashed once, since it is the same one until it changes. */
function digestOf(references: ReferencedByName): string {
  const all = Object.entries(references).map(([name, found]) => [
    name,
    [found].flat().map((object) => object && contentHash(object)),
  ]);
  return JSON.stringify(all);
}

/** Reports whether the construct of a kind is rendered within a limit of time. */
function hasLimit({ construct }: RenderedKind): boolean {
  // A breakpoint stops it for as long as the author looks.
  return !OWN_CONSTRUCTS.has(construct) && inspectorUrl() === undefined;
}

/** Renders within a limit of time, where there is one. @throws StoppedRender */
function withinLimit<T>(
  kind: RenderedKind,
  cr: CustomResource,
  body: () => T,
  milliseconds = MAX_MILLISECONDS,
): T {
  if (!hasLimit(kind)) return body();
  return inTime(milliseconds, body, () => new StoppedRender(ownerOf(kind, cr), kind.construct, milliseconds));
}

/** Constructs that have made the same objects twice. */
const compared = new WeakSet<RenderedKind['construct']>();

/**
 * Renders a custom resource with the construct of its kind, outside a controller.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects, with the keys of their maps
 * sorted, whatever the environment says. The custom resource isn't changed. Every object is plain JSON, is of a
 * type that the kind declares, and is there once; namespaced ones are in the namespace of the custom resource.
 *
 * **Assumptions.** The custom resource is valid and has its defaults. The construct depends on its props alone: the
 * first time that it renders in a process, it is run twice, with another clock and other random numbers, and compared.
 *
 * **Errors.** `InvalidAnnotation`. An OperatorError that the construct throws comes through as it is. Others: `RenderFailed`, also of a construct
 * that is stopped since it has taken 5 s,
 * `UndeclaredChild`, `DuplicateChild`, `InvalidName`, `NameTooLong`, `ForeignNamespace`, `NotDeterministic`.
 */
export const render: Render = (kind, cr, inputs) => {
  if (cr.metadata.annotations) controlOf(cr.metadata.annotations);
  const once = (): Rendered => withinLimit(kind, cr, () => synthesize(kind, cr, inputs));
  const objects = once();
  if (!compared.has(kind.construct)) {
    const again = (): Rendered => withShiftedDateAndRandom(once);
    const error = unsteadiness(ownerOf(kind, cr), objects, again, readOf(inputs));
    if (error) throw error;
    compared.add(kind.construct);
  }
  return objects;
};

/**
 * Renders a custom resource as the API server stores it, with the construct of its kind: for programs that have read it there.
 * Tests take `render` of `cdk8s-reconstruct/testing`, which judges the custom resource by its CRD and fills in the defaults.
 *
 * Guarantees and errors are those of `render`: nothing of the custom resource is checked or filled in.
 */
export const renderStored: Render = render;

const REMEDY =
  'A construct has to depend on its props alone: take clocks, chance and counters out of it (new Date(), Math.random(), randomUUID(), variables outside of it)';
const SECRET_REMEDY =
  'let the spec name a Secret that others make, in place of a password that is generated with each rendering';

/**
 * Renders once more and compares: what differs each time would be applied each time.
 * @param owner names the custom resource, for the message
 * @param read where a Secret is among it, no values are shown
 * @returns `NotDeterministic` where something differs
 */
export function unsteadiness(
  owner: string,
  rendered: readonly AnyObject[],
  again: () => readonly AnyObject[],
  read: readonly unknown[] = [],
): OperatorError | undefined {
  let second: readonly AnyObject[];
  try {
    second = again();
  } catch (error) {
    return notDeterministic(`${owner} can be rendered once, and the next time can't: ${messageOf(error)}`);
  }
  if (isDeepStrictEqual(rendered, second)) return undefined;
  const others = new Map(second.map((object) => [objectId(object), object]));
  for (const object of rendered) {
    const name = describeRef(object);
    const other = others.get(objectId(object));
    if (!other) return notDeterministic(`${owner} renders ${name}, and the next time doesn't`);
    const [difference] = differences(object, other);
    if (difference) return differing(owner, object, difference, readsSecrets(read));
    others.delete(objectId(object));
  }
  const [more] = others.values();
  return more && notDeterministic(`${owner} renders ${describeRef(more)} only the second time`);
}

function differing(
  owner: string,
  object: AnyObject,
  { path, values }: Difference,
  readsSecret: boolean,
): OperatorError {
  const isSecret = groupKind(object) === 'Secret';
  const shown = (value: unknown): string => {
    if (value === undefined) return 'nothing';
    return isSecret || readsSecret ? 'a value that is not shown here' : showValue(value, 80);
  };
  const [first, later] = values.map(shown);
  return notDeterministic(
    `${owner} renders ${describeRef(object)} with ${first} at ${formatFieldPath(path)}, and the next time with ${later}`,
    isSecret ? `; ${SECRET_REMEDY}` : '',
  );
}

function notDeterministic(what: string, more = ''): OperatorError {
  return new OperatorError({ reason: 'NotDeterministic', message: `${what}. ${REMEDY}${more}` });
}

/** Returns the error of what renders to something else with the same inputs. */
function changesByItself(owner: string): OperatorError {
  return notDeterministic(
    `${owner} renders to something else than last time, though neither it nor the policy has changed since`,
  );
}

const YEAR_MILLISECONDS = 365.25 * 24 * 60 * 60 * 1_000;

/**
 * Calls a function with the clock a year later and with other random numbers; synchronous, so nothing else notices. For tests and for
 * commands of an author: never in the controller.
 *
 * **Guarantees.** Dates that were there before, or are made of a given time, stay what they are.
 *
 * **Caveats.** A reference to `Date` that was kept from before, and `Intl`, have the true time.
 */
export function withShiftedDateAndRandom<T>(body: () => T): T {
  const { Date: RealDate } = globalThis;
  const { random } = Math;
  const LaterDate = laterThan(RealDate);
  globalThis.Date = LaterDate;
  RealDate.prototype.constructor = LaterDate;
  Math.random = () => 1 - random();
  try {
    return body();
  } finally {
    globalThis.Date = RealDate;
    RealDate.prototype.constructor = RealDate;
    Math.random = random;
  }
}

/** Returns the class itself, a year later: a subclass would be another one than that of the dates that are there. */
function laterThan(RealDate: DateConstructor): DateConstructor {
  const now = (): number => RealDate.now() + YEAR_MILLISECONDS;
  return new Proxy(RealDate, {
    construct: (target, given: readonly unknown[], caller): object =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, caller) as Date,
    apply: () => new RealDate(now()).toString(),
    get: (target, name): unknown => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
