import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  DRIFT_ANNOTATION,
  isHashAnnotation,
  PAUSED_ANNOTATION,
} from '../contract/names.js';
import { describeRef, keyOf, objectId } from '../contract/object.js';
import type { AnyObject, FieldsV1 } from '../contract/object.js';
import { describePath, fieldAt } from '../engine/steps/managed-fields.js';
import type { FieldPath } from '../engine/steps/managed-fields.js';
import { offerTo } from '../engine/steps/apply.js';
import { ownerUidOf, recordOf } from '../values/projections.js';
import { ifRefused, renderingOf } from './audit.js';
import { collection } from './cluster.js';
import { ownEntries } from './compare.js';
import type { Normal } from './compare.js';
import { eventually } from './eventually.js';
import { NO_OBJECTS, notApplicable } from './report.js';
import type { Failure, Outcome } from './report.js';
import { isDecorator } from './tested-kind.js';
import { attempt, becomes, conditionOf, ENOUGH, rolledOut, several, soon, trialOfEach } from './trial.js';
import { NOTICED_MILLISECONDS, undisturbed } from './trial.js';
import type { ConformanceRun, Trial } from './trial.js';

/** Number of corrections of one object after which the engine pauses is five; a new operator doesn't know of them. */
const CORRECTIONS_BETWEEN_STARTS = 4;
const CORRECTED_MILLISECONDS = 8_000;
const CREATED_MILLISECONDS = 10_000;
const WRITE_ATTEMPTS = 50;

/** Checks that every owned field is corrected when another manager changes it, and every deleted object created again. */
export async function drift(run: ConformanceRun): Promise<Outcome> {
  if (run.types.length === 0) return NO_OBJECTS;
  const counts = { changed: 0, left: 0, refused: 0, removed: 0 };
  const failures: Failure[] = [];
  await several(run.samples, async (sample) => {
    const driftAll = async (trial: Trial): Promise<void> => {
      await trial.startWith(sample);
      const begun = [...trial.steps];
      const conditions = await trial.conditions();
      for (const object of await trial.objects()) {
        for (const [index, path] of driftableFields(object).entries()) {
          if (failures.length >= ENOUGH) return;
          if (index > 0 && index % CORRECTIONS_BETWEEN_STARTS === 0) await trial.restart();
          trial.steps.splice(0, Infinity, ...begun);
          try {
            counts[await driftOne(trial, object, path, conditions)]++;
          } catch (error) {
            failures.push({ what: messageOf(error), sequence: [...trial.steps] });
          }
        }
      }
    };
    const removeAll = async (trial: Trial): Promise<void> => {
      await trial.start();
      await trial.create(sample);
      await rolledOut(trial);
      const begun = trial.steps.length;
      for (const object of (await trial.objects()).filter((one) => trial.isCreatedAgain(one))) {
        trial.steps.splice(begun);
        await trial.remove(object);
        counts.removed++;
        await soon(trial, CREATED_MILLISECONDS, async () => {
          const again = (await trial.objects()).find((one) => objectId(one) === objectId(object));
          if (!again || again.metadata.uid === object.metadata.uid)
            throw new Error(`${object.kind} isn't created again when it is deleted`);
        });
        await becomes(trial, await undisturbed(run, sample));
      }
    };
    for (const body of [driftAll, removeAll]) failures.push(...(await attempt(run, body)));
  });
  const { changed, left, refused, removed } = counts;
  const leaving =
    left > 0 ? `, ${left} of them left to another manager of a shared object, which the status says` : '';
  const tried = `${changed + left} fields changed${leaving}, ${refused} that the API server lets no one change, ${removed} objects removed`;
  const nothing = changed + left + refused + removed + failures.length === 0;
  return { tried, failures, ...(nothing && { notApplicable: 'no sample leads to an object' }) };
}

/** Changes a field as another manager, and waits for its correction. @throws where that doesn't come */
async function driftOne(
  trial: Trial,
  object: AnyObject,
  path: FieldPath,
  conditions: Normal,
): Promise<'changed' | 'left' | 'refused'> {
  const { cluster, settleMilliseconds, pace } = trial.run;
  const live = async (): Promise<unknown> => fieldAt(await cluster.get(trial.placeOf(object)), path);
  const old = await live();
  const isShared = trial.isShared(object);
  const isBack = async (): Promise<boolean> => isDeepStrictEqual(await live(), old);
  const areConditionsBack = async (): Promise<boolean> =>
    isDeepStrictEqual(await trial.conditions(), conditions);
  const requireBack = async (): Promise<'changed'> => {
    if ((await isBack()) && (!isShared || (await areConditionsBack()))) return 'changed';
    throw new Error(`${object.kind}: ${describePath(path)} isn't corrected`);
  };
  const requireBackOrLeft = async (): Promise<'changed' | 'left'> => {
    if ((await isBack()) && (await areConditionsBack())) return 'changed';
    await trial.settled();
    // A shared object isn't forced; then the status has to say so.
    return !(await areConditionsBack()) && !(await isBack()) ? 'left' : requireBack();
  };
  const options = { deadlineMilliseconds: pace.scaled(CORRECTED_MILLISECONDS) + 4 * settleMilliseconds };
  for (const value of othersThan(old)) {
    if (!(await put(trial, object, path, value))) continue;
    const outcome = await eventually(isShared ? requireBackOrLeft : requireBack, options);
    // Once the other manager gives it up, everything has to be as before.
    if (outcome === 'left') {
      await put(trial, object, path, undefined);
      await eventually(requireBack, options);
    }
    return outcome;
  }
  return 'refused';
}

/** Changes a field as another manager. @returns false where the API server lets no one */
export async function put(
  trial: Trial,
  object: AnyObject,
  path: FieldPath,
  value: unknown,
): Promise<boolean> {
  const { cluster } = trial.run;
  const place = trial.placeOf(object);
  const at = `${collection(place.type, place.namespace)}/${place.name}`;
  for (let attempts = 1; ; attempts++) {
    const before = await cluster.get(place);
    const body = withValueAt(before, path, value);
    const answer = await cluster.send('PUT', at, { body, query: { fieldManager: 'drift' } });
    // Its status may have changed in between.
    if (answer.status === 409 && attempts < WRITE_ATTEMPTS) continue;
    if (answer.status >= 300 || isDeepStrictEqual(fieldAt(answer.body, path), fieldAt(before, path)))
      return false;
    const shown = value === undefined ? 'nothing' : JSON.stringify(value);
    trial.steps.push(`set ${describePath(path)} of ${describeRef(object)} to ${shown}`);
    return true;
  }
}

/** Returns values that a field may take instead, nothing last. */
export function othersThan(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1, value - 1, undefined];
  if (typeof value !== 'string') return [undefined];
  const bumped = value.replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
  return [...(bumped === value ? [] : [bumped]), `${value}-x`, `${value}x`, undefined];
}

/** Returns the fields that the operator owns, but what ties an object to its owner: without that it belongs to others. */
export function driftableFields(object: AnyObject): FieldPath[] {
  return ownedFields(object).filter(
    ([first, second, third = '']) =>
      first !== 'f:metadata' || (second !== 'f:ownerReferences' && !isHashAnnotation(third.slice(2))),
  );
}

/** Returns the fields that the operator owns, without the keys of list items. */
export function ownedFields(object: AnyObject): FieldPath[] {
  return ownEntries(object).flatMap(({ fieldsV1 = {} }) => ownedLeaves(fieldsV1));
}

type Json = Readonly<Record<string, unknown>>;

export function ownedLeaves(fields: FieldsV1, path: FieldPath = []): FieldPath[] {
  const item = path.at(-1) ?? '';
  const keys = item.startsWith('k:') ? (JSON.parse(item.slice(2)) as Json) : {};
  return Object.entries(fields).flatMap(([segment, child]) => {
    const isKey = Object.hasOwn(keys, segment.slice(2));
    if (isKey || segment === '.' || segment.startsWith('v:') || segment.startsWith('i:')) return [];
    const isLeaf = segment.startsWith('f:') && Object.keys(child).every((key) => key === '.');
    return isLeaf ? [[...path, segment]] : ownedLeaves(child, [...path, segment]);
  });
}

/** Returns the same with another value there, or without it. */
export function withValueAt(value: unknown, [segment, ...rest]: FieldPath, put: unknown): unknown {
  if (segment === undefined) return put;
  if (segment.startsWith('k:')) {
    const keys = Object.entries(JSON.parse(segment.slice(2)) as Json);
    const isIt = (item: Json): boolean => keys.every(([key, wanted]) => isDeepStrictEqual(item[key], wanted));
    return (value as readonly Json[]).map((item) => (isIt(item) ? withValueAt(item, rest, put) : item));
  }
  const { [segment.slice(2)]: old, ...others } = value as Json;
  const inner = withValueAt(old, rest, put);
  return inner === undefined ? others : { ...others, [segment.slice(2)]: inner };
}

export const TOGETHER = notApplicable('it renders its custom resources together');

/** Checks that nothing is written in a pause, nor drift that is to be left, and that all is made up for once these end. */
export async function control(run: ConformanceRun): Promise<Outcome> {
  if (!('each' in run.kind.rendering)) return TOGETHER;
  const { kind, pace, samples } = run;
  const [from, to = from] = samples;
  let drifted = 0;
  const failures = await trialOfEach(run, ['true', 'warn', 'ignore'], async (trial, value) => {
    const isPause = value === 'true';
    const [annotation, said] = isPause ? [PAUSED_ANNOTATION, 'Paused'] : [DRIFT_ANNOTATION, 'Drifted'];
    const expected = await undisturbed(run, from, to);
    await trial.startWith(from);
    await trial.annotate(annotation, value);
    await trial.quiet();
    let begun = trial.audit.writes.length;
    await trial.edit(to);
    if (!isPause) {
      await becomes(trial, expected);
      begun = trial.audit.writes.length;
    }
    const fields = await driftEach(trial);
    drifted += fields.length;
    const requireLeft = async (): Promise<void> => {
      // An operator at rest is quiet until the event reaches it.
      await delay(pace.scaled(NOTICED_MILLISECONDS));
      await trial.quiet();
      const write = trial.audit.writes.slice(begun).find((one) => !/\/status$| events(\/|$)/.test(one));
      if (write !== undefined) throw new Error(`with ${annotation}=${value}, it sends ${write}`);
      const isSaid = conditionOf(await trial.get(), said)?.status === 'True';
      if (!isDecorator(kind) && isSaid !== (isPause || (value === 'warn' && fields.length > 0)))
        throw new Error(`with ${annotation}=${value}, the condition ${said} is ${isSaid ? '' : 'not '}True`);
    };
    await requireLeft();
    if (isPause && fields[0] && trial.isCreatedAgain(fields[0])) await trial.remove(fields[0]);
    await requireLeft();
    await trial.restart();
    await requireLeft();
    await trial.annotate(annotation, null);
    await becomes(trial, expected);
  });
  return { tried: `a pause, and drift that is left with and without a warning: ${drifted} fields`, failures };
}

/**
 * Checks that objects without an owner are taken, and not replaced: at once if they have only lost the reference to it, and else
 * once they are handed over, be they of others or kept when a namesake was deleted.
 */
export async function adoption(run: ConformanceRun): Promise<Outcome> {
  const { cluster, kind, samples } = run;
  if (!('each' in kind.rendering)) return TOGETHER;
  const origins = ['unreferenced', 'kept', 'foreign'] as const;
  const runs = samples.flatMap((sample) => origins.map((origin) => ({ sample, origin })));
  let count = 0;
  const failures = await trialOfEach(run, runs, async (trial, { sample, origin }) => {
    const expected = await undisturbed(run, sample);
    await trial.startWith(sample);
    // What is elsewhere goes with its owner, unless it is kept.
    const left = (await trial.objects()).filter((object) => recordOf(object)?.of?.isKept ?? true);
    const mark = async (change: (object: AnyObject) => object): Promise<void> => {
      for (const object of left) await cluster.merge(trial.placeOf(object), { metadata: change(object) });
    };
    if (origin === 'unreferenced') {
      trial.steps.push('take the owner reference off its objects');
      await mark(() => ({ ownerReferences: null }));
    } else {
      await trial.delete('Orphan');
      await eventually(async () => {
        if (await cluster.find(trial.place()))
          throw new Error('deleted with its objects orphaned, it is still there');
      });
      if (origin === 'foreign') trial.steps.push('make its objects look like those of others');
      // Without field managers, nothing says who has made them.
      if (origin === 'foreign')
        await mark(() => ({ annotations: { [APPLIED_HASH_ANNOTATION]: null }, managedFields: [{}] }));
      await trial.create(sample);
      const cr = await trial.settled();
      const uids = left.map(({ metadata }) => metadata.uid);
      const taken = (await trial.objects()).find(
        (object) => uids.includes(object.metadata.uid) && ownerUidOf(object) === cr.metadata.uid,
      );
      if (taken) throw new Error(`it takes ${describeRef(taken)}, which isn't handed over to it`);
      trial.steps.push('hand them over to it');
      const owner = { kind: kind.type.kind, name: trial.name, recordedKey: keyOf(cr) };
      await mark(({ metadata }) => ({ annotations: { [ADOPT_BY_ANNOTATION]: offerTo(owner, metadata) } }));
      await rolledOut(trial);
      await mark(() => ({ annotations: { [ADOPT_BY_ANNOTATION]: null } }));
    }
    await becomes(trial, expected);
    const uids = (await trial.objects()).map(({ metadata }) => metadata.uid);
    const replaced = left.find(({ metadata }) => !uids.includes(metadata.uid));
    if (replaced) throw new Error(`it replaces ${describeRef(replaced)} instead of taking it`);
    count += left.length;
  });
  return { tried: `${count} objects without an owner: its own, kept ones and those of others`, failures };
}

/** Changes a field of each object as another manager. Of what isn't rendered any more, it would stay with that one. */
async function driftEach(trial: Trial): Promise<AnyObject[]> {
  const rendered = (await renderingOf(trial, await trial.get()).catch(ifRefused)) ?? [];
  const driftOne = async (object: AnyObject): Promise<boolean> => {
    const next = rendered.find((one) => objectId(one) === objectId(object));
    for (const path of driftableFields(object).filter((one) => fieldAt(next, one) !== undefined))
      for (const value of othersThan(fieldAt(next, path)))
        if (await put(trial, object, path, value)) return true;
    return false;
  };
  const drifted = [];
  // Fields of others' objects may be theirs again.
  const own = (await trial.objects()).filter((object) => !trial.isShared(object));
  for (const object of own) if (await driftOne(object)) drifted.push(object);
  return drifted;
}
