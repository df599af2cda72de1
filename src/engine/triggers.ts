import { isDeepStrictEqual } from 'node:util';
import type { Controller, Watch } from '../contract/controller.js';
import { isHashAnnotation } from '../contract/names.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import type { Clock } from './clock.js';
import type { Lane, Queue } from './work-queue.js';
import type { ChangeOrigin } from './listeners.js';
import { freedIds } from './node-ports.js';
import type { OwnWrite } from './pending-writes.js';
import type { StoreReader } from './cache.js';

export interface TriggersProps {
  readonly controller: Controller;
  readonly reader: StoreReader;
  readonly queue: Queue;
  readonly blockers: Blockers;
  readonly rush: Rush;
  readonly log: Logger;
}

interface Seen {
  readonly before: AnyObject | undefined;
  readonly after: AnyObject | undefined;
  readonly origin: ChangeOrigin;
  readonly own: OwnWrite | undefined;
}

/**
 * Puts the keys that a change concerns into the queue.
 *
 * **Guarantees.** The keys of the old state and those of the new are taken, since an object may change hands, and those
 * that the object is in the way of, or has had a node port of. What changes only in the status of a child, or in an
 * object that is only read, is looked at within 100 ms, or in a rush within a second and once everything has been made;
 * everything else at once. What is kept of an object that is only read has to differ. A change of the custom resource,
 * which is what the first watch delivers, comes first. Where the controller lets things settle, a key is taken once
 * they have. A mapping that throws keeps nobody else from hearing of the change. What a plan itself writes doesn't wake
 * its key, unless the answer shows that somebody else has changed something too.
 */
export class Triggers {
  constructor(private readonly props: TriggersProps) {
    const { controller, reader } = props;
    for (const [index, watch] of controller.watches.entries()) {
      const lane = index === 0 ? 'change' : 'child';
      reader.storeOf(watch).onChange((before, after, origin, own) => {
        const object = after ?? before;
        if (object && !reader.belongsTo(watch, object)) return;
        try {
          this.changed(watch, lane, { before, after, origin, own });
        } catch (error) {
          this.props.log.error({ err: error }, 'A change could not be looked at, which is a bug');
        }
      }, reader.writer.listener);
    }
  }

  /** Puts all keys into the queue, behind those that somebody waits for. */
  all(): void {
    const { controller, reader, queue } = this.props;
    const keys = new Set<string>();
    for (const watch of controller.watches)
      for (const object of reader.storeOf(watch).objects())
        if (reader.belongsTo(watch, object)) this.collect(keys, watch, object);
    for (const key of keys) queue.add(key, 'initial');
  }

  private changed(watch: Watch, laneOfEvents: Lane, change: Seen): void {
    const { before, after, origin, own } = change;
    // A failure whose text is new each time would otherwise wake itself by being written down.
    if (own && asksForTheSame(before, after) && (own.statusOnly || sameStatus(before, after))) return;
    if (watch.readOnly && sameButVersion(before, after)) return;
    // Nothing has to be put right in what is only read.
    const isStatus = watch.readOnly === true || onlyStatusDiffers(before, after);
    const canWait = origin === 'event' && laneOfEvents === 'child' && isStatus;
    const lane = origin === 'list' ? 'initial' : canWait ? 'status' : laneOfEvents;
    // Each key once: a worker that waits takes it at the first add.
    const keys = new Set<string>();
    if (before) this.collect(keys, watch, before);
    if (after) this.collect(keys, watch, after);
    for (const id of freedIds(before, after))
      for (const key of this.props.blockers.waitingFor(id)) keys.add(key);
    // Its plan is being carried out, and its status is computed after that.
    if (own?.key !== undefined && tellsNothingMore(own, before, after)) keys.delete(own.key);
    const { queue, rush, controller } = this.props;
    const settle = origin === 'list' ? undefined : controller.settle;
    for (const key of keys) {
      if (settle) queue.addSettling(key, settle, lane);
      else if (canWait) queue.addCoalesced(key, rush.statusDelayMilliseconds, lane);
      else queue.add(key, lane);
      if (!canWait && origin === 'event') rush.count(key);
    }
  }

  private collect(keys: Set<string>, watch: Watch, object: AnyObject): void {
    try {
      for (const key of watch.mapsTo(object)) keys.add(key);
    } catch (error) {
      const what = describeRef(refOf(object));
      this.props.log.error({ err: error }, `${what} can't be mapped, which is a bug of the kind`);
    }
    for (const key of this.props.blockers.waitingFor(objectId(object))) keys.add(key);
  }
}

/**
 * Whether the plan that has written an object learns nothing from the answer that it couldn't foresee: the object is
 * new, or what is kept of it is as it was, but for what every apply changes.
 *
 * Somebody else's change may have come between the version that was known and our write, and its event is then old
 * news. So any other difference counts as one, even if it was our own doing: at worst, that costs a look.
 */
function tellsNothingMore(
  own: OwnWrite,
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): boolean {
  if (!after) return false;
  if (!before) return own.created;
  const { generation: then = 0 } = before.metadata;
  const { generation: now = 0 } = after.metadata;
  return now <= then + 1 && isDeepStrictEqual(withoutBookkeeping(before), withoutBookkeeping(after));
}

function withoutBookkeeping({ metadata, ...rest }: AnyObject): object {
  const { resourceVersion, generation, annotations = {}, ...others } = metadata;
  const notOurs = Object.entries(annotations).filter(([name]) => !isHashAnnotation(name));
  return { ...rest, metadata: { ...others, annotations: Object.fromEntries(notOurs) } };
}

/**
 * Whether an object asks for the same as before, its status aside. Its generation tells, so of an object that has
 * none this can't be said.
 */
function asksForTheSame(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  if (!before || after?.metadata.generation === undefined) return false;
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.generation === b.generation &&
    a.uid === b.uid &&
    a.deletionTimestamp === b.deletionTimestamp &&
    isDeepStrictEqual(a.labels, b.labels) &&
    isDeepStrictEqual(a.annotations, b.annotations) &&
    isDeepStrictEqual(a.ownerReferences, b.ownerReferences)
  );
}

/**
 * Whether the status of an object has changed, and nothing else. With an equal status, something has changed that
 * isn't kept, e.g. who owns a field.
 */
function onlyStatusDiffers(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return asksForTheSame(before, after) && !sameStatus(before, after);
}

function sameStatus(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return isDeepStrictEqual(before?.status, after?.status);
}

/** Whether what is kept of an object is what it was, in another version. */
function sameButVersion(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return !!before && !!after && isDeepStrictEqual(withoutVersion(before), withoutVersion(after));
}

function withoutVersion({ metadata: { resourceVersion, ...metadata }, ...rest }: AnyObject): object {
  return { ...rest, metadata };
}

/** Keys within a second that are a rush: far more than people change, far fewer than a rollout of everything. */
const SIZE = 32;
const WINDOW_MILLISECONDS = 1_000;

/** A Deployment that rolls changes its status many times a second; each costs a write of ours at worst. */
const STATUS_DELAY_MILLISECONDS = 100;
/** Statuses would be in the way of what is to be made, and are fewer when they are written later. */
const STATUS_DELAY_IN_A_RUSH_MILLISECONDS = 1_000;

/** Whether more is asked for than usual, and so how long a status alone may wait. */
export class Rush {
  /** When the last keys were counted last, by the monotonic clock, in that order. */
  private readonly times = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Something is to be made or put right. One key that changes all the time is no rush. */
  count(key: string): void {
    this.times.delete(key);
    this.times.set(key, this.clock.monotonic());
    const [oldest] = this.times.keys();
    if (this.times.size > SIZE && oldest !== undefined) this.times.delete(oldest);
  }

  get isOn(): boolean {
    if (this.times.size < SIZE) return false;
    const [oldest = -Infinity] = this.times.values();
    return this.clock.monotonic() - oldest < WINDOW_MILLISECONDS;
  }

  get statusDelayMilliseconds(): number {
    return this.isOn ? STATUS_DELAY_IN_A_RUSH_MILLISECONDS : STATUS_DELAY_MILLISECONDS;
  }
}

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
