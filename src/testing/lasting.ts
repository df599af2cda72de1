import { isDeepStrictEqual } from 'node:util';
import { isChosen } from '../author/owned-children.js';
import type { OwningKind } from '../author/owned-children.js';
import { hasFinalizers } from '../contract/kind.js';
import { finalizerOf, statusFieldManager } from '../contract/names.js';
import { controllerOf, describeRef, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { describePath, fieldAt } from '../engine/steps/managed-fields.js';
import type { FieldPath } from '../engine/steps/managed-fields.js';
import { showValue } from '../values/path.js';
import { APPLY } from '../client/api.js';
import { rememberedOf } from '../values/projections.js';
import { collection } from './cluster.js';
import { differences, ownEntries } from './compare.js';
import { carryOut, DISTURBANCES, DISTURBED, requireMade } from './disturbances.js';
import type { Act, Disturbance, Step } from './disturbances.js';
import { driftableFields, othersThan, put, TOGETHER } from './drift.js';
import { notApplicable } from './report.js';
import type { Outcome } from './report.js';
import { elsewhereOf, isContributed, isDecorator, ownRendering } from './tested-kind.js';
import {
  attempt,
  becomes,
  COLLECTED_MILLISECONDS,
  CONVERGENCE_MILLISECONDS,
  ended,
  isGone,
} from './trial.js';
import { mergeStatus, rolledOut, soon, Trial, trialOfEach, undisturbed } from './trial.js';
import type { ConformanceRun } from './trial.js';

/** Annotation of another writer. */
const OTHERS = 'conformance.example.com/others';

/** Wait after a change that an operator may not have seen. */
const AT_ONCE: Act = (trial) => trial.quiet();

/**
 * Checks that a construct which reads its own status is rendered as that says, and nothing is made twice, where the status is put
 * back, removed, or written by others.
 */
export async function memory(run: ConformanceRun): Promise<Outcome> {
  if (!ownRendering(run).remembers) return notApplicable('it reads nothing of its own status');
  const [from, to = from] = run.samples;
  const manager = statusFieldManager(run.kind.type.kind);
  const failures = await trialOfEach(run, DISTURBANCES, async (trial, disturbance) => {
    await trial.start();
    await trial.create(from);
    const { status: older } = await trial.settled();
    await rolledOut(trial);
    if (to !== from) await trial.edit(to);
    for (const [text, act] of [
      ['put an older status back, as from a backup', () => applyStatus(trial, manager, older)],
      ['remove its status', () => mergeStatus(run.cluster, trial.place(), null)],
      ['another writer changes what its status says', () => changeStatus(trial, manager)],
    ] as const) {
      await rolledOut(trial);
      const requireSame = await sameFromNowOn(trial, run.keepsEarlier(to.spec));
      const expect: Act = () => soon(trial, CONVERGENCE_MILLISECONDS, requireSame);
      trial.steps.push(text);
      await carryOut(trial, { do: act, rest: AT_ONCE, expect }, disturbance);
    }
  });
  return { tried: `a status that is older, removed, and written by others, ${DISTURBED}`, failures };
}

/** Returns what throws where an object is not as its status says, or was made or deleted meanwhile. @param isFree whether others may be */
async function sameFromNowOn(trial: Trial, isFree: boolean): Promise<() => Promise<void>> {
  const [before, conditions] = [await trial.objects(), await trial.conditions()];
  const { length } = trial.audit.writes;
  const known = before.map((one) => `${trial.placeOf(one).type.plural}/${one.metadata.name}`);
  const plurals = trial.run.types.map(({ plural }) => plural);
  return async () => {
    await requireMade(trial);
    const now = await trial.objects();
    const twice = before.find((one) =>
      now.some((other) => objectId(other) === objectId(one) && other.metadata.uid !== one.metadata.uid),
    );
    if (twice) throw new Error(`${describeRef(twice)} is made twice`);
    if (isFree) return;
    const [changed] = differences(conditions, await trial.conditions());
    if (changed) throw new Error(changed.text);
    const write = trial.audit.writes.slice(length).find((one) => {
      const [method, path = ''] = one.split(' ');
      return plurals.includes(path.split('/')[0] ?? '') && (method === 'DELETE' || !known.includes(path));
    });
    if (write !== undefined) throw new Error(`of the same spec, it sends ${write}`);
  };
}

/** Writes a status as the operator did. */
async function applyStatus(trial: Trial, fieldManager: string, status: unknown): Promise<void> {
  const { type, namespace, name } = trial.place();
  const { apiVersion, kind } = type;
  const answer = await trial.run.cluster.send('PATCH', `${collection(type, namespace)}/${name}/status`, {
    ...{ body: { apiVersion, kind, metadata: { name }, status }, contentType: APPLY },
    query: { fieldManager, force: 'true' },
  });
  if (answer.status !== 200) throw new Error(`its status isn't taken: ${String(answer.body.message)}`);
}

/** Changes each field that the kind's own status says, as another writer. */
async function changeStatus(trial: Trial, manager: string): Promise<void> {
  const remembered = rememberedOf({ ...(await trial.get()) }, manager);
  for (const [field, value] of Object.entries(remembered))
    for (const other of othersThan(value)) {
      const { status } = await mergeStatus(trial.run.cluster, trial.place(), { [field]: other ?? null });
      if (status < 300) break;
    }
}

/**
 * Checks that nothing of a deleted custom resource stays but what is to be kept, and a neighbour's stays as it is: deleted at
 * every point of its creation, in both ways and with kills; and while no operator ran, as far as what is elsewhere goes.
 */
export async function deletion(run: ConformanceRun): Promise<Outcome> {
  if (!('each' in run.kind.rendering)) return TOGETHER;
  const isElsewhere = elsewhereOf(run.kind).length > 0;
  const { each } = run.kind.rendering;
  if (!isElsewhere && !hasFinalizers(each) && !each.children.some(({ onDelete }) => onDelete === 'keep'))
    return notApplicable('its objects go by their owner references alone');
  await using counted = await Trial.begin(run);
  const begun = await besideNeighbour(counted);
  const { writes } = counted.operator.wire;
  const made = writes.length - begun;
  await counted.delete('Foreground');
  await isGone(counted);
  await counted.quiet();
  const kills = Math.max(1, writes.length - begun - made);
  // With the last of them its creation isn't disturbed.
  const points = Array.from({ length: made + 1 + kills }, (_, point) => point);
  const failures = await trialOfEach(run, points, (trial, point) => endAt(trial, point, 1 + (point % kills)));
  if (isElsewhere) failures.push(...(await attempt(run, loseOwner)));
  const lost = isElsewhere ? ', and while no operator ran' : '';
  return { tried: `${made + 1} points of a creation, and ${kills} kills of a deletion${lost}`, failures };
}

/** Creates a custom resource beside a settled one. @param made writes after which its operator is killed, if it is @returns writes before */
async function besideNeighbour(trial: Trial, made?: number): Promise<number> {
  const [sample] = trial.run.samples;
  const name = `${trial.name}-other`;
  const { wire } = await trial.start();
  await trial.create(sample, name);
  await ended(trial, name);
  await trial.stand();
  const before = wire.writes.length;
  if (made === 0) wire.kill();
  else if (made !== undefined) wire.killAt({ write: made, when: 'after' });
  await trial.create(sample);
  await rolledOut(trial);
  return before;
}

/** Deletes a custom resource whose operator is killed after a number of writes, the next one after another number. */
async function endAt(trial: Trial, made: number, killed: number): Promise<void> {
  await besideNeighbour(trial, made);
  const { diedAt } = trial.operator.wire;
  if (diedAt !== undefined) trial.steps.push(`the operator is killed at ${diedAt}`);
  const objects = await trial.objects();
  const own = objects.find((object) => !trial.stays(object));
  const { metadata, kind } = await trial.get();
  const finalizer = finalizerOf(kind);
  if (own && hasFinalizers(ownRendering(trial.run)) && !metadata.finalizers?.includes(finalizer))
    throw new Error(`${describeRef(own)} is made before the finalizer ${finalizer}`);
  await trial.delete(made % 2 === 0 ? 'Foreground' : 'Background');
  if (diedAt !== undefined) await trial.restart();
  trial.operator.wire.killAt({ write: killed, when: 'after' });
  await isGone(trial, true);
  if (!trial.isAlive) await trial.restart();
  await isGone(trial);
  const left = (await trial.objects()).map(({ metadata: { uid } }) => uid);
  const lost = objects.find((one) => trial.stays(one) && !left.includes(one.metadata.uid));
  if (lost) throw new Error(`${describeRef(lost)} goes with it`);
}

/** Has a custom resource without finalizers deleted while no operator runs, and what it owns left. */
async function loseOwner(trial: Trial): Promise<void> {
  await besideNeighbour(trial);
  const owned = (await trial.objects()).filter(controllerOf).map(({ metadata }) => metadata.uid);
  trial.operator.kill();
  trial.steps.push('kill the operator, and take the finalizers off');
  await trial.run.cluster.merge(trial.place(), { metadata: { finalizers: null } });
  await trial.delete('Orphan');
  await soon(trial, COLLECTED_MILLISECONDS, () => requireAway(trial));
  await trial.restart();
  await soon(trial, COLLECTED_MILLISECONDS, async () => {
    const left = (await trial.objects()).find(
      (one) => !trial.stays(one) && !owned.includes(one.metadata.uid),
    );
    if (left) throw new Error(`${describeRef(left)} stays where its owner was deleted while no operator ran`);
  });
}

/** Checks that an object of others loses its children when it isn't chosen any more, and has them when it is chosen again. */
export async function choice(run: ConformanceRun): Promise<Outcome> {
  if (!isDecorator(run.kind)) return notApplicable('it has no objects of others to choose from');
  const [sample] = run.samples;
  const { labels = {}, annotations = {} } = sample;
  if (isChosen(ownRendering(run) as Pick<OwningKind, 'chosen'>, { metadata: { name: '' } }))
    return notApplicable('it chooses what has neither labels nor annotations');
  const none = (entries: object): object =>
    Object.fromEntries(Object.keys(entries).map((name) => [name, null]));
  const requireNone = async (trial: Trial): Promise<void> => {
    const [left] = await trial.objects();
    if (left) throw new Error(`${describeRef(left)} stays when its object isn't chosen any more`);
  };
  const failures = await trialOfEach(run, DISTURBANCES, async (trial, disturbance) => {
    const expected = await undisturbed(run, sample);
    const mark = async (metadata: object, what: string): Promise<void> => {
      trial.steps.push(what);
      await run.cluster.merge(trial.place(), { metadata });
    };
    await trial.startWith(sample);
    const away: Step = {
      do: () =>
        mark({ labels: none(labels), annotations: none(annotations) }, 'take its labels and annotations off'),
      ...{ rest: AT_ONCE, expect: () => soon(trial, CONVERGENCE_MILLISECONDS, () => requireNone(trial)) },
    };
    const back: Step = {
      do: () => mark({ labels, annotations }, 'give them back'),
      expect: () => becomes(trial, expected),
    };
    for (const step of [away, back]) await carryOut(trial, step, disturbance);
  });
  return { tried: `chosen no more, and again, ${DISTURBED}`, failures };
}

async function requireAway(trial: Trial, name?: string): Promise<void> {
  if (await trial.run.cluster.find(trial.place(name))) throw new Error('it is still there');
}

/** Field of an object, and the value that it is to have. */
interface Held {
  readonly object: AnyObject;
  readonly path: FieldPath;
  value: unknown;
}

/** Checks that fields stay as they were created, and that those of objects of others are held while they are wanted, and then given back. */
export async function fields(run: ConformanceRun): Promise<Outcome> {
  const { children = [], contributes = [] } = ownRendering(run);
  const isFixed = children.some(({ createOnly }) => createOnly !== undefined);
  const acts = [...(isFixed ? [stayCreated] : []), ...(contributes.length > 0 ? [giveBack] : [])];
  if (acts.length === 0)
    return notApplicable('no field stays as it was created, or is one of an object of others');
  const items = acts.flatMap((act) => DISTURBANCES.map((disturbance) => ({ act, disturbance })));
  let held = 0;
  const failures = await trialOfEach(run, items, async (trial, { act, disturbance }) => {
    held += await act(trial, disturbance);
  });
  return { tried: `${held} fields over edits, changes of others and restarts, ${DISTURBED}`, failures };
}

/** Returns the fields that the operator owns. @param tops paths that they are at or below, by their object */
function heldFields(objects: readonly AnyObject[], tops: (object: AnyObject) => readonly string[]): Held[] {
  return objects.flatMap((object) => {
    const paths = driftableFields(object).filter((path) => isBelow(path, tops(object)));
    return paths.map((path) => ({ object, path, value: fieldAt(object, path) }));
  });
}

function isBelow(path: FieldPath, tops: readonly string[]): boolean {
  const text = describePath(path);
  return tops.some((top) => text.startsWith(top) && ['', '.', '['].includes(text.charAt(top.length)));
}

/** @throws where a field of an object that is still there has another value */
function requireValues(held: readonly Held[], now: readonly AnyObject[], why: string): void {
  for (const { object, path, value } of held) {
    const live = now.find(({ metadata }) => metadata.uid === object.metadata.uid);
    const found = fieldAt(live, path);
    if (live && !isDeepStrictEqual(found, value))
      throw new Error(
        `${describeRef(object)}: ${describePath(path)} is ${showValue(found)} instead of ${showValue(value)}, ${why}`,
      );
  }
}

/** Changes a field to the first other value that is taken, as another writer. @returns the value */
async function change(trial: Trial, { object, path }: Held): Promise<unknown> {
  for (const value of othersThan(fieldAt(object, path)))
    if (value !== undefined && (await put(trial, object, path, value))) return value;
  return undefined;
}

/** Edits a custom resource, and changes a field of each object that was created with it. @returns the number of such fields */
async function stayCreated(trial: Trial, disturbance: Disturbance): Promise<number> {
  const [from, to = from] = trial.run.samples;
  const { children = [] } = ownRendering(trial.run);
  await trial.startWith(from);
  const created = heldFields(await trial.objects(), (object) => {
    return children.find((one) => groupKind(one) === groupKind(object))?.createOnly ?? [];
  });
  const driftEach: Act = async () => {
    for (const { metadata } of await trial.objects())
      for (const one of created.filter(({ object }) => object.metadata.uid === metadata.uid))
        if ((await change(trial, one)) !== undefined) break;
  };
  const requireCreated = async (): Promise<void> => {
    requireValues(created, await trial.objects(), 'with which it was created');
    await requireMade(trial);
  };
  const expect: Act = () => soon(trial, CONVERGENCE_MILLISECONDS, requireCreated);
  for (const act of [() => trial.edit(to), driftEach])
    await carryOut(trial, { do: act, rest: AT_ONCE, expect }, disturbance);
  await trial.restart();
  await expect(trial);
  return created.length;
}

/** Has two custom resources want fields of the same objects of others, which are changed meanwhile. @returns the number of fields */
async function giveBack(trial: Trial, disturbance: Disturbance): Promise<number> {
  const { run } = trial;
  const { contributes = [] } = ownRendering(run);
  const live = async (): Promise<AnyObject[]> =>
    (await trial.list(run.types)).filter((object) => isContributed(run, object));
  const originals = await live();
  await trial.startWith(run.samples[0]);
  const held = heldFields(await live(), () => ['']);
  const other = `${trial.name}-other`;
  await trial.create(run.samples[0], other);
  await rolledOut(trial, other);
  const given = held.map((one): Held => {
    const before = originals.find(({ metadata }) => metadata.uid === one.object.metadata.uid);
    return { ...one, value: fieldAt(before, one.path) };
  });
  const byOthers: Act = async () => {
    trial.steps.push('others annotate these objects');
    for (const object of originals)
      await run.cluster.merge(trial.placeOf(object), { metadata: { annotations: { [OTHERS]: 'there' } } });
    for (const one of given) {
      const type = contributes.find((of) => groupKind(of) === groupKind(one.object));
      if (isBelow(one.path, type?.takes ?? [])) one.value = (await change(trial, one)) ?? one.value;
    }
  };
  const steps = [byOthers, () => trial.delete(), () => trial.delete('Background', other)];
  for (const [index, act] of steps.entries()) {
    const isOver = index === 2;
    const requireHeld = async (): Promise<void> => {
      if (index > 0) await requireAway(trial, isOver ? other : trial.name);
      const now = await live();
      requireValues(isOver ? given : held, now, isOver ? 'once it is given back' : 'while it is wanted');
      const stripped = now.find(({ metadata }) => metadata.annotations?.[OTHERS] === undefined);
      if (stripped) throw new Error(`${describeRef(stripped)} loses an annotation of others`);
      const left = now.find((object) => isOver && ownEntries(object).length > 0);
      if (left) throw new Error(`of its fields in ${describeRef(left)} some stay`);
    };
    const expect: Act = () => soon(trial, CONVERGENCE_MILLISECONDS, requireHeld);
    await carryOut(trial, { do: act, rest: AT_ONCE, expect }, disturbance);
  }
  return held.length;
}
