import { OperatorError } from './error.js';
import { contentHash, describeRef, objectId, refOf } from './object.js';
import type { AnyObject } from './object.js';

/** Returns children as their construct reads them: in a fixed order, and without what differs in each cluster or with each write. */
export function observedOf(children: readonly AnyObject[]): readonly AnyObject[] {
  const read = children.map(({ metadata, ...rest }): AnyObject => {
    const { uid, resourceVersion, ownerReferences, annotations, deletionTimestamp, ...identity } = metadata;
    return { ...rest, metadata: identity };
  });
  return read.sort((a, b) => (objectId(a) < objectId(b) ? -1 : 1));
}

/** Renderings without an edit in between, within a minute, after which a custom resource is taken not to settle. */
const MOST = {
  /** Ones that had been there before in that minute: it swings. */
  returns: 20,
  /** Any: each is another one, as where it counts. A large rollout makes some dozens. */
  renderings: 300,
};
const WITHIN_MILLISECONDS = 60_000;

interface Course {
  /** What the renderings have in common. */
  readonly edit: string;
  readonly policy: unknown;
  readonly renderings: readonly { readonly hashes: readonly string[]; readonly at: number }[];
  readonly error?: OperatorError;
}

/** Finds custom resources that render to something else each time, by what their children say of the last rendering. */
export class Settling {
  private readonly courses = new Map<string, Course>();

  /** @throws OperatorError `NeverSettles` as long as one that doesn't settle is neither edited nor under another policy */
  require(key: string, edit: string, policy: unknown): void {
    const course = this.courses.get(key);
    if (course?.error && course.edit === edit && course.policy === policy) throw course.error;
  }

  /**
   * Notes a rendering.
   * @param owner names the custom resource
   * @throws OperatorError `NeverSettles`
   */
  note(
    key: string,
    course: Pick<Course, 'edit' | 'policy'>,
    owner: string,
    rendered: readonly AnyObject[],
    now: Date,
  ): void {
    const at = now.getTime();
    const { edit, policy } = course;
    const known = this.courses.get(key);
    const isSame = known?.edit === edit && known.policy === policy;
    const before = isSame ? known.renderings.filter((one) => at - one.at < WITHIN_MILLISECONDS) : [];
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
          message: `${owner} was rendered ${renderings.length} times within a minute without an edit${changed ? `, the last time with another ${describeRef(refOf(changed))}` : ''}: what it renders from the status of its children changes that status. Let the construct read nothing of a child that follows from what it renders`,
        });
    this.courses.set(key, { edit, policy, renderings, ...(error && { error }) });
    if (error) throw error;
  }

  forget(key: string): void {
    this.courses.delete(key);
  }
}
