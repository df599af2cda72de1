import { isDeepStrictEqual } from 'node:util';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { eventually } from '../eventually.js';
import { rolledOut } from './convergence.js';
import { differences, ownEntries } from './normal.js';
import { attempt } from './outcome.js';
import type { Outcome } from './outcome.js';
import { describeSteps, leavesOf, valueAt } from './owned-leaves.js';
import { CONVERGENCE_MILLISECONDS } from './patience.js';
import { conditionOf } from './stand.js';
import type { Stand } from './stand.js';
import type { Trial } from './trial.js';

/** Two custom resources in one namespace have nothing of each other, and neither takes anything from the other. */
export async function collisions(stand: Stand): Promise<Outcome> {
  const [sample] = stand.samples;
  const failures = await attempt(stand, async (trial) => {
    await trial.start();
    await trial.create(sample, 'one');
    await rolledOut(trial, 'one');
    const ofOne = await trial.objects();
    const before = await trial.fate('one');
    await trial.create(sample, 'two');
    await rolledOut(trial, 'two');
    const two = await trial.get('two');
    const stalled = conditionOf(two, 'Stalled');
    if (stalled?.reason === 'OwnershipConflict') throw new Error(stalled.message);
    requireApart(trial, ofOne, await trial.objects());
    await eventually(
      async () => {
        const [changed] = differences(before, await trial.fate('one'));
        if (changed === undefined) return;
        throw new Error(`with a second one of the same spec, of the first ${changed}`);
      },
      { deadlineMilliseconds: trial.pace.scaled(CONVERGENCE_MILLISECONDS), intervalMilliseconds: 200 },
    );
  });
  return { tried: 'two custom resources in one namespace', failures };
}

function requireApart({ scene }: Trial, ofOne: readonly AnyObject[], ofBoth: readonly AnyObject[]): void {
  const own = ofOne.filter((object) => !scene.isShared(object));
  const both = ofBoth.filter((object) => !scene.isShared(object));
  if (both.length !== 2 * own.length) {
    const shared = own.map((object) => describeRef(refOf(object))).join(', ');
    throw new Error(
      `one makes ${own.length} objects (${shared}), both together ${both.length}: put the name of the custom resource into theirs`,
    );
  }
  for (const object of ofOne.filter((one) => scene.isShared(one))) requireKept(object, ofBoth);
}

/** What a custom resource has in a shared object stays, whatever is beside it. */
function requireKept(before: AnyObject, all: readonly AnyObject[]): void {
  const after = all.find((object) => objectId(object) === objectId(before));
  const lost = ownEntries(before)
    .flatMap(({ fieldsV1 }) => leavesOf(fieldsV1))
    .filter(([first]) => first !== 'metadata')
    .find((steps) => !isDeepStrictEqual(valueAt(before, steps), valueAt(after, steps)));
  if (lost)
    throw new Error(
      `${before.kind} ${before.metadata.name}: a second one of the same spec takes ${describeSteps(lost)} from the first`,
    );
}
