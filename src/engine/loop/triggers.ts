import { isDeepStrictEqual } from 'node:util';
import type { Controller, Watch } from '../../contract/controller.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { thrownReading } from '../../values/origin.js';
import type { Logger } from '../../telemetry/logger.js';
import { setLatest } from '../steps/memory.js';
import type { Refusals } from '../steps/memory.js';
import { sameButVersion, textsOf } from '../watch/cache.js';
import type { ChangeSource, StoreReader } from '../watch/cache.js';
import type { Clock } from '../../client/clock.js';
import type { Lane, Queue } from './work-queue.js';
import { REQUEUE } from '../../client/retry.js';

export interface TriggersProps {
  readonly controller: Controller;
  readonly reader: StoreReader;
  readonly queue: Queue;
  readonly blockers: Blockers;
  readonly burst: Burst;
  readonly refusals: Pick<Refusals, 'release'>;
  readonly log: Logger;
}

/** Puts the keys that a change concerns into the queue; which, and how soon, is in docs/engine.md. */
export class Triggers {
  constructor(private readonly props: TriggersProps) {
    const { controller, reader } = props;
    for (const [index, watch] of controller.watches.entries()) {
      const lane = index === 0 ? 'change' : 'child';
      reader.storeOf(watch).onChange((before, after, source) => {
        const object = after ?? before;
        if (!object || !reader.belongsTo(watch, object)) return;
        try {
          this.changed(watch, lane, before, after, source);
        } catch (error) {
          const what = describeRef(refOf(object));
          this.props.log.error(
            { err: thrownReading([object], error) },
            `a change of ${what} could not be looked at, which is a bug`,
          );
        }
      });
    }
  }

  /** Puts all keys into the queue, behind those with changes. */
  all(): void {
    const { controller, reader, queue } = this.props;
    const keys = new Set<string>();
    for (const watch of controller.watches)
      for (const object of reader.storeOf(watch).objects())
        if (reader.belongsTo(watch, object)) this.collect(keys, watch, object);
    for (const key of keys) queue.add(key, 'initial');
  }

  private changed(
    watch: Watch,
    laneOfEvents: Lane,
    before: AnyObject | undefined,
    after: AnyObject | undefined,
    source: ChangeSource,
  ): void {
    const { queue, burst, controller } = this.props;
    if (watch.readOnly && sameButVersion(before, after)) return;
    const isSameIntent = hasSameIntent(before, after);
    // With an equal status, something has changed that isn't kept, e.g. the owner of a field.
    const isStatus = isSameIntent && !isDeepStrictEqual(before?.status, after?.status);
    const canWait = !source.list && (isStatus || (laneOfEvents === 'child' && watch.readOnly === true));
    const lane = source.list ? 'initial' : canWait ? 'status' : laneOfEvents;
    // Each key once: an idle worker takes it at the first add.
    const keys = new Set<string>();
    const [first] = controller.watches;
    const resources = first && watch.concerns ? this.props.reader.storeOf(first).objects() : [];
    if (before) this.collect(keys, watch, before, resources);
    if (after) this.collect(keys, watch, after, resources);
    if (before && watch.claims) {
      const has = after ? this.textsFrom(watch, 'claims', after) : [];
      this.release(keys, this.textsFrom(watch, 'claims', before), has);
    }
    const isCustomResource = laneOfEvents === 'change';
    const mayBeOwn = after && !source.list && (isStatus || !isCustomResource);
    const settle = source.list || (isStatus && isCustomResource) ? undefined : controller.settle;
    const delay = isCustomResource ? REQUEUE.foreignStatus : burst.statusDelayMilliseconds;
    for (const key of keys) {
      const isOwn = mayBeOwn && this.isWriting(key, source);
      // Else a message that is new each time would loop.
      if (isOwn && isCustomResource) continue;
      if (settle) queue.addDebounced(key, settle, lane);
      else if (isOwn) queue.addWithin(key, REQUEUE.ownWrite, 'status');
      else if (canWait) queue.addWithin(key, delay, lane);
      else queue.add(key, lane);
      if (!canWait && !isOwn && !source.list) burst.count(key);
    }
  }

  /** Reports whether the plan of the key is writing the object. */
  private isWriting(key: string, { writers = [] }: ChangeSource): boolean {
    const { controller } = this.props.reader.writer;
    for (const writer of writers) if (writer.controller === controller && writer.key === key) return true;
    return false;
  }

  /** @param resources those that the object may concern */
  private collect(
    keys: Set<string>,
    watch: Watch,
    object: AnyObject,
    resources: readonly AnyObject[] = [],
  ): void {
    for (const key of this.textsFrom(watch, 'mapsTo', object)) keys.add(key);
    const [first = watch] = this.props.controller.watches;
    for (const resource of resources)
      if (this.isConcerned(watch, object, resource))
        for (const key of this.textsFrom(first, 'mapsTo', resource)) keys.add(key);
    for (const key of this.props.blockers.waitingFor(objectId(object))) keys.add(key);
  }

  private isConcerned(watch: Watch, object: AnyObject, resource: AnyObject): boolean {
    try {
      return watch.concerns?.(object, resource) ?? false;
    } catch (error) {
      this.reportBug([resource, object], 'matched with what it may be concerned by', error);
      return false;
    }
  }

  /** Calls a function of the kind for one object: what it throws keeps no other from being looked at. */
  private textsFrom(watch: Watch, name: 'mapsTo' | 'claims', object: AnyObject): readonly string[] {
    try {
      return textsOf(name, name === 'claims' ? (watch.claims?.(object) ?? []) : watch.mapsTo(object));
    } catch (error) {
      this.reportBug([object], name === 'mapsTo' ? 'mapped' : 'asked for claims', error);
      return [];
    }
  }

  /** @param read objects that the function reads, the one that is named first */
  private reportBug(read: readonly [AnyObject, ...AnyObject[]], what: string, error: unknown): void {
    const message = `${describeRef(refOf(read[0]))} can't be ${what}, which is a bug of the kind`;
    this.props.log.error({ err: thrownReading(read, error) }, message);
  }

  private release(keys: Set<string>, had: readonly string[], has: readonly string[]): void {
    const released = had.filter((claim) => !has.includes(claim));
    if (released.length === 0) return;
    this.props.refusals.release(released);
    for (const claim of released) for (const key of this.props.blockers.waitingFor(claim)) keys.add(key);
  }
}

/**
 * Reports whether an object asks for the same as before, its status aside. Its generation shows, so of an object that has
 * none this can't be known; where another schema of the CRD changes the spec, the generation stays.
 */
function hasSameIntent(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  if (!before || after?.metadata.generation === undefined) return false;
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.generation === b.generation &&
    a.uid === b.uid &&
    a.deletionTimestamp === b.deletionTimestamp &&
    isDeepStrictEqual(before.spec, after.spec) &&
    isDeepStrictEqual(a.labels, b.labels) &&
    isDeepStrictEqual(a.annotations, b.annotations) &&
    isDeepStrictEqual(a.ownerReferences, b.ownerReferences)
  );
}

/** Number of keys within a second that are a burst: far more than people change, far fewer than a rollout of everything. */
const SIZE = 32;
const WINDOW_MILLISECONDS = 1_000;

/** Delay of a status: a Deployment that rolls changes its own many times a second, and each may cost a write of ours. */
const STATUS_DELAY_MILLISECONDS = 100;
/** Delay of a status in a burst: statuses would delay what is to be created, and are fewer when they are written later. */
const STATUS_DELAY_IN_A_BURST_MILLISECONDS = 1_000;

/** Knows whether more is asked for than usual, and so how long a status may wait, from the first time that it was left. */
export class Burst {
  /** Times at which the last keys were counted, by the monotonic clock, in that order. */
  private readonly times = new Map<string, number>();
  /** Since when statuses have been left for later, by key. */
  private readonly leftSince = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Something is to be created or corrected. One key that changes all the time is no burst. */
  count(key: string): void {
    setLatest(this.times, key, this.clock.monotonic(), SIZE);
  }

  get isOn(): boolean {
    if (this.times.size < SIZE) return false;
    const [oldest = -Infinity] = this.times.values();
    return this.clock.monotonic() - oldest < WINDOW_MILLISECONDS;
  }

  get statusDelayMilliseconds(): number {
    return this.isOn ? STATUS_DELAY_IN_A_BURST_MILLISECONDS : STATUS_DELAY_MILLISECONDS;
  }

  /** The status of the key is left. Returns for how much longer it may be, in milliseconds. */
  left(key: string): number {
    const now = this.clock.monotonic();
    const since = this.leftSince.get(key) ?? now;
    this.leftSince.set(key, since);
    return Math.max(0, since + this.statusDelayMilliseconds - now);
  }

  /** The status was written, or nothing is to be written any more. */
  written(key: string): void {
    this.leftSince.delete(key);
  }

  /** Reports whether the status has been left for so long that it may not be left once more. */
  isDue(key: string): boolean {
    const since = this.leftSince.get(key);
    return since !== undefined && this.clock.monotonic() - since >= this.statusDelayMilliseconds;
  }
}

/** Which objects and claims stand in the way of which keys, so that a key is tried again as soon as one of them changes. */
export class Blockers {
  private readonly keysById = new Map<string, Set<string>>();
  private readonly idsByKey = new Map<string, readonly string[]>();

  /** Makes the key wait for these, and for no others. */
  wait(key: string, ids: readonly string[]): void {
    for (const id of this.idsByKey.get(key) ?? []) {
      const keys = this.keysById.get(id);
      if (keys?.delete(key) && keys.size === 0) this.keysById.delete(id);
    }
    if (ids.length === 0) {
      this.idsByKey.delete(key);
      return;
    }
    this.idsByKey.set(key, ids);
    for (const id of ids) this.keysById.set(id, (this.keysById.get(id) ?? new Set()).add(key));
  }

  waitingFor(id: string): Iterable<string> {
    return this.keysById.get(id) ?? [];
  }
}
