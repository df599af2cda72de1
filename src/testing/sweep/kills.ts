import type { KillPoint } from '../wire.js';
import { fresh } from './fresh.js';
import { shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import { Trial } from './trial.js';

/** Killed before and after each write of a create, an update and a delete, it ends where it would have undisturbed. */
export async function kills(stand: Stand): Promise<Outcome> {
  const [from, to = from] = stand.samples;
  const count = await writesOf(stand, from, to);
  const points = Array.from({ length: count }, (_, index) => index + 1).flatMap((write) =>
    (['before', 'after'] as const).map((when) => ({ write, when })),
  );
  let done = 0;
  const failures = await trials(stand, points, async (trial, point) => {
    const killed = await killedAt(trial, point, from, to);
    done += killed;
  });
  return { tried: `${done} kills at ${count} writes`, failures: shortest(failures) };
}

/** How many writes a create or an update has at most, undisturbed. */
async function writesOf(stand: Stand, from: Sample, to: Sample): Promise<number> {
  await using trial = await Trial.begin(stand);
  const { wire } = await trial.start();
  await trial.create(from);
  await trial.settled();
  const creating = wire.writes.length;
  await trial.edit(to);
  await trial.settled();
  return Math.max(creating, wire.writes.length - creating);
}

/** Returns how many kills there were. */
async function killedAt(trial: Trial, point: KillPoint, from: Sample, to: Sample): Promise<number> {
  let count = 0;
  const disturbed = async (act: () => Promise<void>, expected: Sample): Promise<void> => {
    trial.operator.wire.killAt(point);
    await act();
    await trial.settled();
    const at = trial.operator.wire.diedAt;
    if (at !== undefined) {
      count++;
      trial.steps.push(
        `the operator is killed ${point.when} ${at}, its write ${point.write}, and started again`,
      );
      await trial.start();
    }
    await trial.becomes(await fresh(trial.stand, expected));
  };
  await trial.start();
  await disturbed(() => trial.create(from), from);
  await disturbed(() => trial.edit(to), to);
  await trial.delete();
  await trial.restart();
  await trial.isGone();
  return count + 1;
}
