import { ServerTime } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import type { TypeRef } from '../../contract/controller.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { DELETIONS_KEPT_MILLISECONDS } from '../../contract/sweep.js';
import type { Deletion } from '../../contract/sweep.js';

const DELETIONS_LIMIT = 10_000;

interface Remembered {
  readonly name: string;
  readonly uid: string;
  /** Time by the monotonic clock, since the wall clock may be set. */
  readonly at: number;
}

/** Deletions by the sweeps of a controller, by name: the last 10,000 of 24 hours. */
export class Deletions {
  /** Oldest first. */
  private readonly all = new Set<Remembered>();
  private readonly byName = new Map<string, Remembered[]>();

  constructor(
    private readonly clock: Clock,
    private readonly time = new ServerTime(clock),
  ) {}

  add(object: AnyObject): void {
    const { namespace, name: own, uid = '' } = object.metadata;
    const name = nameOf(object, objectKey(namespace, own));
    const ofName = this.byName.get(name) ?? [];
    // A finalizer kept it, and it was deleted twice.
    if (ofName.some((deletion) => deletion.uid === uid)) return;
    const deletion: Remembered = { name, uid, at: this.clock.monotonic() };
    this.all.add(deletion);
    this.byName.set(name, [...ofName, deletion]);
    const [oldest] = this.all;
    if (this.all.size > DELETIONS_LIMIT && oldest) this.forget(oldest);
  }

  /** Oldest first. */
  of(type: TypeRef, key: string): readonly Deletion[] {
    for (const deletion of this.all) {
      if (this.clock.monotonic() - deletion.at < DELETIONS_KEPT_MILLISECONDS) break;
      this.forget(deletion);
    }
    const known = this.byName.get(nameOf(type, key)) ?? [];
    return known.map(({ uid, at }) => ({ uid, at: this.time.at(at) }));
  }

  private forget(deletion: Remembered): void {
    this.all.delete(deletion);
    const left = (this.byName.get(deletion.name) ?? []).filter((other) => other !== deletion);
    if (left.length > 0) this.byName.set(deletion.name, left);
    else this.byName.delete(deletion.name);
  }
}

function nameOf(type: TypeRef, key: string): string {
  return `${groupKind(type)} ${key}`;
}
