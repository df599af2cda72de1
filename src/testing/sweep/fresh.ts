import { endState, rolledOut } from './convergence.js';
import type { Normal } from './normal.js';
import { SpecRefused } from './refused.js';
import type { Sample, Stand } from './stand.js';
import { Trial } from './trial.js';

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
