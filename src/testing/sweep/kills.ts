import type { KillPoint } from '../wire.js';
import { becomes, rolledOut } from './convergence.js';
import { undisturbed } from './fresh.js';
import { isGone, isGoneOrDead } from './gone.js';
import { shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import { Trial } from './trial.js';

/** Killed before and after each write of a create, an update and a delete, it ends where it would have undisturbed. */
export async function kills(stand: Stand): Promise<Outcome> {
  const [from, to = from] = stand.samples;
  const { most: count, deleting } = await writesOf(stand, from, to);
  const points = Array.from({ length: count }, (_, index) => index + 1).flatMap((write) =>
    (['before', 'after'] as const).map((when) => ({ write, when })),
  );
  let done = 0;
  const failures = await trials(stand, points, async (trial, point) => {
    const killed = (await killedAt(trial, point, from, to)) + (await killedDeleting(trial, point, deleting));
    done += killed;
  });
  return { tried: `${done} kills at ${count} writes`, failures: shortest(failures) };
}

interface Writes {
  /** Of a create, an update or a delete, whichever has most. */
  readonly most: number;
  readonly deleting: number;
}

/** How many writes there are, undisturbed. */
async function writesOf(stand: Stand, from: Sample, to: Sample): Promise<Writes> {
  await using trial = await Trial.begin(stand);
  const { wire } = await trial.start();
  const writesOfOne = async (act: () => Promise<void>): Promise<number> => {
    const before = wire.writes.length;
    await act();
    return wire.writes.length - before;
  };
  const creating = await writesOfOne(async () => {
    await trial.create(from);
    await rolledOut(trial);
  });
  const updating = await writesOfOne(async () => {
    await trial.edit(to);
    await rolledOut(trial);
  });
  const deleting = await writesOfOne(async () => {
    await trial.delete();
    await isGone(trial);
    await trial.quiet();
  });
  return { most: Math.max(creating, updating, deleting), deleting };
}

/** Returns how many kills there were. */
async function killedAt(trial: Trial, point: KillPoint, from: Sample, to: Sample): Promise<number> {
  let count = 0;
  const disturbed = async (act: () => Promise<void>, ...path: [Sample, ...Sample[]]): Promise<void> => {
    const { wire } = trial.operator;
    wire.killAt(point);
    await act();
    await rolledOut(trial);
    // Nor does it die later, when nobody would start another one.
    wire.spare();
    if (await startedAgain(trial, point)) count++;
    await becomes(trial, await undisturbed(trial.stand, ...path));
  };
  await trial.start();
  await disturbed(() => trial.create(from), from);
  await disturbed(() => trial.edit(to), from, to);
  return count;
}

/** What the operator writes when it is deleted, if anything, is left to the next one. */
async function killedDeleting(trial: Trial, point: KillPoint, writes: number): Promise<number> {
  const isWrite = point.write <= writes;
  if (isWrite) trial.operator.wire.killAt(point);
  await trial.delete();
  if (isWrite) await isGoneOrDead(trial);
  const isKilled = await startedAgain(trial, point);
  // Without a write, the end comes at any time.
  if (!isKilled) await trial.restart();
  await isGone(trial);
  return isKilled ? 1 : 0;
}

/** A new operator, where the last one has met its end. */
async function startedAgain(trial: Trial, { write, when }: KillPoint): Promise<boolean> {
  const at = trial.operator.wire.diedAt;
  if (at === undefined) return false;
  trial.steps.push(`the operator is killed ${when} ${at}, its write ${write}, and started again`);
  await trial.start();
  return true;
}
