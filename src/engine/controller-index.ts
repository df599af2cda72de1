import { controllerOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';

/** Which objects an owner controls. */
export class ControllerIndex {
  /** By the owner's UID; a set only where there are several, since most owners have one child of a type. */
  private readonly keys = new Map<string, string | Set<string>>();

  keysOf(ownerUid: string): string[] {
    const keys = this.keys.get(ownerUid) ?? [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }

  /** An object was added, has changed, or is gone. */
  move(key: string, before: AnyObject | undefined, after: AnyObject | undefined): void {
    const old = before && controllerOf(before)?.uid;
    const now = after && controllerOf(after)?.uid;
    if (old === now) return;
    if (old) this.remove(old, key);
    if (now) this.add(now, key);
  }

  private add(owner: string, key: string): void {
    const keys = this.keys.get(owner);
    if (keys === undefined) this.keys.set(owner, key);
    else if (typeof keys !== 'string') keys.add(key);
    else if (keys !== key) this.keys.set(owner, new Set([keys, key]));
  }

  private remove(owner: string, key: string): void {
    const keys = this.keys.get(owner);
    if (typeof keys !== 'string') keys?.delete(key);
    if (keys === key || (typeof keys !== 'string' && keys?.size === 0)) this.keys.delete(owner);
  }
}
