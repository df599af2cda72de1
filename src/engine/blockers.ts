/** Which objects stand in the way of which keys, so that a key is tried again as soon as one of them changes. */
export class Blockers {
  private readonly keysByObject = new Map<string, Set<string>>();
  private readonly objectsByKey = new Map<string, readonly string[]>();

  /** From now on the key waits for these objects, and for no others. */
  wait(key: string, objectIds: readonly string[]): void {
    for (const id of this.objectsByKey.get(key) ?? []) {
      const keys = this.keysByObject.get(id);
      if (keys?.delete(key) && keys.size === 0) this.keysByObject.delete(id);
    }
    if (objectIds.length === 0) {
      this.objectsByKey.delete(key);
      return;
    }
    this.objectsByKey.set(key, objectIds);
    for (const id of objectIds) {
      this.keysByObject.set(id, (this.keysByObject.get(id) ?? new Set()).add(key));
    }
  }

  /** The keys that wait for the object. */
  waitingFor(objectId: string): Iterable<string> {
    return this.keysByObject.get(objectId) ?? [];
  }
}
