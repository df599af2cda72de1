import { describeRef, refOf } from '../../contract/object.js';
import { attempt } from './outcome.js';
import type { Outcome } from './outcome.js';
import { conditionOf } from './stand.js';
import type { Stand } from './stand.js';

/** Two custom resources in one namespace have nothing of each other. */
export async function collisions(stand: Stand): Promise<Outcome> {
  const [sample] = stand.samples;
  const failures = await attempt(stand, async (trial) => {
    await trial.start();
    await trial.create(sample, 'one');
    await trial.settled('one');
    const ofOne = await trial.objects();
    await trial.create(sample, 'two');
    const two = await trial.settled('two');
    const ofBoth = await trial.objects();
    const stalled = conditionOf(two, 'Stalled');
    if (stalled?.reason === 'OwnershipConflict') throw new Error(stalled.message);
    if (ofBoth.length === 2 * ofOne.length) return;
    const shared = ofOne.map((object) => describeRef(refOf(object))).join(', ');
    throw new Error(
      `one makes ${ofOne.length} objects (${shared}), both together ${ofBoth.length}: put the name of the custom resource into theirs`,
    );
  });
  return { tried: 'two custom resources in one namespace', failures };
}
