import type { Drift } from '../contract/change.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Clock } from './clock.js';

/** So many corrections of one object are made at once. */
const FREE_CORRECTIONS = 5;
const FIRST_PAUSE_MILLISECONDS = 10_000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;
/** After this long without a correction, all is forgotten. */
const FORGET_MILLISECONDS = 600_000;

interface Fight {
  readonly corrections: number;
  /** Of what was applied last. */
  readonly hash: string;
  /** When the last correction was made; all times are by the monotonic clock. */
  readonly last: number;
  /** Before this, nothing is put right again. */
  readonly pausedUntil: number;
  /** If nothing has been changed again until this, the fight is taken to be over. */
  readonly watchedUntil: number;
  readonly drift: Drift;
  readonly message: string;
}

/**
 * The brake against writers that change a field of ours again and again: correcting it each time would keep both
 * writing for ever. Per object the first five corrections are free; each further one has to wait, 10 s at first,
 * then twice as long each time, up to 5 min. Ten minutes without a correction make it free again.
 *
 * While an object is contested its step fails with the reason `FieldContested`, in words that stay the same, so that
 * this is told once: also just after a correction, until as long a time has passed in peace as was waited before.
 */
export class Fights {
  /** By UID, the object that was corrected last at the end. */
  private readonly fights = new Map<string, Fight>();

  constructor(private readonly clock: Clock) {}

  /** Objects that are remembered. */
  get size(): number {
    return this.fights.size;
  }

  /**
   * An object of ours was changed by another writer. What it is to become now is applied at once, if that is something else.
   * @param hash of what is to be applied
   * @throws OperatorError `FieldContested` while it has to wait
   */
  checkPause(object: AnyObject, hash: string): void {
    this.forgetOld();
    const fight = this.fights.get(object.metadata.uid ?? '');
    if (fight?.hash === hash) this.failUntil(fight, fight.pausedUntil);
  }

  /** An object of ours is as we want it. @throws OperatorError `FieldContested` while it isn't sure to stay so */
  checkPeace(object: AnyObject): void {
    this.forgetOld();
    const fight = this.fights.get(object.metadata.uid ?? '');
    if (fight) this.failUntil(fight, fight.watchedUntil);
  }

  /** What somebody else did was put right. @throws OperatorError `FieldContested` if that happens too often */
  corrected(object: AnyObject, drift: Drift, hash: string): void {
    const uid = object.metadata.uid ?? '';
    const now = this.clock.monotonic();
    this.forgetOld();
    const before = this.fights.get(uid);
    const corrections = (before?.corrections ?? 0) + 1;
    // What was told once is told in the same words from then on.
    const told = before && before.corrections >= FREE_CORRECTIONS ? before : undefined;
    const known = told?.drift ?? merged(before?.drift, drift);
    const fight: Fight = {
      ...{ corrections, hash },
      last: now,
      pausedUntil: now + pauseAfter(corrections),
      watchedUntil: now + Math.min(pauseAfter(corrections), pauseAfter(corrections - 1) || Infinity),
      drift: known,
      message: told?.message ?? messageOf(object, known),
    };
    this.fights.delete(uid);
    this.fights.set(uid, fight);
    this.failUntil(fight, fight.watchedUntil);
  }

  private failUntil({ message }: Fight, time: number): void {
    const rest = time - this.clock.monotonic();
    if (rest <= 0) return;
    throw new OperatorError({
      reason: 'FieldContested',
      message,
      retry: 'backoff',
      retryAfterMilliseconds: rest,
    });
  }

  /** Whatever is asked: after a mass drift that is over, nobody might correct anything for long. */
  private forgetOld(): void {
    if (this.fights.size === 0) return;
    const now = this.clock.monotonic();
    for (const [uid, { last }] of this.fights) {
      if (now - last < FORGET_MILLISECONDS) return;
      this.fights.delete(uid);
    }
  }
}

/** In milliseconds. */
function pauseAfter(corrections: number): number {
  if (corrections < FREE_CORRECTIONS) return 0;
  return Math.min(
    FIRST_PAUSE_MILLISECONDS * 2 ** (corrections - FREE_CORRECTIONS),
    LONGEST_PAUSE_MILLISECONDS,
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

function messageOf(object: AnyObject, { managers, fields }: Drift): string {
  const who = managers.length === 0 ? 'somebody' : managers.join(', ');
  const what = fields.length === 0 ? 'fields' : fields.join(', ');
  return `${describeRef(refOf(object))}: ${who} changes ${what} again and again, which is set here too; let only one of the two set it`;
}
