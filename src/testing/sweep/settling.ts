import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isHashAnnotation } from '../../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { driftOf } from '../../engine/managed-fields.js';
import { managedFieldsOf } from '../../engine/managed-fields.js';
import { eventually } from '../eventually.js';
import type { AcceptedApply } from '../wire.js';
import { rolledOut, isGone, CONVERGENCE_MILLISECONDS } from './convergence.js';
import { differing, isMap, differences, ownEntries, describeSteps, leavesOf, valueAt } from './normal.js';
import { shortest, trials, attempt } from './outcome.js';
import type { Outcome } from './outcome.js';
import { conditionOf } from './stand.js';
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
  const last = new Map<string, AcceptedApply>();
  for (let round = 0; round < ROUNDS; round++) {
    const before = await trial.objects();
    for (const [id, apply] of trial.operator.wire.applies) last.set(id, apply);
    const { writes, applies } = (await trial.restart()).wire;
    await rolledOut(trial);
    if (writes.length === 0) return;
    // What the cluster has done to the objects meanwhile is told, once.
    const isToldOnly =
      writes.every((write) => TOLD.test(write)) && versionsOf(before) !== versionsOf(await trial.objects());
    if (isToldOnly && round < ROUNDS - 1) continue;
    const why = causes(applies, last, before);
    throw new Error(`settled, and after a restart it writes ${writes.slice(0, 5).join(', ')}${why}`);
  }
}

function versionsOf(objects: readonly AnyObject[]): string {
  return objects.map(({ metadata: { uid, resourceVersion } }) => `${uid} ${resourceVersion}`).join();
}

type Applies = ReadonlyMap<string, AcceptedApply>;

/**
 * Says why settled objects were applied again: at most three fields, each with both values and a cause.
 * @param last the applies before these
 * @param before the objects while they were settled
 */
export function causes(applies: Applies, last: Applies, before: readonly AnyObject[]): string {
  const lines = [...applies].flatMap(([id, apply]) => {
    const was = before.find((object) => objectId(object) === objectId(apply.kept)) ?? apply.kept;
    const found = causesOf(apply, last.get(id)?.sent ?? apply.sent, was);
    return found.map((cause) => `; ${describeRef(refOf(apply.kept))}: ${cause}`);
  });
  return lines.slice(0, 3).join('');
}

function causesOf({ manager, sent, kept }: AcceptedApply, earlier: AnyObject, was: AnyObject): string[] {
  const wanted = contentOf(sent);
  const rendered = differing(contentOf(earlier), wanted);
  if (rendered.length > 0) return rendered.map((one) => `${one.text}: the render differs from the last one`);
  const lost = differing(wanted, within(kept, wanted));
  const changed = differing(within(kept, wanted), within(was, wanted));
  const { managers } = driftOf(managedFieldsOf(was), kept, manager);
  const lines = [
    ...changed.map((one) => `${one.text}: changed by ${managers.join(' and ') || 'another writer'}`),
    ...lost.map((one) => {
      const isEmpty = ['null', '""', '[]', '{}'].includes(JSON.stringify(one.expected));
      const fate = one.found === undefined ? 'dropped' : 'normalised';
      return `${one.text}: ${fate} by the server${isEmpty ? ' because it is empty' : ''}`;
    }),
  ];
  return lines.length > 0 ? lines : ['no field differs, but what managedFields record'];
}

/** What an apply asks for, without what names the object, and without the hash of all that. */
function contentOf({ metadata, apiVersion: _, kind: __, ...content }: AnyObject): unknown {
  const { labels, annotations } = metadata;
  const withoutHash = (key: string, value: unknown): unknown => (isHashAnnotation(key) ? undefined : value);
  return JSON.parse(JSON.stringify({ ...content, metadata: { labels, annotations } }, withoutHash));
}

/** As much of a live value as was asked for. */
function within(live: unknown, wanted: unknown): unknown {
  if (!isMap(live) || !isMap(wanted)) return live;
  const names = Object.keys(wanted).filter((name) => Object.hasOwn(live, name));
  if (Array.isArray(wanted)) return names.map((name) => within(live[name], wanted[name]));
  return Object.fromEntries(names.map((name) => [name, within(live[name], wanted[name])]));
}

async function requireSilence(trial: Trial): Promise<void> {
  const { wire } = trial.operator;
  for (let round = 1; ; round++) {
    const [before, last, objects] = [wire.requests, new Map(wire.applies), await trial.objects()];
    await delay(WATCHED_MILLISECONDS);
    // What the cluster still had to do with the objects is told once, and then no more.
    if (wire.requests === before) return;
    if (round < ROUNDS) continue;
    const again = new Map([...wire.applies].filter(([id, apply]) => apply !== last.get(id)));
    throw new Error(
      `settled, it still asks ${wire.requests - before} times in 2 s; its last writes: ${wire.writes.slice(-3).join(', ') || 'none'}${causes(again, last, objects)}`,
    );
  }
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
