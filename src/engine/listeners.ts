import type { AnyObject } from '../contract/object.js';
import { PendingWrites } from './pending-writes.js';
import type { Answer, OwnWrite, Writer } from './pending-writes.js';

/** How a change was learned of: from a complete list, from a watch, or as the answer to a write of the listener's own. */
export type ChangeOrigin = 'list' | 'event' | 'own';

/**
 * Called after the store has changed: with both for an update, with one of them for a new or a removed object.
 * @param own what is known of the listener's own write, if the change is the answer to one
 */
export type Listener = (
  before: AnyObject | undefined,
  after: AnyObject | undefined,
  origin: ChangeOrigin,
  own?: OwnWrite,
) => void;

/** A listener's own name, or that a complete list brings the change. */
export type Source = { readonly writer?: Writer | undefined; readonly list?: true };

/** Whoever wants to hear of the changes of one store; a listener that writes hears of its own change once. */
export class Listeners {
  private readonly all: { readonly listener: Listener; readonly name: unknown }[] = [];
  private readonly pending = new PendingWrites();

  add(listener: Listener, name: unknown): void {
    this.all.push({ listener, name });
  }

  tell(key: string, before: AnyObject | undefined, after: AnyObject | undefined, source: Source): void {
    for (const { listener, name } of this.all) {
      if (name !== undefined && this.pending.holdBack(name, key)) continue;
      const { writer } = source;
      const own = name !== undefined && writer?.listener === name ? ownWriteOf(writer) : undefined;
      listener(before, after, source.list ? 'list' : own ? 'own' : 'event', own);
    }
  }

  /** A write is about to be sent. */
  begin(writer: Writer, key: string, before: AnyObject | undefined, isStatus: boolean): void {
    this.pending.begin(writer, key, before, isStatus);
  }

  answered(writer: Writer, key: string, answer: Answer): void {
    this.pending.answered(writer, key, answer);
  }

  /** A write has ended, and the object is now as given: the writer is told what was held back. */
  end(writer: Writer, key: string, after: AnyObject | undefined): void {
    const held = this.pending.end(writer, key, after);
    if (!held || (held.before ?? after) === undefined) return;
    const { before, own } = held;
    for (const { listener, name } of this.all)
      if (name === writer.listener) listener(before, after, own ? 'own' : 'event', own);
  }
}

/** Of a write that isn't sent through the store. */
function ownWriteOf({ key }: Writer): OwnWrite {
  return { ...(key !== undefined && { key }), statusOnly: false, created: false };
}
