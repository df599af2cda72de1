import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isRecordAnnotation } from '../contract/names.js';
import { describeRef, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { describePath, driftOf, fieldAt } from '../engine/steps/managed-fields.js';
import { isContainer } from '../values/json.js';
import { differences } from './compare.js';
import { ownedFields } from './drift.js';
import { NO_OBJECTS, notApplicable } from './report.js';
import type { Outcome } from './report.js';
import { isDecorator } from './tested-kind.js';
import type { LiveResource } from './tested-kind.js';
import {
  allowPods,
  attempt,
  conditionOf,
  CONVERGENCE_MILLISECONDS,
  denyPods,
  ended,
  isGone,
} from './trial.js';
import { isReady, rolledOut, soon, trialOfEach } from './trial.js';
import type { ConformanceRun, Trial } from './trial.js';
import type { AcceptedApply } from './wire.js';
import { managedFieldsOf, ownerUidOf } from '../values/projections.js';

const WATCHED_MILLISECONDS = 2_000;
/** Number of times that work of the cluster itself may lead to another write or request. */
const ROUNDS = 4;
const CONSISTENT_MILLISECONDS = 10_000;

/** Checks that a settled custom resource costs no request, and a restart no write. */
export async function settling(run: ConformanceRun): Promise<Outcome> {
  const failures = await trialOfEach(run, run.samples, async (trial, sample) => {
    await trial.startWith(sample);
    trial.steps.push('wait until it is settled');
    await requireSilence(trial);
    const last = new Map<string, AcceptedApply>();
    for (let round = 1; ; round++) {
      const before = await trial.objects();
      for (const [id, apply] of trial.operator.wire.applies) last.set(id, apply);
      const { writes, applies } = (await trial.restart()).wire;
      await rolledOut(trial);
      if (writes.length === 0) return;
      // The status follows what the cluster has done to the objects meanwhile, once.
      const isOfStatus = writes.every((write) => /\/status$| events(\/|$)/.test(write));
      if (isOfStatus && round < ROUNDS && versionsOf(before) !== versionsOf(await trial.objects())) continue;
      const why = causes(applies, last, before);
      throw new Error(`settled, and after a restart it writes ${writes.slice(0, 5).join(', ')}${why}`);
    }
  });
  return { tried: `${run.samples.length} samples and restarts`, failures };
}

function versionsOf(objects: readonly AnyObject[]): string {
  return objects.map(({ metadata: { uid, resourceVersion } }) => `${uid} ${resourceVersion}`).join();
}

async function requireSilence(trial: Trial): Promise<void> {
  const { wire } = trial.operator;
  for (let round = 1; ; round++) {
    const [before, last, objects] = [wire.requests, new Map(wire.applies), await trial.objects()];
    await delay(WATCHED_MILLISECONDS);
    if (wire.requests === before) return;
    if (round < ROUNDS) continue;
    const again = new Map([...wire.applies].filter(([id, apply]) => apply !== last.get(id)));
    throw new Error(
      `settled, it still asks ${wire.requests - before} times in 2 s; its last writes: ${wire.writes.slice(-3).join(', ') || 'none'}${causes(again, last, objects)}`,
    );
  }
}

type Applies = ReadonlyMap<string, AcceptedApply>;

/**
 * Explains why settled objects were applied again: at most three fields, each with both values and the cause.
 * @param last the applies before these
 * @param before the objects while they were settled
 */
export function causes(applies: Applies, last: Applies, before: readonly AnyObject[]): string {
  const lines = [...applies].flatMap(([id, apply]) => {
    const was = before.find((object) => objectId(object) === objectId(apply.kept)) ?? apply.kept;
    const found = causesOf(apply, last.get(id)?.sent ?? apply.sent, was);
    return found.map((cause) => `; ${describeRef(apply.kept)}: ${cause}`);
  });
  return lines.slice(0, 3).join('');
}

function causesOf({ manager, sent, kept }: AcceptedApply, earlier: AnyObject, was: AnyObject): string[] {
  const wanted = contentOf(sent);
  const rendering = differences(contentOf(earlier), wanted);
  if (rendering.length > 0)
    return rendering.map(({ text }) => `${text}: the render differs from the last one`);
  const { managers } = driftOf(managedFieldsOf(was), kept, manager);
  const changed = differences(within(kept, wanted), within(was, wanted));
  const lines = [
    ...changed.map(({ text }) => `${text}: changed by ${managers.join(' and ') || 'another writer'}`),
    ...differences(wanted, within(kept, wanted)).map(({ text, expected, found }) => {
      const isEmpty = ['null', '""', '[]', '{}'].includes(JSON.stringify(expected));
      const what = found === undefined ? 'dropped' : 'normalised';
      return `${text}: ${what} by the server${isEmpty ? ' because it is empty' : ''}`;
    }),
  ];
  return lines.length > 0 ? lines : ['no field differs, but what managedFields record'];
}

/** Returns what an apply asks for, without the object's identity and the hash of all that. */
function contentOf({ metadata, apiVersion: _, kind: __, ...content }: AnyObject): unknown {
  const { labels, annotations } = metadata;
  const withoutHash = (key: string, value: unknown): unknown => (isRecordAnnotation(key) ? undefined : value);
  return JSON.parse(JSON.stringify({ ...content, metadata: { labels, annotations } }, withoutHash));
}

/** Returns as much of a live value as an apply has asked for. */
function within(live: unknown, wanted: unknown): unknown {
  if (!isContainer(live) || !isContainer(wanted)) return live;
  const names = Object.keys(wanted).filter((name) => Object.hasOwn(live, name));
  if (Array.isArray(wanted)) return names.map((name) => within(live[name], wanted[name]));
  return Object.fromEntries(names.map((name) => [name, within(live[name], wanted[name])]));
}

/** Checks that every object has the custom resource as its controller or is shared, and that nothing outlives it. */
export async function ownership(run: ConformanceRun): Promise<Outcome> {
  if (run.types.length === 0) return NO_OBJECTS;
  let shared = 0;
  const failures = await trialOfEach(run, run.samples, async (trial, sample) => {
    await trial.start();
    await trial.create(sample);
    const { metadata } = await trial.settled();
    const objects = await trial.objects();
    const own = objects.filter((object) => !trial.isShared(object));
    const foreign = own.find((object) => ownerUidOf(object) !== metadata.uid);
    if (foreign)
      throw new Error(
        `${foreign.kind} ${foreign.metadata.name} isn't owned by the custom resource: give its apply an owner`,
      );
    shared += objects.length - own.length;
    await trial.delete();
    await isGone(trial);
  });
  const those = shared > 0 ? `, ${shared} shared objects, which have to be as before in the end` : '';
  return { tried: `${run.samples.length} samples${those}`, failures };
}

/** Checks that two custom resources in a namespace have no object in common, and that neither takes anything from the other. */
export async function collisions(run: ConformanceRun): Promise<Outcome> {
  const failures = await attempt(run, async (trial) => {
    const [sample] = run.samples;
    await trial.start();
    await trial.create(sample, 'one');
    await ended(trial, 'one');
    const ofOne = await trial.objects();
    const before = await trial.conditions('one');
    await trial.create(sample, 'two');
    await ended(trial, 'two');
    const stalled = conditionOf(await trial.get('two'), 'Stalled');
    if (stalled?.reason === 'OwnershipConflict') throw new Error(stalled.message);
    requireApart(trial, ofOne, await trial.objects());
    await soon(trial, CONVERGENCE_MILLISECONDS, async () => {
      const [changed] = differences(before, await trial.conditions('one'));
      if (changed) throw new Error(`with a second one of the same spec, of the first ${changed.text}`);
    });
  });
  return { tried: 'two custom resources in one namespace', failures };
}

function requireApart(trial: Trial, ofOne: readonly AnyObject[], ofBoth: readonly AnyObject[]): void {
  const isOwn = (object: AnyObject): boolean => !trial.isShared(object);
  const [own, both] = [ofOne.filter(isOwn), ofBoth.filter(isOwn)];
  if (both.length !== 2 * own.length) {
    const shared = own.map((object) => describeRef(object)).join(', ');
    throw new Error(
      `one makes ${own.length} objects (${shared}), both together ${both.length}: put the name of the custom resource into theirs`,
    );
  }
  for (const before of ofOne.filter((object) => trial.isShared(object))) {
    const after = ofBoth.find((object) => objectId(object) === objectId(before));
    const lost = ownedFields(before)
      .filter(([first]) => first !== 'f:metadata')
      .find((path) => !isDeepStrictEqual(fieldAt(before, path), fieldAt(after, path)));
    if (lost)
      throw new Error(
        `${before.kind} ${before.metadata.name}: a second one of the same spec takes ${describePath(lost)} from the first`,
      );
  }
}

/** Checks that the status is of the present generation, follows kstatus, and is Ready only of what is ready. */
export async function status(run: ConformanceRun): Promise<Outcome> {
  if (isDecorator(run.kind)) return notApplicable('it has no status');
  let held = 0;
  const undisturbed = await trialOfEach(run, run.samples, async (trial, sample) => {
    await trial.startWith(sample);
    await requireTrue(trial);
    if (!run.waits(sample.spec)) await soon(trial, CONSISTENT_MILLISECONDS, () => requireReady(trial));
  });
  const heldBack = await trialOfEach(run, run.samples, async (trial, sample) => {
    await denyPods(trial);
    await trial.start();
    await trial.create(sample);
    // Counted also where the status is wrong.
    let isHeld = false;
    await requireTrue(trial, () => (isHeld = true)).finally(() => {
      if (isHeld) held++;
    });
    await allowPods(trial);
    await requireTrue(trial);
  });
  const waiting = run.samples.filter(({ spec }) => run.waits(spec)).length;
  const without = held === 0 ? ', none of which makes pods' : '';
  const left = waiting > 0 ? `; ${waiting} of which needn't become ready` : '';
  return {
    tried: `${run.samples.length} samples, with pods and held back from them${without}${left}`,
    failures: [...undisturbed, ...heldBack],
  };
}

/** Parts that a trial lacks, by the reason of a stall. */
const LACKS: Readonly<Record<string, string>> = {
  ReferenceNotFound: 'what it refers to',
  ReferenceNotPermitted: 'a ReferenceGrant',
};

/** @throws Error where nothing is done any more, and a custom resource isn't ready, although its objects are */
export async function requireReady(trial: Trial): Promise<void> {
  const cr = await trial.settled();
  const [ready, stalled] = ['Ready', 'Stalled'].map((type) => conditionOf(cr, type));
  const described = (condition = ready): string =>
    condition ? ` (${condition.reason}: ${condition.message})` : '';
  if (stalled?.status === 'True') {
    const lack = LACKS[stalled.reason];
    const hint = lack === undefined ? '' : `; return ${lack} from \`surroundings\``;
    throw new Error(`Stalled is True${described(stalled)}${hint}`);
  }
  if (ready?.status === 'True' || !(await trial.objects()).every(isReady)) return;
  throw new Error(
    `Ready is ${ready?.status ?? 'absent'}${described()}, while nothing is done any more and all of its objects are ready`,
  );
}

/** Waits until the status is consistent. @param onUnready called where some object isn't ready */
async function requireTrue(trial: Trial, onUnready?: () => void): Promise<void> {
  await soon(trial, CONSISTENT_MILLISECONDS, async () => {
    const cr = await trial.settled();
    const contradiction = contradictionIn(cr);
    if (contradiction !== undefined) throw new Error(contradiction);
    const unready = (await trial.objects()).find((object) => !isReady(object));
    if (unready) onUnready?.();
    const ready = conditionOf(cr, 'Ready');
    if (unready && ready?.status === 'True')
      throw new Error(
        `Ready is True (${ready.reason}: ${ready.message}), while ${describeRef(unready)} isn't ready`,
      );
  });
}

function contradictionIn(cr: LiveResource): string | undefined {
  const ready = conditionOf(cr, 'Ready');
  if (!ready) return 'there is no condition Ready';
  if (ready.observedGeneration !== undefined && ready.observedGeneration !== cr.metadata.generation)
    return `Ready is of generation ${ready.observedGeneration}, not of ${cr.metadata.generation ?? 0}`;
  const active = ['Ready', 'Reconciling', 'Stalled'].filter(
    (type) => conditionOf(cr, type)?.status === 'True',
  );
  return active.length > 1 ? `${active.join(' and ')} are both True` : undefined;
}
