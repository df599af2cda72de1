import { driftingRender, unsteadiness } from './deterministic.js';
import { OperatorError } from './error.js';
import type { Render, Rendered, RenderedKind, RenderInputs } from './kind.js';
import { APPLIED_HASH_ANNOTATION } from './names.js';
import { contentHash, describeRef, keyOf, refOf } from './object.js';
import type { AnyObject, CustomResource } from './object.js';

/** So many custom resources are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** Renderings without an edit in between, within a minute, after which a custom resource is taken not to settle. */
const MOST = {
  /** Ones that had been there before in that minute: it swings. */
  returns: 20,
  /** Any: each is another one, as where it counts. A large rollout makes some dozens. */
  renderings: 300,
};
const WITHIN_MILLISECONDS = 60_000;

/** What renderings of a custom resource have in common. */
interface Basis {
  /** Hash of the custom resource, and of what it was rendered from. */
  readonly inputs: string;
  readonly policy: unknown;
}

interface Accepted extends Basis {
  readonly hashes: string;
}

/** Renderings that differ by what the children say alone. */
interface Course extends Basis {
  readonly renderings: readonly { readonly hashes: readonly string[]; readonly at: number }[];
  readonly error?: OperatorError;
}

/** Renders the custom resources of a kind, and refuses what would be applied over and over. */
export class SteadyRenderer {
  /** By key, the last rendering that was accepted. */
  private readonly accepted = new Map<string, Accepted>();
  /** By key, of kinds that observe their children. */
  private readonly courses = new Map<string, Course>();

  constructor(
    private readonly kind: RenderedKind,
    private readonly renderOnce: Render,
  ) {}

  /**
   * @param children as they are
   * @throws OperatorError what the renderer throws, `NotDeterministic`, and `NeverSettles` as long as one that doesn't settle is
   * neither edited nor under another policy
   */
  render(
    cr: CustomResource,
    inputs: RenderInputs | undefined,
    children: readonly AnyObject[],
    now: Date,
  ): Rendered {
    const policy = this.renderOnce.policyInForce?.();
    const { observed, ...others } = inputs ?? {};
    const course = observed && { inputs: hashOf(cr, others), policy };
    const last = this.courses.get(keyOf(cr));
    if (course && last?.error && isSame(last, course)) throw last.error;
    const again = (): Rendered => this.renderOnce(this.kind, cr, inputs);
    const rendered = again();
    this.requireSteady(cr, { inputs: hashOf(cr, inputs), policy }, rendered, children, again);
    if (course) this.requireSettling(cr, course, rendered, now);
    return rendered;
  }

  /** Forgets a custom resource that has gone. */
  forget(key: string): void {
    this.accepted.delete(key);
    this.courses.delete(key);
  }

  /**
   * Refuses what the same custom resource doesn't render to again. One that is edited, or under another policy, is
   * rendered twice, unless its children have been made of the same rendering; so is one that is new, but in a burst only
   * before its second write. One whose inputs are those of the accepted rendering has to render to the same again, which also
   * finds what changes with the time of day. Nothing is known after a restart, so a rendering that was refused is checked again.
   */
  private requireSteady(
    cr: CustomResource,
    basis: Basis,
    rendered: readonly AnyObject[],
    children: readonly AnyObject[],
    again: () => Rendered,
  ): void {
    const key = keyOf(cr);
    const hashes = rendered.map(contentHash).join();
    const last = this.accepted.get(key);
    const isKnown = last !== undefined && isSame(last, basis);
    if (isKnown && last.hashes === hashes) return;
    const applied = new Set(children.map(({ metadata }) => metadata.annotations?.[APPLIED_HASH_ANNOTATION]));
    const isApplied =
      rendered.length === children.length && rendered.every((object) => applied.has(contentHash(object)));
    const isNew = children.length === 0 && this.accepted.size >= CHECKED_BEFORE_CREATION;
    const owner = describeRef(refOf(cr));
    const isTrusted = !isKnown && (isApplied || isNew);
    const error = isTrusted ? undefined : unsteadiness(owner, rendered, again);
    if (error ?? isKnown) throw error ?? driftingRender(owner);
    this.accepted.set(key, { ...basis, hashes });
  }

  /** Refuses what renders to something else each time, by what its children say of the last rendering. */
  private requireSettling(cr: CustomResource, basis: Basis, rendered: Rendered, now: Date): void {
    const [key, at] = [keyOf(cr), now.getTime()];
    const known = this.courses.get(key);
    const earlier = known && isSame(known, basis) ? known.renderings : [];
    const before = earlier.filter((one) => at - one.at < WITHIN_MILLISECONDS);
    const hashes = rendered.map(contentHash);
    const last = before.at(-1);
    if (last?.hashes.join() === hashes.join()) return;
    const renderings = [...before, { hashes, at }];
    const different = new Set(renderings.map((one) => one.hashes.join())).size;
    const isSettling = renderings.length - different < MOST.returns && renderings.length < MOST.renderings;
    const changed = rendered.find((_, index) => hashes[index] !== last?.hashes[index]);
    const error = isSettling
      ? undefined
      : new OperatorError({
          reason: 'NeverSettles',
          message: `${describeRef(refOf(cr))} was rendered ${renderings.length} times within a minute without an edit${changed ? `, the last time with another ${describeRef(refOf(changed))}` : ''}: what it renders from the status of its children changes that status. Let the construct read nothing of a child that follows from what it renders`,
        });
    this.courses.set(key, { ...basis, renderings, ...(error && { error }) });
    if (error) throw error;
  }
}

function isSame(a: Basis, b: Basis): boolean {
  return a.inputs === b.inputs && a.policy === b.policy;
}

/** Not the generation, which stays where another schema of the CRD changes the spec. */
function hashOf({ metadata, spec }: CustomResource, inputs: RenderInputs | undefined): string {
  return `${metadata.uid} ${contentHash(spec ?? {})}${inputs ? contentHash(inputs) : ''}`;
}
