import type { AnyObject } from '../../contract/object.js';
import { eventually } from '../eventually.js';
import { differences } from './normal.js';
import type { Trial } from './trial.js';

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
