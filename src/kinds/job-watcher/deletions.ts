import { keyOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';

/** Time for which a deletion is remembered. */
export const DELETIONS_KEPT_MILLISECONDS = 24 * 3_600_000;

/** Maximum number of deletions that are remembered. */
const MAX_DELETIONS = 10_000;

/** A deletion that was carried out. */
export interface Deletion {
  readonly uid: string;
  /** Milliseconds since the epoch, by the clock that counts. */
  readonly at: number;
}

interface Remembered extends Deletion {
  readonly key: string;
}

/** Deletions by name: the last 10,000 of 24 hours. A restart forgets them. */
export class Deletions {
  /** Oldest first. */
  private readonly all = new Set<Remembered>();
  private readonly byKey = new Map<string, readonly Remembered[]>();

  add(object: AnyObject, at: number): void {
    const { uid = '' } = object.metadata;
    const key = keyOf(object);
    const ofName = this.byKey.get(key) ?? [];
    // A finalizer kept it, and it was deleted twice.
    if (ofName.some((deletion) => deletion.uid === uid)) return;
    const deletion: Remembered = { key, uid, at };
    this.all.add(deletion);
    this.byKey.set(key, [...ofName, deletion]);
    const [oldest] = this.all;
    if (this.all.size > MAX_DELETIONS && oldest) this.forget(oldest);
  }

  /** Returns what was deleted under a name, oldest first. @param key namespace and name */
  of(key: string, now: number): readonly Deletion[] {
    for (const deletion of this.all) {
      if (now - deletion.at < DELETIONS_KEPT_MILLISECONDS) break;
      this.forget(deletion);
    }
    return this.byKey.get(key) ?? [];
  }

  private forget(deletion: Remembered): void {
    this.all.delete(deletion);
    const left = (this.byKey.get(deletion.key) ?? []).filter((other) => other !== deletion);
    if (left.length > 0) this.byKey.set(deletion.key, left);
    else this.byKey.delete(deletion.key);
  }
}
