import { controllerOf, objectId } from '../contract/object.js';
import type { AnyObject, OwnerReference } from '../contract/object.js';
import type { Clock } from './clock.js';

/** The garbage collector may need as long as this to come to the next child. */
const REMEMBERED_MILLISECONDS = 600_000;

/**
 * The objects that have gone while their owner, as far as is known, has not. Either somebody has deleted such an
 * object, and it has to be made anew; or its owner is gone too, the watch has missed it, and the garbage collector
 * is at work: making it anew would keep both at it for ever.
 */
export class Vanished {
  /** By object, the one that went last at the end. */
  private readonly owners = new Map<string, { readonly uid: string; readonly at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Objects that are remembered. */
  get size(): number {
    return this.owners.size;
  }

  /** An object is there no more. */
  gone(object: AnyObject): void {
    const uid = controllerOf(object)?.uid;
    if (uid === undefined) return;
    const now = this.clock.monotonic();
    for (const [id, { at }] of this.owners) {
      if (now - at < REMEMBERED_MILLISECONDS) break;
      this.owners.delete(id);
    }
    const id = objectId(object);
    this.owners.delete(id);
    this.owners.set(id, { uid, at: now });
  }

  /** Whether this owner had such an object, and nobody has looked since whether he is still there. */
  from(id: string, owner: OwnerReference): boolean {
    return this.owners.get(id)?.uid === owner.uid;
  }

  forget(id: string): void {
    this.owners.delete(id);
  }
}
