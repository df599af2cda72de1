/** What was applied, and what became of it. */
export interface Settlement {
  /** Hash of the intent. */
  readonly hash: string;
  readonly uid: string | undefined;
  /** Digest of the paths that we own. */
  readonly owned: string | undefined;
}

/**
 * Whether an apply still stands: the object is the same, the intent is the same, and we own what we owned after it.
 *
 * What we should own is computed from the intent. Where the server records something else, e.g. because it drops an
 * empty value, the answer to our own apply is remembered: so such a value costs one apply per object and start.
 */
export class Settlements {
  /** By object, then by field manager. */
  private readonly exceptions = new Map<string, Map<string, Settlement>>();

  /** @param expected only asked where we own something */
  stands(objectId: string, manager: string, now: Settlement, expected: () => string): boolean {
    if (now.owned !== undefined && now.owned === expected()) return true;
    const then = this.exceptions.get(objectId)?.get(manager);
    return then !== undefined && then.hash === now.hash && then.uid === now.uid && then.owned === now.owned;
  }

  remember(objectId: string, manager: string, settlement: Settlement, expected: string): void {
    const known = this.exceptions.get(objectId);
    if (settlement.owned !== expected) {
      this.exceptions.set(objectId, (known ?? new Map<string, Settlement>()).set(manager, settlement));
    } else if (known?.delete(manager) && known.size === 0) {
      this.exceptions.delete(objectId);
    }
  }

  /** The object is gone. */
  forget(objectId: string): void {
    this.exceptions.delete(objectId);
  }
}
