import type { Change, ChangeSet } from '../../contract/change.js';
import type { Controller } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import { objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { ApiError } from '../../client/api-error.js';
import type { Transport } from '../../client/transport.js';
import type { Hand } from './hand.js';
import { handlersOf, interpret } from './interpret.js';
import { MAX_ROUNDS, Planning } from './planning.js';

export interface OnceProps {
  readonly controller: Controller;
  readonly transport: Transport;
  /** Whether what isn't rendered any more is deleted. */
  readonly prune: boolean;
  readonly now: () => Date;
  /**
   * Waits before what failed and may pass by itself is tried again, for the n-th time.
   * @returns false once waiting longer is pointless
   */
  readonly pause: (tries: number) => Promise<boolean>;
  /** Whether it goes on, with pauses, while something waits for what may still become ready. @default false */
  readonly waits?: boolean;
}

export interface OnceOutcome {
  readonly changes: ChangeSet;
  /** Objects that would be deleted, and aren't, since that wasn't asked for. */
  readonly kept: readonly ObjectRef[];
  /** Reason why nothing could be planned; of several keys, for the first. */
  readonly error?: OperatorError;
}

/**
 * Carries the plan for one custom resource out, once, as the controller would: its steps, and neither status nor events,
 * which nothing would keep true.
 *
 * **Guarantees.** Ownership, conflicts and hand-overs are judged by the code that `run` judges them by. What fails, and
 * may pass by itself, is planned and tried again for as long as `pause` allows.
 *
 * @throws ApiError where something that the plan needs can't be read
 */
export async function carryOutOnce(cr: AnyObject, props: OnceProps): Promise<OnceOutcome> {
  const { controller, transport } = props;
  // As it was written: where it is, the rest is looked for.
  const planning = new Planning({ controller, transport, given: [cr] });
  const hand = planning.hand(false);
  const results = new Map<string, Change>();
  const kept = new Map<string, ObjectRef>();
  let error: OperatorError | undefined;
  for (const key of planning.keysOf([cr])) {
    const turn = await lastTurn(key, planning, hand, props, results);
    for (const ref of turn.kept) kept.set(objectId(ref), ref);
    error ??= turn.error;
  }
  return { changes: [...results.values()], kept: [...kept.values()], ...(error && { error }) };
}

/** The turn after which nothing is left to be tried again; what each of them did is remembered. */
async function lastTurn(
  key: string,
  planning: Planning,
  hand: Hand,
  props: OnceProps,
  results: Map<string, Change>,
): Promise<OnceOutcome> {
  for (let tries = 1; ; tries++) {
    const turn = await takeTurn(key, planning, hand, props);
    for (const change of turn.changes) remember(results, change);
    const goesOn = mayPass(turn) || (props.waits && turn.error === undefined && isWaiting(turn));
    if (!goesOn || !(await props.pause(tries))) return turn;
    planning.contents.forget();
  }
}

/** Carries out a plan, and those that it asks for after what it did. */
async function takeTurn(
  key: string,
  planning: Planning,
  hand: Hand,
  { controller, prune, now }: OnceProps,
): Promise<OnceOutcome> {
  const handlers = handlersOf(controller.handlers);
  const all: Change[] = [];
  for (let round = 1; ; round++) {
    const { plan } = await planning.plan(key, now());
    await planning.look(plan.steps);
    const kept = prune ? [] : plan.steps.flatMap((step) => (step.do === 'prune' ? refOf(step.object) : []));
    const steps = prune ? plan.steps : plan.steps.filter((step) => step.do !== 'prune');
    const { changes, conclusion } = await interpret({ ...plan, steps }, hand, handlers, { status: false });
    all.push(...changes);
    const failed = changes.some(({ action }) => action === 'failed');
    if (round < MAX_ROUNDS && !failed && conclusion.next === 'now') continue;
    return { changes: all, kept, ...(plan.error && { error: plan.error }) };
  }
}

/** Reports whether all that has failed may end by itself, but for a right that is missing, or a quota that is used up. */
function mayPass({ changes, error }: OnceOutcome): boolean {
  const errors = [...(error ? [error] : []), ...changes.flatMap((change) => change.error ?? [])];
  return errors.length > 0 && errors.every(passes);
}

function isWaiting({ changes }: OnceOutcome): boolean {
  const waits = changes.flatMap(({ waitsFor }) => waitsFor ?? []);
  const failed = changes.some(({ action }) => action === 'failed');
  return !failed && waits.some(({ readiness }) => readiness.phase !== 'stalled');
}

function passes({ retry, reason, cause }: OperatorError): boolean {
  if (retry === 'onChange' || reason === 'QuotaExceeded') return false;
  return reason !== 'Forbidden' || (cause instanceof ApiError && cause.newToAdmission);
}

/** Joins the results of several turns: that an object was made counts for more than that it then stood. */
function remember(results: Map<string, Change>, change: Change): void {
  const id = objectId(change.ref);
  const known = results.get(id);
  const stands = change.action === 'unchanged' || change.action === 'skipped';
  const wasMade = known?.action === 'created' || known?.action === 'recreated';
  const saysLess = stands || (wasMade && change.action === 'configured');
  if (known && known.action !== 'failed' && known.action !== 'skipped' && saysLess) return;
  results.set(id, change);
}
