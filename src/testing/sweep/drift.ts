import { isDeepStrictEqual } from 'node:util';
import { isHashAnnotation } from '../../contract/names.js';
import { describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { collection } from '../cluster.js';
import { eventually } from '../eventually.js';
import { fresh } from './fresh.js';
import { ownEntries } from './normal.js';
import { attempt, several, shortest } from './outcome.js';
import type { Failure, Outcome } from './outcome.js';
import { describeSteps, leavesOf, valueAt, withValueAt } from './owned-leaves.js';
import type { Steps } from './owned-leaves.js';
import type { Sample, Stand } from './stand.js';
import type { Trial } from './trial.js';

/** An engine takes more than five corrections of one object for a fight, and pauses; a new one has forgotten them. */
const BETWEEN_STARTS = 4;

/** Every owned field of every object is put right when somebody changes it, and every object made anew. */
export async function drift(stand: Stand): Promise<Outcome> {
  const counts = { changed: 0, refused: 0, removed: 0 };
  const failures = await several(stand.samples, async (sample) => {
    const found: Failure[] = [];
    found.push(...(await attempt(stand, (trial) => driftFields(trial, sample, counts, found))));
    found.push(...(await attempt(stand, (trial) => removeObjects(trial, sample, counts))));
    return found;
  });
  const { changed, refused, removed } = counts;
  return {
    tried: `${changed} fields changed, ${refused} that the API server lets nobody change, ${removed} objects removed`,
    failures: shortest(failures.flat()),
  };
}

interface Counts {
  changed: number;
  refused: number;
  removed: number;
}

async function driftFields(trial: Trial, sample: Sample, counts: Counts, failures: Failure[]): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await trial.settled();
  const begun = [...trial.steps];
  for (const object of await trial.objects()) {
    let corrections = 0;
    for (const steps of fieldsOf(object)) {
      if (corrections > 0 && corrections % BETWEEN_STARTS === 0) await trial.restart();
      const outcome = await driftOne(trial, object, steps);
      if (outcome === 'refused') {
        counts.refused++;
        continue;
      }
      corrections++;
      counts.changed++;
      if (outcome !== 'corrected') failures.push({ what: outcome.what, sequence: [...begun, outcome.step] });
    }
  }
}

/** What ties it to its owner is left alone: an object without that is somebody else's. */
function fieldsOf(object: AnyObject): Steps[] {
  return ownEntries(object)
    .flatMap(({ fieldsV1 }) => leavesOf(fieldsV1))
    .filter((steps) => {
      const [first, second, third] = steps;
      if (first !== 'metadata') return true;
      return second !== 'ownerReferences' && !(typeof third === 'string' && isHashAnnotation(third));
    });
}

type DriftOutcome = 'corrected' | 'refused' | { readonly what: string; readonly step: string };

async function driftOne(trial: Trial, { kind, metadata }: AnyObject, steps: Steps): Promise<DriftOutcome> {
  const { cluster, types } = trial.stand;
  const type = types.find((one) => one.kind === kind);
  if (!type) return 'refused';
  const place = { type, namespace: trial.namespace, name: metadata.name };
  const path = `${collection(type, trial.namespace)}/${metadata.name}`;
  const before = await cluster.get(place);
  const old = valueAt(before, steps);
  for (const put of othersThan(old)) {
    const body = withValueAt(before, steps, put);
    const answer = await cluster.send('PUT', path, { body, query: { fieldManager: 'somebody' } });
    if (answer.status >= 300 || isDeepStrictEqual(valueAt(answer.body, steps), old)) continue;
    const what = `${kind}: ${describeSteps(steps)} isn't put right`;
    const step = `somebody sets ${describeSteps(steps)} of ${describeRef(refOf({ ...before, kind }))} to ${put === undefined ? 'nothing' : JSON.stringify(put)}`;
    try {
      await eventually(
        async () => {
          if (!isDeepStrictEqual(valueAt(await cluster.get(place), steps), old)) throw new Error(what);
        },
        { deadlineMilliseconds: 8_000 },
      );
      return 'corrected';
    } catch {
      return { what, step };
    }
  }
  return 'refused';
}

/** Values to put in its place, of which the API server may take none. */
function othersThan(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1, value - 1, undefined];
  if (typeof value !== 'string') return [undefined];
  const bumped = value.replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
  return [...(bumped === value ? [] : [bumped]), `${value}-x`, `${value}x`, undefined];
}

async function removeObjects(trial: Trial, sample: Sample, counts: Counts): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await trial.settled();
  const begun = trial.steps.length;
  for (const object of await trial.objects()) {
    trial.steps.splice(begun);
    await trial.remove(object);
    counts.removed++;
    await eventually(
      async () => {
        const again = (await trial.objects()).find(
          (one) => groupKind(one) === groupKind(object) && one.metadata.name === object.metadata.name,
        );
        if (!again || again.metadata.uid === object.metadata.uid)
          throw new Error(`${object.kind} isn't made anew when somebody deletes it`);
      },
      { deadlineMilliseconds: 10_000 },
    );
    await trial.becomes(await fresh(trial.stand, sample));
  }
}
