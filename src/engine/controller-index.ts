import { controllerOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { KeyIndex } from './key-index.js';

/** Which objects an owner controls. */
export class ControllerIndex {
  /** By the owner's UID. */
  private readonly index = new KeyIndex();

  keysOf(ownerUid: string): string[] {
    return this.index.keysOf(ownerUid);
  }

  /** An object was added, has changed, or is gone. */
  move(key: string, before: AnyObject | undefined, after: AnyObject | undefined): void {
    const old = before && controllerOf(before)?.uid;
    const now = after && controllerOf(after)?.uid;
    if (old === now) return;
    if (old) this.index.remove(old, key);
    if (now) this.index.add(now, key);
  }
}
