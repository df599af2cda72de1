import type { Normal } from './normal.js';
import type { Sample, Stand } from './stand.js';
import { Trial } from './trial.js';

const known = new WeakMap<Stand, Map<string, Promise<Normal>>>();

/** What a custom resource of this spec leads to that was never anything else, and whose operator nobody disturbs. */
export function fresh(stand: Stand, sample: Sample): Promise<Normal> {
  const states = known.get(stand) ?? new Map<string, Promise<Normal>>();
  known.set(stand, states);
  const id = JSON.stringify(sample);
  const state = states.get(id) ?? make(stand, sample);
  states.set(id, state);
  return state;
}

async function make(stand: Stand, sample: Sample): Promise<Normal> {
  await using trial = await Trial.begin(stand);
  await trial.start();
  await trial.create(sample);
  await trial.rolledOut();
  return await trial.state();
}
