import type { AnyObject } from '../contract/object.js';

/** Who sends a write, and for what. */
export interface Writer {
  /** What a listener of the store names itself by. */
  readonly listener: unknown;
  /** The key whose plan it belongs to. @default - none */
  readonly key?: string;
}

/** What the API server has answered to a write. */
export interface Answer {
  readonly object: AnyObject;
  /** It wasn't there before. @default false */
  readonly created?: boolean;
}

/** What the writers may know of the change that their writes have led to. */
export interface OwnWrite {
  /** The key whose plan it was. @default - there was none, or several wrote at once */
  readonly key?: string;
  /** Nothing but a status was written. */
  readonly statusOnly: boolean;
  /** The object wasn't there before. */
  readonly created: boolean;
}

interface Pending {
  /** Several writes of one object may be under way: the status, and somebody else's share. */
  writes: number;
  /** As the object was when the first of them began. */
  readonly before: AnyObject | undefined;
  /** Whose plans they belong to. */
  readonly keys: Set<string | undefined>;
  statusOnly: boolean;
  changed: boolean;
  /** Versions that were answered, and whether each is that of a new object. */
  readonly answered: Map<string | undefined, boolean>;
}

/** A change that was held back; `own` is set if it is the writer's own. */
export interface HeldBack {
  readonly before: AnyObject | undefined;
  readonly own?: OwnWrite;
}

/**
 * The writes under way. A watch may deliver what a write has led to before its answer arrives, and only the answer
 * tells that it was ours: so what is seen of the object meanwhile is held back from the writer until then. Taken for
 * somebody else's, a status that differs with every write would wake its own writer for ever.
 */
export class PendingWrites {
  private readonly byListener = new Map<unknown, Map<string, Pending>>();

  begin(
    { listener, key }: Writer,
    objectKey: string,
    before: AnyObject | undefined,
    isStatus: boolean,
  ): void {
    const ofListener = this.byListener.get(listener) ?? new Map<string, Pending>();
    this.byListener.set(listener, ofListener);
    const known = ofListener.get(objectKey);
    if (known) {
      known.writes++;
      known.keys.add(key);
      known.statusOnly &&= isStatus;
    } else {
      const keys = new Set([key]);
      const answered = new Map<string | undefined, boolean>();
      ofListener.set(objectKey, { writes: 1, before, keys, statusOnly: isStatus, changed: false, answered });
    }
  }

  /** Whether the listener is to be told of the change later. */
  holdBack(listener: unknown, objectKey: string): boolean {
    const pending = this.byListener.get(listener)?.get(objectKey);
    if (!pending) return false;
    pending.changed = true;
    return true;
  }

  answered({ listener }: Writer, objectKey: string, { object, created = false }: Answer): void {
    this.byListener.get(listener)?.get(objectKey)?.answered.set(object.metadata.resourceVersion, created);
  }

  /** Returns what the listener has yet to be told, once the last of its writes of the object has ended. */
  end({ listener }: Writer, objectKey: string, after: AnyObject | undefined): HeldBack | undefined {
    const ofListener = this.byListener.get(listener);
    const pending = ofListener?.get(objectKey);
    if (!ofListener || !pending || --pending.writes > 0) return undefined;
    ofListener.delete(objectKey);
    if (!pending.changed) return undefined;
    const { before, keys, statusOnly, answered } = pending;
    const created = after && answered.get(after.metadata.resourceVersion);
    if (created === undefined) return { before };
    const [key] = keys;
    return { before, own: { ...(keys.size === 1 && key !== undefined && { key }), statusOnly, created } };
  }
}
