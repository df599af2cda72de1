import type { Upgrades } from '../contract/kind.js';
import { RELEASE_ANNOTATION } from '../contract/names.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { UPDATE_PENDING } from '../contract/change.js';
import { hold } from '../engine/preview/hold.js';
import { isGenerated } from '../values/generated.js';
import { differences } from './compare.js';
import type { Normal } from './compare.js';
import { carryOut, killed } from './disturbances.js';
import { TOGETHER } from './drift.js';
import { notApplicable } from './report.js';
import type { Outcome } from './report.js';
import { distinct, testedKind } from './tested-kind.js';
import { becomes, conditionOf, CONVERGENCE_MILLISECONDS, rolledOut, soon } from './trial.js';
import { trialOfEach, undisturbed } from './trial.js';
import type { ConformanceRun, Trial, Version } from './trial.js';
import type { KillPoint } from './wire.js';

/** Names of the builds of both versions. */
const [FORMER, PRESENT] = ['0000000a', '0000000b'];

/** A dry run of what would change is a write, too. */
const POINTS: readonly KillPoint[] = [
  { write: 1, when: 'before' },
  { write: 1, when: 'after' },
  { write: 2, when: 'after' },
];

/**
 * Checks that held updates change nothing of what the former version of the kind has made until they are released, and that everything
 * is then as the present version alone would have it.
 */
export async function upgrade(given: ConformanceRun): Promise<Outcome> {
  const { before, kind, samples, surroundings } = given;
  if (!before) return notApplicable('no former version of it is given');
  if (![before, kind].every(({ rendering }) => 'each' in rendering)) return TOGETHER;
  const types = distinct([...given.types, ...testedKind(before, samples, surroundings).types]);
  const run: ConformanceRun = { ...given, types, expected: new Map() };
  const former: Version = { kind: before, upgrades: held(FORMER) };
  const present: Version = { kind, upgrades: held(PRESENT) };
  const ways = samples.flatMap((sample, index) =>
    samples.slice(index, index + 2).flatMap((to) => POINTS.map((point) => ({ sample, to, point }))),
  );
  const failures = await trialOfEach(run, ways, async (trial, { sample, to, point }) => {
    trial.steps.push('an operator of the former version starts');
    trial.version = former;
    await trial.startWith(sample);
    const state = objectsOf(await trial.content(await trial.get()));
    const alone = objectsOf(await undisturbed(run, sample));
    let made = await valuesNow(trial);

    await startAs(trial, present, 'present');
    // Its first writes are of what would change.
    trial.operator.wire.killAt(point);
    await rolledOut(trial);
    await trial.restart();
    await requireAsBefore(trial, made);
    await soon(trial, CONVERGENCE_MILLISECONDS, () => requireSaid(trial, state, alone));
    made = await loseOne(trial, made, valuesOf(alone));
    await requireAsBefore(trial, made);

    const act = (): Promise<void> =>
      to === sample ? trial.annotate(RELEASE_ANNOTATION, PRESENT) : trial.edit(to);
    const expected = await undisturbed(run, to);
    const expect = (): Promise<void> => becomes(trial, expected, run.keepsEarlier(to.spec));
    await carryOut(trial, { do: act, expect }, killed(point));
    const left = conditionOf(await trial.get(), UPDATE_PENDING);
    if (left) throw new Error(`released, it still has ${UPDATE_PENDING}: ${left.message}`);

    made = await valuesNow(trial);
    await startAs(trial, former, 'former');
    await rolledOut(trial);
    await requireAsBefore(trial, made);
  });
  const tried = `releases of ${samples.length} samples and edits of ${samples.length - 1}, each with ${POINTS.length} kills`;
  return { tried, failures };
}

function held(build: string): Upgrades {
  return { build: () => build, term: () => 0, handler: hold };
}

async function startAs(trial: Trial, version: Version, name: 'former' | 'present'): Promise<void> {
  trial.steps.push(`the operator is killed, and one of the ${name} version starts, which holds updates`);
  trial.version = version;
  await trial.start();
}

/** Returns the objects of a state, without generated ones, which are made while updates are held. */
function objectsOf(state: Normal): Normal {
  const entries = Object.entries(state).filter(
    ([id, object]) => !id.startsWith('<') && !isGenerated(object as AnyObject),
  );
  return Object.fromEntries(entries);
}

/** Returns the values of objects, without who owns which. */
function valuesOf(objects: Normal): Normal {
  const entries = Object.entries(objects as Readonly<Record<string, Normal>>);
  return Object.fromEntries(entries.map(([id, { owned: _, ...values }]) => [id, values]));
}

async function uidsOf(trial: Trial): Promise<Readonly<Record<string, string | undefined>>> {
  const objects = (await trial.objects()).filter((object) => !isGenerated(object));
  return Object.fromEntries(objects.map((object) => [objectId(object), object.metadata.uid]));
}

/** Returns the values of what there is, and which objects these are. */
async function valuesNow(trial: Trial): Promise<Normal> {
  const content = await trial.content(await trial.get());
  return { ...valuesOf(objectsOf(content)), '<uids>': await uidsOf(trial) };
}

async function requireAsBefore(trial: Trial, made: Normal): Promise<void> {
  await rolledOut(trial);
  const [changed] = differences(made, await valuesNow(trial));
  if (changed) throw new Error(`while its update is held, ${changed.text}`);
}

/** @throws where what would change isn't said, or nothing would, and something is said. Of fields that have another owner alone, nothing need be. */
async function requireSaid(trial: Trial, former: Normal, present: Normal): Promise<void> {
  const { status, message = '' } = conditionOf(await trial.get(), UPDATE_PENDING) ?? {};
  const [value] = differences(valuesOf(former), valuesOf(present));
  if (value && status !== 'True')
    throw new Error(
      `${UPDATE_PENDING} is ${status ?? 'absent'}, although in the present version ${value.text}`,
    );
  if (status === 'True' && differences(former, present).length === 0)
    throw new Error(`${UPDATE_PENDING} is True (${message}), although both versions make the same`);
}

/** Deletes an object that both versions make, which comes back as the present one makes it. @returns what there is to be from now on */
async function loseOne(trial: Trial, made: Normal, present: Normal): Promise<Normal> {
  const idOf = ({ metadata, ...object }: AnyObject): string =>
    `${groupKind(object)} ${metadata.name.replaceAll(trial.name, '<name>')}`;
  const objects = (await trial.objects()).filter((object) => trial.isCreatedAgain(object));
  const lost = objects.find((object) => [made, present].every((state) => Object.hasOwn(state, idOf(object))));
  if (!lost) return made;
  await trial.remove(lost);
  const uids = await soon(trial, CONVERGENCE_MILLISECONDS, async () => {
    const { [objectId(lost)]: uid } = await uidsOf(trial);
    if (uid === undefined || uid === lost.metadata.uid)
      throw new Error(`while its update is held, ${lost.kind} ${lost.metadata.name} isn't made again`);
    return { ...(made['<uids>'] as object), [objectId(lost)]: uid };
  });
  return { ...made, [idOf(lost)]: present[idOf(lost)], '<uids>': uids };
}
