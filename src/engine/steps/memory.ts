import type { Drift, FieldConflict } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { setLatest } from '../../values/latest.js';
import { ownerUidOf } from '../../values/projections.js';
import { mostPause } from '../../client/api-error.js';
import type { Clock } from '../../client/clock.js';
import { CONTESTED, REFUSAL_MILLISECONDS, RELEASE_MILLISECONDS } from '../../client/retry.js';

/** Time that the garbage collector may need to come to the next child. */
const VANISHED_MILLISECONDS = 600_000;

/** Object that has gone while its owner, as far as is known, has not. */
export interface Vanished {
  /** UID of the owner. */
  readonly uid: string;
  readonly at: number;
}

/** Owners, as a list has shown them. */
interface OwnerList {
  readonly at: number;
  /** Generations by UID. */
  readonly generations: Promise<ReadonlyMap<string, number>>;
}

/** Apply that has yet to be given back, since it took over what others had created. */
interface TakenOver {
  readonly object: AnyObject;
  readonly fieldManager: string;
  /** UID of what was taken over. */
  readonly uid: string | undefined;
}

/**
 * Memory of the steps: what saves a request, or tells what has happened since, and can't be seen in the cluster. A process that has
 * just started has none, and does without it.
 */
export class Memory {
  readonly refusals: Refusals;
  readonly fights: Fights;
  /** Drift that is left, and what was owned then, by object and field manager. */
  readonly left = new Map<string, { readonly seen: LastApply; readonly drift: Drift }>();
  /** Fields that a shared intent was applied without, by object and field manager. */
  readonly reductions = new Map<string, Reduction>();
  /**
   * Objects that have gone while their owner, as far as is known, has not; the latest at the end. Either such an object was
   * deleted by itself, and has to be recreated; or its owner is gone too, the watch has missed it, and the garbage collector
   * is at work: recreating it would keep both at it forever.
   */
  readonly vanished = new Map<string, Vanished>();
  /** Lists by kind and namespace of owners. */
  readonly ownerLists = new Map<string, OwnerList>();
  /** Applies that have yet to be given back, by object. */
  readonly takenOver = new Map<string, TakenOver>();

  constructor(
    private readonly clock: Clock,
    readonly lastApplies = new LastApplies(),
  ) {
    this.refusals = new Refusals(clock);
    this.fights = new Fights(clock);
  }

  /** Notes that an object is gone. */
  gone(object: AnyObject): void {
    const id = objectId(object);
    this.lastApplies.forget(id);
    for (const known of [this.reductions, this.left])
      for (const key of known.keys()) if (key.endsWith(` ${id}`)) known.delete(key);
    if (this.takenOver.get(id)?.uid === object.metadata.uid) this.takenOver.delete(id);
    const uid = ownerUidOf(object);
    if (uid === undefined) return;
    const at = this.clock.monotonic();
    for (const [other, before] of this.vanished) {
      if (at - before.at < VANISHED_MILLISECONDS) break;
      this.vanished.delete(other);
    }
    setLatest(this.vanished, id, { uid, at });
    if (this.vanished.size === 1) this.ownerLists.clear();
  }
}

/** Fields that a shared intent was applied without. */
export interface Reduction {
  readonly hash: string;
  readonly resourceVersion: string | undefined;
  readonly conflicts: readonly FieldConflict[];
}

/** Apply, and what we owned after it. */
export interface LastApply {
  /** Hash of the intent. */
  readonly hash: string;
  readonly uid: string | undefined;
  /** Fields that we own; see `OwnedFields`. */
  readonly owned: string | undefined;
}

/** Maximum number of remembered applies: most objects are reconciled again soon, and a rival process changes them at once. */
const LATEST_LIMIT = 2_000;
/** Maximum number of remembered creations: a writer that deletes as many in turn meets no brake. */
const CREATED_LIMIT = 50_000;

/**
 * Last apply of each object. Those of which the server records something else than the intent, e.g. because it drops a field that
 * the schema lacks, are all remembered, so that such a field costs one apply per object and start; of the others the latest.
 */
export class LastApplies {
  /** Applies by object, then by field manager. */
  private readonly exceptions = new Map<string, Map<string, LastApply>>();
  /** Applies by UID and field manager, the latest at the end. */
  private readonly latest = new Map<string, LastApply>();

  /**
   * Reports whether the object is the same, the intent is the same, and we own what we owned after the last apply.
   * @param stands called only where this isn't the same as the last apply
   */
  isCurrent(objectId: string, manager: string, now: LastApply, stands: () => boolean): boolean {
    const last = this.latest.get(`${String(now.uid)} ${manager}`);
    if (last?.hash === now.hash) return last.owned === now.owned;
    return isSameApply(this.exceptions.get(objectId)?.get(manager), now) || stands();
  }

  /**
   * Reports whether this intent was the last that this process applied to the object, as far as is remembered. Another process
   * may have applied something else since.
   */
  wasLast(uid: string | undefined, manager: string, hash: string): boolean {
    return this.latest.get(`${String(uid)} ${manager}`)?.hash === hash;
  }

  remember(objectId: string, manager: string, applied: LastApply, isException: boolean): void {
    const known = this.exceptions.get(objectId);
    if (isException)
      this.exceptions.set(objectId, (known ?? new Map<string, LastApply>()).set(manager, applied));
    else if (known?.delete(manager) && known.size === 0) this.exceptions.delete(objectId);
    setLatest(this.latest, `${String(applied.uid)} ${manager}`, applied, LATEST_LIMIT);
  }

  /** The object is gone. */
  forget(objectId: string): void {
    this.exceptions.delete(objectId);
  }
}

export function isSameApply(then: LastApply | undefined, now: LastApply): boolean {
  return then?.hash === now.hash && then.uid === now.uid && then.owned === now.owned;
}

/** Returns how long a refusal for these reasons counts at most, where nothing changes. */
export function refusalMilliseconds(reasons: readonly string[]): number {
  return Math.min(REFUSAL_MILLISECONDS, mostPause(reasons));
}

/** Refused apply: the intent by its hash, for which owner, and the version of the object in the way, if there is one. */
export interface Refused {
  readonly hash: string;
  /** UID of the owner: a namesake of one that was refused has its own try. */
  readonly owner: string | undefined;
  /** The object in the way. */
  readonly inTheWay: AnyObject | undefined;
  /** See `Watch.claims`. */
  readonly claims: readonly string[];
}

interface Refusal extends Omit<Refused, 'inTheWay'> {
  readonly version: string | undefined;
  readonly until: number;
  readonly error: OperatorError;
}

/** Bodies that the API server has refused for good, so that they aren't sent again and again. */
export class Refusals {
  /** Refusals by object and field manager, the latest at the end. */
  private readonly refusals = new Map<string, Refusal>();
  /** Times when claims were last given up; the latest at the end. */
  private readonly released = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Returns the error that sending this again would bring. */
  find(id: string, asked: Refused): OperatorError | undefined {
    const refusal = this.refusals.get(id);
    if (!refusal) return undefined;
    const same =
      refusal.hash === asked.hash &&
      refusal.owner === asked.owner &&
      refusal.version === versionOf(asked, refusal.error);
    if (same && this.clock.monotonic() < refusal.until) return refusal.error;
    this.refusals.delete(id);
    return undefined;
  }

  remember(id: string, refused: Refused, error: OperatorError): void {
    const now = this.clock.monotonic();
    for (const [other, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(other);
    }
    const { hash, owner, claims } = refused;
    const until = now + refusalMilliseconds([error.reason]);
    setLatest(this.refusals, id, { hash, owner, claims, version: versionOf(refused, error), until, error });
  }

  forget(id: string): void {
    this.refusals.delete(id);
  }

  /** An object has given up these claims: what was refused because one was taken is sent again. */
  release(claims: readonly string[]): void {
    const now = this.clock.monotonic();
    for (const [claim, at] of this.released) {
      if (now - at < RELEASE_MILLISECONDS) break;
      this.released.delete(claim);
    }
    for (const claim of claims) setLatest(this.released, claim, now);
    for (const [id, refusal] of this.refusals)
      if (refusal.claims.some((claim) => claims.includes(claim))) this.refusals.delete(id);
  }

  /** Returns a refusal as one that passes by itself where a claim of the object is just being released. */
  judged(failure: OperatorError, claims: readonly string[]): OperatorError {
    if (failure.reason !== 'NodePortConflict') return failure;
    const since = this.clock.monotonic() - RELEASE_MILLISECONDS;
    if (!claims.some((claim) => (this.released.get(claim) ?? -Infinity) > since)) return failure;
    const { reason, message, cause } = failure;
    return new OperatorError({ reason, message, cause, retry: 'backoff' });
  }
}

/** A field that is given up changes no generation, so conflicts go by the resource version. */
function versionOf({ inTheWay }: Refused, { reason }: OperatorError): string | undefined {
  const { uid, generation, resourceVersion } = inTheWay?.metadata ?? {};
  return reason === 'FieldConflict' || generation === undefined ? resourceVersion : `${uid} ${generation}`;
}

interface Fight {
  readonly corrections: number;
  /** Hash of the last intent. */
  readonly hash: string;
  /** Time of the last correction; all times are by the monotonic clock. */
  readonly last: number;
  /** Time before which drift isn't corrected. */
  readonly pausedUntil: number;
  /** If nothing changes until then, the fight is over. */
  readonly watchedUntil: number;
  /** Undefined where the object was only deleted. */
  readonly drift: Drift | undefined;
  readonly message: string;
}

/**
 * The brake against writers that change a field of ours, or delete the object, again and again: correcting it each time would
 * keep both writing forever. Per object the first five corrections are free; each further one has to wait, 10 s at first, then
 * twice as long each time, up to 5 min. Ten minutes without a correction make it free again.
 *
 * While an object is contested its step fails with the reason `FieldContested`, in words that stay the same, so that
 * this is logged once: also just after a correction, until as long a time has passed in peace as was waited before.
 */
export class Fights {
  /** Corrections by object and the UID of its owner, the one that was corrected last at the end. */
  private readonly fights = new Map<string, Fight>();
  /** Hashes of the intents that were created last, by the same, the latest at the end. */
  private readonly created = new Map<string, string>();

  constructor(private readonly clock: Clock) {}

  /**
   * Before a correction. Another intent than the last is applied at once.
   * @param hash of what is to be applied
   * @throws OperatorError `FieldContested` while it has to wait
   */
  checkPause(id: string, hash: string): void {
    const fight = this.find(id);
    if (fight?.hash === hash) this.failUntil(fight, fight.pausedUntil);
  }

  /** An object of ours is as we want it. @throws OperatorError `FieldContested` while it isn't sure to stay so */
  checkPeace(id: string): void {
    const fight = this.find(id);
    if (fight) this.failUntil(fight, fight.watchedUntil);
  }

  /** An object was created. @throws OperatorError `FieldContested` if another writer has deleted it too often */
  wasCreated(id: string, object: AnyObject, hash: string): void {
    const isAgain = this.created.get(id) === hash;
    setLatest(this.created, id, hash, CREATED_LIMIT);
    if (isAgain) this.corrected(id, object, undefined, hash);
  }

  /** We have deleted an object. */
  wasDeleted(id: string): void {
    this.created.delete(id);
  }

  /**
   * Drift was corrected.
   * @param drift undefined where the object was deleted
   * @throws OperatorError `FieldContested` if that happens too often
   */
  corrected(id: string, object: AnyObject, drift: Drift | undefined, hash: string): void {
    const before = this.find(id);
    const now = this.clock.monotonic();
    const corrections = (before?.corrections ?? 0) + 1;
    // What was reported once keeps its words.
    const reported = before && before.corrections >= CONTESTED.freeCorrections ? before : undefined;
    const known = reported?.drift ?? (drift ? merged(before?.drift, drift) : before?.drift);
    const fight: Fight = {
      ...{ corrections, hash },
      last: now,
      pausedUntil: now + pauseAfter(corrections),
      watchedUntil: now + Math.min(pauseAfter(corrections), pauseAfter(corrections - 1) || Infinity),
      drift: known,
      message: reported?.message ?? messageOf(object, known),
    };
    setLatest(this.fights, id, fight);
    this.failUntil(fight, fight.watchedUntil);
  }

  private failUntil({ message }: Fight, time: number): void {
    const rest = time - this.clock.monotonic();
    if (rest <= 0) return;
    const retry = { retry: 'backoff', retryAfterMilliseconds: rest } as const;
    throw new OperatorError({ reason: 'FieldContested', message, ...retry });
  }

  private find(id: string): Fight | undefined {
    if (this.fights.size === 0) return undefined;
    const now = this.clock.monotonic();
    for (const [oldest, { last }] of this.fights) {
      if (now - last < CONTESTED.forget) break;
      this.fights.delete(oldest);
    }
    return this.fights.get(id);
  }
}

/** In milliseconds. */
function pauseAfter(corrections: number): number {
  if (corrections < CONTESTED.freeCorrections) return 0;
  return Math.min(
    CONTESTED.firstPause * 2 ** (corrections - CONTESTED.freeCorrections),
    CONTESTED.longestPause,
  );
}

function merged(a: Drift | undefined, b: Drift): Drift {
  const distinct = (before: readonly string[], added: readonly string[]): string[] =>
    [...new Set([...before, ...added])].sort().slice(0, 10);
  return {
    managers: distinct(a?.managers ?? [], b.managers),
    fields: distinct(a?.fields ?? [], b.fields),
  };
}

function messageOf(object: AnyObject, drift: Drift | undefined): string {
  const ref = describeRef(object);
  if (!drift) return `${ref}: another writer keeps deleting it; stop that, or delete the custom resource`;
  const { managers, fields } = drift;
  const who = managers.length === 0 ? 'another writer' : managers.join(', ');
  const what = fields.length === 0 ? 'fields' : fields.join(', ');
  return `${ref}: ${who} keeps changing ${what}, which the custom resource sets too; remove the field from one of the two writers`;
}
