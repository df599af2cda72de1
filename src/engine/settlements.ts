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
  private readonly exceptions = new Map<string, Settlement>();

  stands(id: string, now: Settlement, expected: string): boolean {
    if (now.owned === expected) return true;
    const then = this.exceptions.get(id);
    return then !== undefined && then.hash === now.hash && then.uid === now.uid && then.owned === now.owned;
  }

  remember(id: string, settlement: Settlement, expected: string): void {
    if (settlement.owned === expected) this.exceptions.delete(id);
    else this.exceptions.set(id, settlement);
  }

  forget(id: string): void {
    this.exceptions.delete(id);
  }
}
