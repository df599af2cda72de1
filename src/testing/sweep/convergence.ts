import { setTimeout as delay } from 'node:timers/promises';
import { differences } from './normal.js';
import type { Normal } from './normal.js';
import { CONVERGENCE_MILLISECONDS, Patience, ROLLOUT_MILLISECONDS } from './patience.js';
import { isComplete, isStuck } from './ready.js';
import { conditionOf } from './stand.js';
import type { LiveResource } from './stand.js';
import type { Trial } from './trial.js';

/** For so long, pods may still come that the cluster says it can't place. */
const STUCK_MILLISECONDS = 5_000;
/** For so long, the operator may not have heard yet that everything is there. */
const BEHIND_MILLISECONDS = 3_000;

/** What is waited for, as far as that goes: a `Trial`. */
export type Rolling = Pick<Trial, 'settled' | 'isAlive' | 'objects' | 'pods' | 'state' | 'pace'>;

/** In milliseconds. */
export interface Clock {
  now(): number;
  wait(milliseconds: number): Promise<unknown>;
}

const realClock: Clock = { now: () => performance.now(), wait: (milliseconds) => delay(milliseconds) };

/** How waiting for pods has ended: with all of them, without, or with the operator. */
export interface Rollout {
  readonly ended: 'complete' | 'incomplete' | 'dead';
  /** Whether something wasn't ready at first. */
  readonly hasWaited: boolean;
}

/** Waits until it is settled, and has its pods, or is dead; of those that don't come, the cluster says as a rule why. */
export async function rolledOut(trial: Rolling, name?: string, clock = realClock): Promise<Rollout> {
  await trial.settled(name);
  const started = clock.now();
  let hasWaited = false;
  let ended: Rollout['ended'] = 'dead';
  while (trial.isAlive()) {
    const objects = await trial.objects();
    ended = objects.every(isComplete) ? 'complete' : 'incomplete';
    if (ended === 'complete') break;
    hasWaited = true;
    const lasts = clock.now() - started;
    if (lasts > ROLLOUT_MILLISECONDS) break;
    if (lasts > trial.pace.scaled(STUCK_MILLISECONDS) && isStuck([...objects, ...(await trial.pods())]))
      break;
    await clock.wait(100);
  }
  await trial.settled(name);
  return { ended: trial.isAlive() ? ended : 'dead', hasWaited };
}

/**
 * What it leads to. Somebody else may begin something when all seems to be over, as an autoscaler does that asks for more
 * pods; so a state in which something is on its way counts only where that goes on although everything is there, as with a
 * kind that waits for somebody.
 */
export async function endState(trial: Rolling, clock = realClock): Promise<Normal> {
  const started = clock.now();
  let since = started;
  for (;;) {
    const { ended, hasWaited } = await rolledOut(trial, undefined, clock);
    const state = await trial.state();
    if (ended !== 'complete' || !isReconciling(state)) return state;
    if (hasWaited) since = clock.now();
    const now = clock.now();
    if (now - since > trial.pace.scaled(BEHIND_MILLISECONDS) || now - started > ROLLOUT_MILLISECONDS)
      return state;
    await clock.wait(100);
  }
}

function isReconciling(state: Normal): boolean {
  return JSON.stringify(state['<readiness>']).includes('"Reconciling":"True');
}

/** Waits until it is so, and stays so once the operator is at rest. @throws with where it differs */
export async function becomes(trial: Trial, expected: Normal): Promise<void> {
  await converges(trial, expected, (state) => state);
}

/** Waits until it fares as in that state, whatever its objects are like. */
export async function fares(trial: Trial, expected: Normal): Promise<void> {
  await converges(trial, expected, ({ '<readiness>': readiness }) => ({ '<readiness>': readiness }));
}

async function converges(trial: Trial, expected: Normal, part: (state: Normal) => Normal): Promise<void> {
  const { pace, stand } = trial;
  const { convergenceMilliseconds = CONVERGENCE_MILLISECONDS } = stand;
  const patience = new Patience(performance.now(), pace.scaled(convergenceMilliseconds));
  for (;;) {
    await trial.settled();
    const state = await trial.state();
    const lines = differences(part(expected), part(state));
    if (lines.length === 0) return;
    // Pods may take their time, and watches that were cut are opened again after a pause.
    const readiness = { '<readiness>': expected['<readiness>'] };
    const waits = differences(part(expected), part({ ...state, ...readiness })).length === 0;
    const isRolling = waits && !(await trial.objects()).every(isComplete);
    if (patience.isOver(performance.now(), isRolling || !trial.operator.wire.isWatching))
      throw new Error(lines.join('; ') + (waits ? toldBy(await trial.get()) : ''));
    await delay(200);
  }
}

/** What it says of itself, where that alone is other than it should be. */
function toldBy(cr: LiveResource): string {
  const { message } = conditionOf(cr, 'Ready') ?? {};
  return message === undefined ? '' : `; it says: ${message}`;
}
