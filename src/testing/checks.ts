import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import { isHashAnnotation } from '../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../contract/object.js';
import { isContainer } from '../values/json.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { describePath, driftOf, fieldAt, managedFieldsOf } from '../engine/steps/managed-fields.js';
import type { FieldPath, FieldsV1 } from '../engine/steps/managed-fields.js';
import { collection } from './cluster.js';
import { eventually } from './eventually.js';
import { differences, ownEntries } from './compare.js';
import type { Normal } from './compare.js';
import type { Failure, Outcome } from './report.js';
import type { LiveResource, Sample } from './tested-kind.js';
import * as trials from './trial.js';
import type { ConformanceRun, Trial } from './trial.js';
import type { AcceptedApply, EventFault, KillPoint, RecordedLists, Wire } from './wire.js';

const { attempt, becomes, conditionOf, isGone, rolledOut, trialOfEach, undisturbed } = trials;

const NO_OBJECTS: Outcome = { tried: '', failures: [], notApplicable: 'it makes no objects' };
const WATCHED_MILLISECONDS = 2_000;
/** Times that what the cluster itself still does may lead to another write or request. */
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
 * Says why settled objects were applied again: at most three fields, each with both values and the cause.
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
  const withoutHash = (key: string, value: unknown): unknown => (isHashAnnotation(key) ? undefined : value);
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
    const foreign = own.find((object) => controllerOf(object)?.uid !== metadata.uid);
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
    await rolledOut(trial, 'one');
    const ofOne = await trial.objects();
    const before = await trial.conditions('one');
    await trial.create(sample, 'two');
    await rolledOut(trial, 'two');
    const stalled = conditionOf(await trial.get('two'), 'Stalled');
    if (stalled?.reason === 'OwnershipConflict') throw new Error(stalled.message);
    requireApart(trial, ofOne, await trial.objects());
    await soon(trial, trials.CONVERGENCE_MILLISECONDS, async () => {
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
    const shared = own.map((object) => describeRef(refOf(object))).join(', ');
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

const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });

/** Checks that the status is of the present generation, follows kstatus, and is Ready only of what is ready. */
export async function status(run: ConformanceRun): Promise<Outcome> {
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

/** Lets nothing get ready that needs new pods. */
export async function denyPods({ run, namespace, steps }: Trial): Promise<void> {
  steps.push('allow no pods in the namespace, by a ResourceQuota');
  const { apiVersion, kind } = quotas;
  const metadata = { name: 'no-pods', namespace };
  await run.cluster.create(quotas, { apiVersion, kind, metadata, spec: { hard: { pods: '0' } } });
}

export async function allowPods({ run, namespace, steps }: Trial): Promise<void> {
  steps.push('allow pods again');
  await run.cluster.delete({ type: quotas, namespace, name: 'no-pods' });
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
  if (ready?.status === 'True' || !(await trial.objects()).every(trials.isReady)) return;
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
    const unready = (await trial.objects()).find((object) => !trials.isReady(object));
    if (unready) onUnready?.();
    const ready = conditionOf(cr, 'Ready');
    if (unready && ready?.status === 'True')
      throw new Error(
        `Ready is True (${ready.reason}: ${ready.message}), while ${describeRef(refOf(unready))} isn't ready`,
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

export function soon<T>(trial: Trial, milliseconds: number, probe: () => Promise<T>): Promise<T> {
  const deadlineMilliseconds = trial.run.pace.scaled(milliseconds);
  return eventually(probe, { deadlineMilliseconds, intervalMilliseconds: 200 });
}

/** The engine pauses after more than five corrections of one object; a new operator doesn't know of them. */
const CORRECTIONS_BETWEEN_STARTS = 4;
const CORRECTED_MILLISECONDS = 8_000;
const CREATED_MILLISECONDS = 10_000;
const WRITE_ATTEMPTS = 50;

type DriftOutcome = 'changed' | 'left' | 'refused';

/** Checks that every owned field is corrected when another manager changes it, and every deleted object created again. */
export async function drift(run: ConformanceRun): Promise<Outcome> {
  if (run.types.length === 0) return NO_OBJECTS;
  const counts = { changed: 0, left: 0, refused: 0, removed: 0 };
  const failures: Failure[] = [];
  await trials.several(run.samples, async (sample) => {
    const driftAll = async (trial: Trial): Promise<void> => {
      await trial.startWith(sample);
      const begun = [...trial.steps];
      const conditions = await trial.conditions();
      for (const object of await trial.objects()) {
        let corrections = 0;
        for (const path of driftableFields(object)) {
          if (failures.length >= trials.ENOUGH) return;
          if (corrections > 0 && corrections % CORRECTIONS_BETWEEN_STARTS === 0) await trial.restart();
          trial.steps.splice(0, Infinity, ...begun);
          try {
            const outcome = await driftOne(trial, object, path, conditions);
            counts[outcome]++;
            if (outcome !== 'refused') corrections++;
          } catch (error) {
            failures.push({ what: messageOf(error), sequence: [...trial.steps] });
            corrections++;
          }
        }
      }
    };
    failures.push(...(await attempt(run, driftAll)));
    const removeAll = async (trial: Trial): Promise<void> => {
      await trial.start();
      await trial.create(sample);
      await trial.settled();
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
    failures.push(...(await attempt(run, removeAll)));
  });
  const { changed, left, refused, removed } = counts;
  const leaving =
    left > 0 ? `, ${left} of them left to another manager of a shared object, which the status says` : '';
  const tried = `${changed + left} fields changed${leaving}, ${refused} that the API server lets no one change, ${removed} objects removed`;
  const nothing = changed + left + refused + removed + failures.length === 0;
  return { tried, failures, ...(nothing && { notApplicable: 'no sample leads to an object' }) };
}

/** Returns the fields that the operator owns, but what ties an object to its owner: without that it belongs to others. */
export function driftableFields(object: AnyObject): FieldPath[] {
  return ownedFields(object).filter(
    ([first, second, third = '']) =>
      first !== 'f:metadata' || (second !== 'f:ownerReferences' && !isHashAnnotation(third.slice(2))),
  );
}

/** Changes a field as another manager, and waits for its correction. @throws where that doesn't come */
async function driftOne(
  trial: Trial,
  object: AnyObject,
  path: FieldPath,
  conditions: Normal,
): Promise<DriftOutcome> {
  const { cluster, settleMilliseconds, pace } = trial.run;
  const live = (): Promise<AnyObject> => cluster.get(trial.placeOf(object));
  const old = fieldAt(await live(), path);
  const isShared = trial.isShared(object);
  const areConditionsBack = async (): Promise<boolean> =>
    isDeepStrictEqual(await trial.conditions(), conditions);
  const requireBack = async (): Promise<void> => {
    const isBack = isDeepStrictEqual(fieldAt(await live(), path), old);
    if (!isBack || (isShared && !(await areConditionsBack())))
      throw new Error(`${object.kind}: ${describePath(path)} isn't corrected`);
  };
  const options = { deadlineMilliseconds: pace.scaled(CORRECTED_MILLISECONDS) + 4 * settleMilliseconds };
  for (const value of othersThan(old)) {
    if (!(await put(trial, object, path, value))) continue;
    const outcome = await eventually(async () => {
      try {
        await requireBack();
        return 'changed';
      } catch (error) {
        if (!isShared) throw error;
      }
      await trial.settled();
      // A shared object isn't forced; then the status has to say so.
      if (!(await areConditionsBack()) && !isDeepStrictEqual(fieldAt(await live(), path), old)) return 'left';
      await requireBack();
      return 'changed';
    }, options);
    if (outcome === 'left') {
      // Once the other manager gives it up, everything has to be as before.
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
  const { type, namespace, name } = trial.placeOf(object);
  for (let attempts = 1; ; attempts++) {
    const before = await cluster.get(trial.placeOf(object));
    const body = withValueAt(before, path, value);
    const at = `${collection(type, namespace)}/${name}`;
    const answer = await cluster.send('PUT', at, { body, query: { fieldManager: 'drift' } });
    // Its status may have changed in between.
    if (answer.status === 409 && attempts < WRITE_ATTEMPTS) continue;
    if (answer.status >= 300 || isDeepStrictEqual(fieldAt(answer.body, path), fieldAt(before, path)))
      return false;
    const shown = value === undefined ? 'nothing' : JSON.stringify(value);
    trial.steps.push(`set ${describePath(path)} of ${describeRef(refOf(object))} to ${shown}`);
    return true;
  }
}

export function othersThan(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1, value - 1, undefined];
  if (typeof value !== 'string') return [undefined];
  const bumped = value.replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
  return [...(bumped === value ? [] : [bumped]), `${value}-x`, `${value}x`, undefined];
}

type Json = Readonly<Record<string, unknown>>;

/** Returns the fields that the operator owns, without the keys of list items. */
function ownedFields(object: AnyObject): FieldPath[] {
  return ownEntries(object).flatMap(({ fieldsV1 = {} }) => ownedLeaves(fieldsV1));
}

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
  if (segment.startsWith('k:'))
    return (value as readonly Json[]).map((item) =>
      isItem(item, segment) ? withValueAt(item, rest, put) : item,
    );
  const { [segment.slice(2)]: old, ...others } = value as Json;
  const inner = withValueAt(old, rest, put);
  return inner === undefined ? others : { ...others, [segment.slice(2)]: inner };
}

function isItem(item: Json, segment: string): boolean {
  const keys = JSON.parse(segment.slice(2)) as Json;
  return Object.entries(keys).every(([key, value]) => isDeepStrictEqual(item[key], value));
}

/** Checks that an operator killed before or after any write ends where it would have undisturbed. */
export async function kills(run: ConformanceRun): Promise<Outcome> {
  const [from, to = from] = run.samples;
  const { most, deleting } = await writesOf(run, from, to);
  const points = Array.from({ length: most }, (_, index) => index + 1).flatMap((write) =>
    (['before', 'after'] as const).map((when): KillPoint => ({ write, when })),
  );
  let done = 0;
  const failures = await trialOfEach(run, points, async (trial, point) => {
    const restarted = async (): Promise<boolean> => {
      const at = trial.operator.wire.diedAt;
      if (at === undefined) return false;
      trial.steps.push(
        `the operator is killed ${point.when} ${at}, its write ${point.write}, and started again`,
      );
      done++;
      await trial.start();
      return true;
    };
    const killed = async (act: () => Promise<void>, ...path: readonly Sample[]): Promise<void> => {
      const { wire } = trial.operator;
      wire.killAt(point);
      await act();
      await rolledOut(trial);
      // Nor does it die later, when no other one would be started.
      wire.killAt(undefined);
      await restarted();
      await becomes(trial, await undisturbed(run, ...path));
    };
    await trial.start();
    await killed(() => trial.create(from), from);
    await killed(() => trial.edit(to), from, to);
    const isWrite = point.write <= deleting;
    if (isWrite) trial.operator.wire.killAt(point);
    await trial.delete();
    if (isWrite) await isGone(trial, true);
    // Without a write, the end comes at any time.
    if (!(await restarted())) await trial.restart();
    await isGone(trial);
  });
  return { tried: `${done} kills at ${most} writes`, failures };
}

async function writesOf(
  run: ConformanceRun,
  from: Sample,
  to: Sample,
): Promise<{ most: number; deleting: number }> {
  await using trial = await trials.Trial.begin(run);
  const { wire } = await trial.start();
  const counts = [0];
  for (const [act, end] of [
    [() => trial.create(from), () => rolledOut(trial)],
    [() => trial.edit(to), () => rolledOut(trial)],
    [() => trial.delete(), () => isGone(trial).then(() => trial.quiet())],
  ] as const) {
    await act();
    await end();
    counts.push(wire.writes.length);
  }
  const written = counts.slice(1).map((count, index) => count - (counts[index] ?? 0));
  return { most: Math.max(...written), deleting: written[2] ?? 0 };
}

const LATE_MILLISECONDS = 300;
/** Maximum number of cuts: after each, an engine pauses twice as long. */
const MAX_CUTS = 3;

/** Checks that lost, late and doubled events, cut watches and stale lists lead to the same objects. */
export async function events(run: ConformanceRun): Promise<Outcome> {
  const [from, to = from] = run.samples;
  const types = [run.kind.type, ...run.types, ...run.removes];
  const failures = await trialOfEach(run, watchFaults(types), async (trial, [name, begin, end]) => {
    const through = async (act: () => Promise<void>): Promise<void> => {
      // A new one, since an engine takes longer to list again each time that a watch fails.
      const { wire } = await trial.start();
      trial.steps.push(`a new operator starts, and ${name}`);
      begin(wire, trial);
      await act();
      await trial.quiet(LATE_MILLISECONDS + 100);
      if (!end) return;
      wire.eventFault = () => () => 'pass';
      end(wire);
    };
    await through(() => trial.create(from));
    await becomes(trial, await undisturbed(run, from));
    await through(() => trial.edit(to));
    const edited = await undisturbed(run, from, to);
    await becomes(trial, edited);
    await through(async () => {
      const object = (await trial.objects()).find((one) => trial.isCreatedAgain(one));
      if (object) await trial.remove(object);
    });
    await becomes(trial, edited);
    await through(() => trial.delete());
    await isGone(trial);
  });
  const stale = await attempt(run, async (trial) => {
    const served = (lists: RecordedLists) => (wire: Wire) => {
      wire.stale = new Map(lists);
    };
    const { wire: early } = await trial.start();
    await trial.create(from);
    await trial.settled();
    trial.steps.push('kill the operator, and start it with lists from before all of this');
    await trial.start(served(early.lists));
    await becomes(trial, await undisturbed(run, from));
    const { wire: middle } = await trial.restart();
    await trial.edit(to);
    await trial.settled();
    trial.steps.push('kill the operator, and start it with lists from before the edit');
    await trial.start(served(middle.lists));
    await becomes(trial, await undisturbed(run, from, to));
    await trial.delete();
    await isGone(trial);
  });
  return {
    tried: `${types.length} watches: the events of each lost, and late; those of all doubled; all cut; stale lists`,
    failures: [...failures, ...stale],
  };
}

/** A fault in the events of watches: its name, its begin, and its end where it would leave something unknown. */
type WatchFault = readonly [
  name: string,
  begin: (wire: Wire, trial: Trial) => void,
  end?: (wire: Wire) => void,
];

function watchFaults(types: readonly ResourceType[]): WatchFault[] {
  const ofType =
    (type: ResourceType, fault: EventFault): WatchFault[1] =>
    (wire, { namespaces }) => {
      const watched = namespaces.map((namespace) => collection(type, namespace));
      wire.eventFault = (path) => (watched.includes(path) ? fault : () => 'pass');
    };
  const ofAll =
    (faultOn: (wire: Wire) => EventFault): WatchFault[1] =>
    (wire) => {
      const fault = faultOn(wire);
      wire.eventFault = () => fault;
    };
  const cut = (wire: Wire): EventFault => {
    let seen = 0;
    return () => {
      if (++seen % 3 === 0 && seen <= 3 * MAX_CUTS)
        setImmediate(() => {
          wire.cut();
        });
      return 'pass';
    };
  };
  return [
    ...types.map((type): WatchFault => [
      `events of ${type.plural} are lost, until the next list`,
      ofType(type, (line) => (line.type === 'BOOKMARK' ? 'pass' : 'lose')),
      (wire) => {
        wire.expire();
      },
    ]),
    ...types.map((type): WatchFault => [
      `events of ${type.plural} come ${LATE_MILLISECONDS} ms late`,
      ofType(type, () => LATE_MILLISECONDS),
    ]),
    ['every event comes twice', ofAll(() => () => 'double')],
    [`all watches are cut at every third event, ${MAX_CUTS} times`, ofAll(cut)],
  ];
}
