/** Finds keys by something that several of them may have in common, such as an owner. */
export class KeyIndex {
  /** A set only where there are several, since most owners have one child of a type. */
  private readonly keys = new Map<string, string | Set<string>>();

  keysOf(term: string): string[] {
    const keys = this.keys.get(term) ?? [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }

  add(term: string, key: string): void {
    const keys = this.keys.get(term);
    if (keys === undefined) this.keys.set(term, key);
    else if (typeof keys !== 'string') keys.add(key);
    else if (keys !== key) this.keys.set(term, new Set([keys, key]));
  }

  remove(term: string, key: string): void {
    const keys = this.keys.get(term);
    if (typeof keys !== 'string') keys?.delete(key);
    if (keys === key || (typeof keys !== 'string' && keys?.size === 0)) this.keys.delete(term);
  }
}
