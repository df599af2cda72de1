import { setTimeout as delay } from 'node:timers/promises';
import { controllerOf } from '../../contract/object.js';
import { shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import type { Trial } from './trial.js';

const WATCHED_MILLISECONDS = 2_000;
const ROUNDS = 4;

/** Settled means that nothing is asked for any more, after a restart neither. */
export async function settling(stand: Stand): Promise<Outcome> {
  const failures = await trials(stand, stand.samples, settle);
  return { tried: `${stand.samples.length} samples and restarts`, failures: shortest(failures) };
}

async function settle(trial: Trial, sample: Sample): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await trial.rolledOut();
  trial.steps.push('wait until it is settled');
  await requireSilence(trial);
  const { wire } = await trial.restart();
  await trial.rolledOut();
  if (wire.writes.length > 0)
    throw new Error(`settled, and after a restart it writes ${wire.writes.slice(0, 5).join(', ')}`);
}

async function requireSilence(trial: Trial): Promise<void> {
  const { wire } = trial.operator;
  let before = wire.requests;
  for (let round = 0; round < ROUNDS; round++) {
    before = wire.requests;
    await delay(WATCHED_MILLISECONDS);
    // What the cluster still had to do with the objects is told once, and then no more.
    if (wire.requests === before) return;
  }
  throw new Error(
    `settled, it still asks ${wire.requests - before} times in 2 s; its last writes: ${wire.writes.slice(-3).join(', ') || 'none'}`,
  );
}

/** Every object belongs to the custom resource, goes with it, and stays as long as it does. */
export async function ownership(stand: Stand): Promise<Outcome> {
  const failures = await trials(stand, stand.samples, async (trial, sample) => {
    await trial.start();
    await trial.create(sample);
    await trial.settled();
    await requireOwned(trial);
    await trial.delete();
    await trial.isGone();
  });
  return { tried: `${stand.samples.length} samples`, failures: shortest(failures) };
}

async function requireOwned(trial: Trial): Promise<void> {
  const { metadata } = await trial.get();
  const foreign = (await trial.objects()).find((object) => controllerOf(object)?.uid !== metadata.uid);
  if (foreign)
    throw new Error(
      `${foreign.kind} ${foreign.metadata.name} isn't owned by the custom resource: give its apply an owner`,
    );
}
