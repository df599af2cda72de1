import type { Reader, TypeRef } from '../../contract/controller.js';
import type { Deletion } from '../../contract/delete-step.js';
import type { AnyObject } from '../../contract/object.js';

/** What a plan asks for: one object, the objects of an owner, or all of a type. */
export type Demand =
  | { readonly type: TypeRef; readonly key: string }
  | { readonly type: TypeRef; readonly owner: string }
  | { readonly type: TypeRef };

/**
 * Shows what is known, and notes what is asked for and isn't known yet. What is answered then is a guess: whoever asks
 * has to be asked again once it is known.
 */
export class DemandingReader implements Reader {
  readonly missing: Demand[] = [];

  constructor(
    private readonly known: Reader,
    private readonly isKnown: (demand: Demand) => boolean,
  ) {}

  get clockSkewMilliseconds(): number | undefined {
    return this.known.clockSkewMilliseconds;
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    this.note({ type, key });
    return this.known.get(type, key);
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    this.note({ type, owner: ownerUid });
    return this.known.controlledBy(type, ownerUid);
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    this.note({ type });
    return this.known.mappedTo(type, key);
  }

  deletions(type: TypeRef, key: string): readonly Deletion[] {
    return this.known.deletions(type, key);
  }

  private note(demand: Demand): void {
    if (!this.isKnown(demand)) this.missing.push(demand);
  }
}
