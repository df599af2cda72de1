import { setTimeout as delay } from 'node:timers/promises';
import type { AnyObject } from '../../contract/object.js';
import { childReadiness } from '../../contract/readiness.js';
import { eventually } from '../eventually.js';
import { differences } from './normal.js';
import type { Normal } from './normal.js';
import { conditionOf } from './stand.js';
import type { LiveResource, Sample, Stand } from './stand.js';
import { SpecRefused, Trial } from './trial.js';

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
interface Rollout {
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

interface Workload {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly availableReplicas?: number };
}

/** By the rules of kstatus, and by what its spec asks for. */
export function isReady(object: AnyObject): boolean {
  if (childReadiness(object).phase !== 'ready') return false;
  if (!['Deployment', 'StatefulSet'].includes(object.kind)) return true;
  const { spec, status } = object as Workload;
  return (status?.availableReplicas ?? 0) >= (spec?.replicas ?? 1);
}

/**
 * Whether nothing is expected of somebody else any more: it is ready, and where it scales others, its controller has looked
 * at them, since that may be when it asks for more of them.
 */
export function isComplete(object: AnyObject): boolean {
  const { conditions = [] } = (object.status ?? {}) as Status;
  const isSeen = object.kind !== 'HorizontalPodAutoscaler' || conditions.length > 0;
  return isSeen && isReady(object);
}

interface Status {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
  }[];
}

/** Whether the cluster says of an object that its pods can't be made, or of a pod that no node takes it. */
function isStuck(objects: readonly AnyObject[]): boolean {
  return objects.some(({ status }) =>
    (status as Status | undefined)?.conditions?.some(
      ({ type, status: value, reason }) =>
        (type === 'ReplicaFailure' && value === 'True') || (value === 'False' && reason === 'Unschedulable'),
    ),
  );
}

/** For so long, something may be other than it should be, while nothing else is waited for. */
export const CONVERGENCE_MILLISECONDS = 12_000;
/** The longest that pods may take. */
const ROLLOUT_MILLISECONDS = 90_000;

/** How long to wait until a custom resource becomes what it should be; times are in milliseconds of one clock. */
export class Patience {
  /** Since when something else than pods is waited for. */
  private since: number;

  constructor(
    private readonly started: number,
    private readonly convergenceMilliseconds = CONVERGENCE_MILLISECONDS,
  ) {
    this.since = started;
  }

  /**
   * Whether it has lasted too long by now. While only pods are missing, they get their time; once they are there, the
   * operator gets its own, since it hears of them a moment later.
   */
  isOver(now: number, isRolling: boolean): boolean {
    if (!isRolling) return now - this.since > this.convergenceMilliseconds;
    this.since = now;
    return now - this.started > ROLLOUT_MILLISECONDS;
  }
}

/** The garbage collector looks for new kinds every half minute only. */
const DEADLINE = { deadlineMilliseconds: 45_000, intervalMilliseconds: 100 };

/** Waits until it and all that was made of it are gone, and what is shared is as it was before. */
export async function isGone(trial: Trial): Promise<void> {
  await eventually(() => requireGone(trial), DEADLINE);
}

/** The same, or until the operator is dead. */
export async function isGoneOrDead(trial: Trial): Promise<void> {
  await eventually(async () => {
    if (trial.isAlive()) await requireGone(trial);
  }, DEADLINE);
}

async function requireGone(trial: Trial): Promise<void> {
  const { stand, scene, untouched } = trial;
  if (await stand.cluster.find(trial.place())) throw new Error('it is still there');
  const left = await trial.objects();
  const own = left.filter((object) => !scene.isShared(object)).map(nameOf);
  if (own.length > 0) throw new Error(`${own.join(', ')} stays when it is deleted`);
  const shared = left.map(nameOf);
  if (shared.length > 0)
    throw new Error(`of its fields in ${shared.join(', ')} some stay when it is deleted`);
  const changed = differences(untouched, await trial.content());
  if (changed.length > 0) throw new Error(`when it is deleted, ${changed.join('; ')}`);
}

function nameOf({ kind, metadata }: AnyObject): string {
  return `${kind} ${metadata.name}`;
}

const known = new WeakMap<Stand, Map<string, Promise<Normal>>>();

/** What a custom resource of this spec leads to that was never anything else, and whose operator nobody disturbs. */
export function fresh(stand: Stand, sample: Sample): Promise<Normal> {
  return once(stand, [sample]);
}

/**
 * What a custom resource leads to that had these specs one after the other, and whose operator nobody disturbed. What has
 * been deleted for an earlier spec stays so; for all else it is that of a new one with the last.
 */
export function undisturbed(stand: Stand, ...path: readonly [Sample, ...Sample[]]): Promise<Normal> {
  const last = path.at(-1) ?? path[0];
  return once(stand, stand.removes.length === 0 ? [last] : path);
}

/** What has failed for another reason than the spec, such as a wait that ran out, is tried again by whoever asks next. */
function once(stand: Stand, path: readonly Sample[]): Promise<Normal> {
  const states = known.get(stand) ?? new Map<string, Promise<Normal>>();
  known.set(stand, states);
  const id = JSON.stringify(path);
  const found = states.get(id);
  if (found) return found;
  const state = live(stand, path);
  states.set(id, state);
  state.catch((error: unknown) => {
    if (!(error instanceof SpecRefused)) states.delete(id);
  });
  return state;
}

async function live(stand: Stand, [first, ...others]: readonly Sample[]): Promise<Normal> {
  await using trial = await Trial.begin(stand);
  await trial.start();
  if (first) await trial.create(first);
  for (const sample of others) {
    await rolledOut(trial);
    await trial.edit(sample);
  }
  return await endState(trial);
}
