import type { Change, ChangeSet } from '../../contract/change.js';
import type { Controller, DeleteStep } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import { objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { ApiError } from '../api-error.js';
import { applySteps } from '../apply-steps.js';
import { holdsDeletionsBack, prune } from '../prune.js';
import type { Transport } from '../transport.js';
import { Planning } from './planning.js';

/** A plan may ask to be made again after what it did; one that asks for ever is left at that. */
const MOST_ROUNDS = 5;

export interface OnceProps {
  readonly controller: Controller;
  readonly transport: Transport;
  /** Whether what isn't rendered any more is deleted. */
  readonly prune: boolean;
  readonly now: () => Date;
  /**
   * Waits before what failed and may pass by itself is tried again, for the n-th time.
   * @returns false once it is of no use to wait longer
   */
  readonly pause: (tries: number) => Promise<boolean>;
}

export interface OnceOutcome {
  readonly changes: ChangeSet;
  /** What would be deleted, and isn't, since that wasn't asked for. */
  readonly kept: readonly ObjectRef[];
  /** Why nothing could be planned; of several keys, for the first. */
  readonly error?: OperatorError;
}

/**
 * Carries the plan for one custom resource out, once, as the controller would: its applies and deletes, and neither
 * status nor events, which somebody would have to keep true.
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
  const results = new Map<string, Change>();
  const kept = new Map<string, ObjectRef>();
  let error: OperatorError | undefined;
  for (const key of planning.keysOf([cr])) {
    const turn = await lastTurn(key, planning, props, results);
    for (const ref of turn.kept) kept.set(objectId(ref), ref);
    error ??= turn.error;
  }
  return { changes: [...results.values()], kept: [...kept.values()], ...(error && { error }) };
}

type Turn = OnceOutcome;

/** The turn after which nothing is left to be tried again; what each of them did is remembered. */
async function lastTurn(
  key: string,
  planning: Planning,
  props: OnceProps,
  results: Map<string, Change>,
): Promise<Turn> {
  for (let tries = 1; ; tries++) {
    const turn = await takeTurn(key, planning, props);
    for (const change of turn.changes) remember(results, change);
    if (!mayPass(turn) || !(await props.pause(tries))) return turn;
    planning.contents.forget();
  }
}

/** One plan, and those that it asks for after what it did. */
async function takeTurn(key: string, planning: Planning, props: OnceProps): Promise<Turn> {
  const all: Change[] = [];
  for (let round = 1; ; round++) {
    const { plan } = await planning.plan(key, props.now());
    await planning.look(plan.apply.map(({ object }) => object));
    const applied = await applySteps(plan.apply, planning.reader, planning.applier, (_, step) => step());
    const failed = applied.some(({ action }) => action === 'failed');
    const deleted = props.prune && !holdsDeletionsBack(applied) ? await pruneAll(plan.delete, planning) : [];
    const changes = [...applied, ...deleted];
    all.push(...changes);
    if (round < MOST_ROUNDS && !failed && plan.again?.(changes)) continue;
    return {
      changes: all,
      kept: props.prune ? [] : plan.delete.map(({ object }) => refOf(object)),
      ...(plan.error && { error: plan.error }),
    };
  }
}

async function pruneAll(steps: readonly DeleteStep[], { api, reader }: Planning): Promise<Change[]> {
  const changes: Change[] = [];
  for (const step of steps) changes.push(await prune(api, step, reader));
  return changes;
}

/** Whether all that has failed may end by itself, but for a right that is missing. */
function mayPass({ changes, error }: Turn): boolean {
  const errors = [...(error ? [error] : []), ...changes.flatMap((change) => change.error ?? [])];
  return errors.length > 0 && errors.every(passes);
}

function passes({ retry, reason, cause }: OperatorError): boolean {
  if (retry === 'onChange') return false;
  return reason !== 'Forbidden' || (cause instanceof ApiError && cause.newToAdmission);
}

/** Of several turns, what has come of an object: that it was made counts for more than that it then stood. */
function remember(results: Map<string, Change>, change: Change): void {
  const id = objectId(change.ref);
  const known = results.get(id);
  const stands = change.action === 'unchanged' || change.action === 'skipped';
  const wasMade = known?.action === 'created' || known?.action === 'recreated';
  const saysLess = stands || (wasMade && change.action === 'configured');
  if (known && known.action !== 'failed' && known.action !== 'skipped' && saysLess) return;
  results.set(id, change);
}
