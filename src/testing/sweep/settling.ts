import { setTimeout as delay } from 'node:timers/promises';
import { controllerOf } from '../../contract/object.js';
import { rolledOut } from './convergence.js';
import { isGone } from './gone.js';
import { shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import type { Trial } from './trial.js';

const WATCHED_MILLISECONDS = 2_000;
const ROUNDS = 4;
/** A write of a status or an event. */
const TOLD = /\/status$| events(\/|$)/;

/** Settled means that nothing is asked for any more, after a restart neither. */
export async function settling(stand: Stand): Promise<Outcome> {
  const failures = await trials(stand, stand.samples, settle);
  return { tried: `${stand.samples.length} samples and restarts`, failures: shortest(failures) };
}

async function settle(trial: Trial, sample: Sample): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await rolledOut(trial);
  trial.steps.push('wait until it is settled');
  await requireSilence(trial);
  for (let round = 0; round < ROUNDS; round++) {
    const before = await versionsOf(trial);
    const { writes } = (await trial.restart()).wire;
    await rolledOut(trial);
    if (writes.length === 0) return;
    // What the cluster has done to the objects meanwhile is told, once.
    const isToldOnly = writes.every((write) => TOLD.test(write)) && before !== (await versionsOf(trial));
    if (isToldOnly && round < ROUNDS - 1) continue;
    throw new Error(`settled, and after a restart it writes ${writes.slice(0, 5).join(', ')}`);
  }
}

async function versionsOf(trial: Trial): Promise<string> {
  const objects = await trial.objects();
  return objects.map(({ metadata: { uid, resourceVersion } }) => `${uid} ${resourceVersion}`).join();
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

/** Every object belongs to the custom resource, or is shared; what is of it goes with it. */
export async function ownership(stand: Stand): Promise<Outcome> {
  if (stand.types.length === 0) return { tried: '', failures: [], notApplicable: 'it makes no objects' };
  let shared = 0;
  const failures = await trials(stand, stand.samples, async (trial, sample) => {
    await trial.start();
    await trial.create(sample);
    await trial.settled();
    const ofThis = await requireOwned(trial);
    shared += ofThis;
    await trial.delete();
    await isGone(trial);
  });
  const those = shared > 0 ? `, ${shared} shared objects, which have to be as before in the end` : '';
  return { tried: `${stand.samples.length} samples${those}`, failures: shortest(failures) };
}

/** Returns how many objects are shared. */
async function requireOwned(trial: Trial): Promise<number> {
  const { metadata } = await trial.get();
  const objects = await trial.objects();
  const own = objects.filter((object) => !trial.scene.isShared(object));
  const foreign = own.find((object) => controllerOf(object)?.uid !== metadata.uid);
  if (foreign)
    throw new Error(
      `${foreign.kind} ${foreign.metadata.name} isn't owned by the custom resource: give its apply an owner`,
    );
  return objects.length - own.length;
}
