import type { AnyObject } from '../contract/object.js';

interface Pending {
  /** Several writes of one object may be under way: the status, and somebody else's share. */
  writes: number;
  /** As the object was when the first of them began. */
  readonly before: AnyObject | undefined;
  changed: boolean;
  /** Versions that were answered. */
  readonly answered: Set<string | undefined>;
}

/** A change that was held back, and whether it is the writer's own. */
export interface HeldBack {
  readonly before: AnyObject | undefined;
  readonly own: boolean;
}

/**
 * The writes under way. A watch may deliver what a write has led to before its answer arrives, and only the answer
 * tells that it was ours: so what is seen of the object meanwhile is held back from the writer until then. Taken for
 * somebody else's, a status that differs with every write would wake its own writer for ever.
 */
export class PendingWrites {
  private readonly byWriter = new Map<unknown, Map<string, Pending>>();

  begin(writer: unknown, key: string, before: AnyObject | undefined): void {
    const pending = this.byWriter.get(writer) ?? new Map<string, Pending>();
    this.byWriter.set(writer, pending);
    const known = pending.get(key);
    if (known) known.writes++;
    else pending.set(key, { writes: 1, before, changed: false, answered: new Set() });
  }

  /** Whether the writer is to be told of the change later. */
  holdBack(writer: unknown, key: string): boolean {
    const pending = this.byWriter.get(writer)?.get(key);
    if (!pending) return false;
    pending.changed = true;
    return true;
  }

  answered(writer: unknown, key: string, resourceVersion: string | undefined): void {
    this.byWriter.get(writer)?.get(key)?.answered.add(resourceVersion);
  }

  /** Returns what the writer has yet to be told, once the last of its writes of the object has ended. */
  end(writer: unknown, key: string, after: AnyObject | undefined): HeldBack | undefined {
    const keys = this.byWriter.get(writer);
    const pending = keys?.get(key);
    if (!keys || !pending || --pending.writes > 0) return undefined;
    keys.delete(key);
    if (!pending.changed) return undefined;
    const own = after !== undefined && pending.answered.has(after.metadata.resourceVersion);
    return { before: pending.before, own };
  }
}
