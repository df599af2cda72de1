import { OperatorError } from '../contract/error.js';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  DRIFT_ANNOTATION,
  GENERATED_ANNOTATION,
  PAUSED_ANNOTATION,
  recordOf,
  ROTATE_ANNOTATION,
} from '../contract/names.js';
import { isGenerated, rotationOf } from '../values/generated.js';
import type { RenderedKind } from '../contract/kind.js';
import { contentHash } from '../values/json.js';
import { controllerOf, describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { fieldAt } from '../engine/steps/managed-fields.js';
import { offerTo } from '../engine/steps/ownership.js';
import { ifRefused, isOrdered, renderingOf } from './audit.js';
import { allowPods, denyPods, driftableFields, othersThan, put, soon } from './checks.js';
import { collection } from './cluster.js';
import { eventually } from './eventually.js';
import { differences } from './compare.js';
import type { Outcome } from './report.js';
import { ANY_SITE } from './tested-kind.js';
import { attempt, becomes, conditionOf, CONVERGENCE_MILLISECONDS } from './trial.js';
import { rolledOut, trialOfEach, undisturbed } from './trial.js';
import type { ConformanceRun, Trial } from './trial.js';
import type { EventFault, KillPoint, Wire } from './wire.js';

function ownRendering({ kind: { rendering } }: ConformanceRun): Partial<RenderedKind> {
  return 'each' in rendering ? rendering.each : {};
}

const notApplicable = (why: string): Outcome => ({ tried: '', failures: [], notApplicable: why });
const TOGETHER = notApplicable('it renders its custom resources together');

/** Checks that objects wait for those that they depend on, and come once these are ready. The audit of each trial looks on. */
export async function order(run: ConformanceRun): Promise<Outcome> {
  if (!isOrdered(run)) return notApplicable('nothing waits for anything');
  const [from, to = from] = run.samples;
  let dependents = 0;
  const failures = await attempt(run, async (trial) => {
    await trial.start();
    for (const [act, ...path] of [
      [() => trial.create(from), from],
      [() => trial.edit(to), from, to],
    ] as const) {
      await denyPods(trial);
      await act();
      await trial.settled();
      await trial.restart();
      await trial.settled();
      await allowPods(trial);
      await rolledOut(trial);
      await becomes(trial, await undisturbed(run, ...path));
      ({ dependents } = trial.audit);
    }
  });
  return { tried: `${dependents} applies of what depends on others, with pods held back`, failures };
}

/** Changes something that a construct reads. */
type Change = (trial: Trial) => Promise<void>;

type OnWire = (wire: Wire) => unknown;

const killed = (write: number, when: KillPoint['when']): readonly [OnWire] => [
  (wire) => {
    wire.killAt({ write, when });
  },
];

/** Begin and end of what happens to the operator meanwhile. */
const DISTURBANCES: readonly (readonly [begin: OnWire, end?: OnWire])[] = [
  [() => undefined],
  ...[killed(1, 'before'), killed(1, 'after'), killed(2, 'before'), killed(2, 'after')],
  [
    (wire) => (wire.eventFault = () => lost),
    (wire) => {
      wire.expire();
    },
  ],
  [(wire) => (wire.eventFault = () => () => 300)],
];
const lost: EventFault = ({ type }) => (type === 'BOOKMARK' ? 'pass' : 'lose');
const DISTURBED = 'each with 4 kills, and with lost and late events';

/**
 * Checks that the objects are made of what there is to read, after each of these changes in turn.
 * @param requireMore throws where something else doesn't hold then
 */
async function follows(
  run: ConformanceRun,
  courses: readonly (readonly Change[])[],
  requireMore?: Change,
): Promise<Outcome['failures']> {
  const runs = run.samples.flatMap((sample) =>
    courses.flatMap((course) => DISTURBANCES.map((disturbance) => ({ sample, course, disturbance }))),
  );
  return trialOfEach(run, runs, async (trial, { sample, course, disturbance: [begin, end] }) => {
    await trial.startWith(sample);
    for (const change of course) {
      const { wire } = trial.operator;
      begin(wire);
      await change(trial);
      await rolledOut(trial);
      wire.killAt(undefined);
      wire.eventFault = () => () => 'pass';
      if (trial.isAlive) end?.(wire);
      else await trial.restart();
      await soon(trial, CONVERGENCE_MILLISECONDS, async () => {
        const [expected, found] = await madeOf(trial);
        const [first] = differences(expected, found);
        if (first) throw new Error(first.text);
        await requireMore?.(trial);
      });
    }
  });
}

/** Returns which objects there are to be, by the hash of their rendering, and which there are; or why there are none. */
async function madeOf(trial: Trial): Promise<readonly [expected: unknown, found: unknown]> {
  const cr = await trial.get();
  try {
    const objects = await renderingOf(trial, cr);
    const own = (await trial.objects()).filter((object) => !isGenerated(object));
    return [
      Object.fromEntries(objects.map((object) => [objectId(object), contentHash(object)])),
      Object.fromEntries(own.map((object) => [objectId(object), recordOf(object)?.hash])),
    ];
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return [error.reason, conditionOf(cr, 'Stalled')?.reason];
  }
}

/** Ways in which an object that is referred to changes, each from the state that the one before has left. */
const REFERENCE_CHANGES = ['changed', 'deleted', 'created again', 'replaced by another'] as const;

/** Checks that the objects are made of what the custom resource refers to now, however that changes. */
export async function references(run: ConformanceRun): Promise<Outcome> {
  const lookups = ownRendering(run).references?.lookups;
  if (!lookups) return notApplicable('it refers to nothing');
  const own = groupKind(run.kind.type);
  const types = lookups.map(({ type }) => groupKind(type)).filter((type) => type !== own);
  if (types.length === 0) return notApplicable('it refers to its own kind alone');
  const around = run.surroundings?.(ANY_SITE).objects ?? [];
  const subjects = around.flatMap((object, index) => (types.includes(groupKind(object)) ? [index] : []));
  if (subjects.length === 0) {
    const what = 'the surroundings have nothing that it refers to: return such objects from `surroundings`';
    return { tried: '', failures: [{ what, sequence: [] }] };
  }
  const courses = subjects.map((subject) =>
    REFERENCE_CHANGES.map(
      (change): Change =>
        (trial) =>
          trial.changeAround(subject, change),
    ),
  );
  const failures = await follows(run, courses);
  const changes = `${REFERENCE_CHANGES.length} changes of ${subjects.length} objects`;
  return { tried: `${changes}, ${DISTURBED}`, failures };
}

/** Checks that the objects are made of what children say now: another writer gives them addresses, and they are replaced. */
export async function observed(run: ConformanceRun): Promise<Outcome> {
  if (!ownRendering(run).observes) return notApplicable('it reads nothing of its children');
  let changed = 0;
  const addressed =
    (ip: string): Change =>
    async (trial) => {
      const body = { status: { loadBalancer: { ingress: [{ ip }] } } };
      for (const object of await trial.objects()) {
        const { type, namespace, name } = trial.placeOf(object);
        const contentType = 'application/merge-patch+json';
        const at = `${collection(type, namespace)}/${name}/status`;
        const answer = await run.cluster.send('PATCH', at, { body, contentType });
        if (answer.status >= 300 || !JSON.stringify(answer.body.status ?? '').includes(ip)) continue;
        trial.steps.push(`another writer gives ${object.kind} ${name} the address ${ip} in its status`);
        changed++;
      }
    };
  const replaced: Change = async (trial) => {
    for (const object of await trial.objects()) if (trial.isCreatedAgain(object)) await trial.remove(object);
  };
  const failures = await follows(run, [[addressed('192.0.2.1'), addressed('192.0.2.2'), replaced]]);
  return { tried: `${changed} addresses, and children deleted, ${DISTURBED}`, failures };
}

/**
 * Checks that generated values are replaced for a rotation, and made again where they are lost, and that the objects follow. The
 * audit of each trial sees that nothing else replaces them, and that they run nowhere else.
 */
export async function values(run: ConformanceRun): Promise<Outcome> {
  if (!ownRendering(run).generated) return notApplicable('no values are generated for it');
  const secretOf = async (trial: Trial): Promise<AnyObject> => {
    const secret = (await trial.list(run.types)).find(isGenerated);
    if (!secret) throw new Error('there is no Secret of generated values');
    return secret;
  };
  const changes: readonly Change[] = [
    (trial) => trial.annotate(ROTATE_ANNOTATION, 'first'),
    async (trial) => trial.remove(await secretOf(trial)),
    (trial) => trial.annotate(ROTATE_ANNOTATION, 'second'),
  ];
  const failures = await follows(run, [changes], async (trial) => {
    const { annotations } = (await trial.get()).metadata;
    const made = (await secretOf(trial)).metadata.annotations?.[GENERATED_ANNOTATION];
    if (rotationOf(made ?? '') !== annotations?.[ROTATE_ANNOTATION])
      throw new Error('a rotation replaces no value');
  });
  return { tried: `2 rotations, and the Secret deleted, ${DISTURBED}`, failures };
}

/** Checks that nothing is written in a pause, nor drift that is to be left, and that all is made up for once these end. */
export async function control(run: ConformanceRun): Promise<Outcome> {
  if (!('each' in run.kind.rendering)) return TOGETHER;
  const [from, to = from] = run.samples;
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
      await trial.quiet();
      const write = trial.audit.writes.slice(begun).find((one) => !/\/status$| events(\/|$)/.test(one));
      if (write !== undefined) throw new Error(`with ${annotation}=${value}, it sends ${write}`);
      const isSaid = conditionOf(await trial.get(), said)?.status === 'True';
      if (isSaid !== (isPause || (value === 'warn' && fields.length > 0)))
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
    const left = await trial.objects();
    const mark = async (metadata: object): Promise<void> => {
      for (const object of left) await cluster.merge(trial.placeOf(object), { metadata });
    };
    if (origin === 'unreferenced') {
      trial.steps.push('take the owner reference off its objects');
      await mark({ ownerReferences: null });
    } else {
      await trial.delete('Orphan');
      await eventually(async () => {
        if (await cluster.find(trial.place()))
          throw new Error('deleted with its objects orphaned, it is still there');
      });
      if (origin === 'foreign') trial.steps.push('make its objects look like those of others');
      // Without field managers, nothing says who has made them.
      if (origin === 'foreign')
        await mark({ annotations: { [APPLIED_HASH_ANNOTATION]: null }, managedFields: [{}] });
      await trial.create(sample);
      await trial.settled();
      const uids = left.map(({ metadata }) => metadata.uid);
      const taken = (await trial.objects()).find(
        (object) => uids.includes(object.metadata.uid) && controllerOf(object),
      );
      if (taken) throw new Error(`it takes ${describeRef(refOf(taken))}, which isn't handed over to it`);
      trial.steps.push('hand them over to it');
      const offer = offerTo({ kind: kind.type.kind, name: trial.name });
      await mark({ annotations: { [ADOPT_BY_ANNOTATION]: offer } });
      await rolledOut(trial);
      await mark({ annotations: { [ADOPT_BY_ANNOTATION]: null } });
    }
    await becomes(trial, expected);
    const uids = (await trial.objects()).map(({ metadata }) => metadata.uid);
    const replaced = left.find(({ metadata }) => !uids.includes(metadata.uid));
    if (replaced) throw new Error(`it replaces ${describeRef(refOf(replaced))} instead of taking it`);
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
  for (const object of await trial.objects()) if (await driftOne(object)) drifted.push(object);
  return drifted;
}
