import { isGenerated, rotationOf } from '../values/generated.js';
import { OperatorError } from '../contract/error.js';
import { GENERATED_ANNOTATION, ROTATE_ANNOTATION } from '../contract/names.js';
import { recordOf } from '../values/projections.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { asRecorded } from '../values/created.js';
import { contentHash } from '../values/json.js';
import { isOrdered, renderingOf } from './audit.js';
import { collection } from './cluster.js';
import { differences } from './compare.js';
import { notApplicable } from './report.js';
import type { Failure, Outcome } from './report.js';
import { ANY_SITE, ownRendering } from './tested-kind.js';
import {
  allowPods,
  attempt,
  becomes,
  conditionOf,
  CONVERGENCE_MILLISECONDS,
  denyPods,
  isGone,
  mergeStatus,
  rolledOut,
  soon,
  Trial,
  trialOfEach,
  undisturbed,
} from './trial.js';
import type { ConformanceRun } from './trial.js';
import type { EventFault, KillPoint, Wire } from './wire.js';

export type Act = (trial: Trial) => Promise<unknown>;

/** Step of a trial. */
export interface Step {
  readonly do: Act;
  /** Waits until all that follows from it is over, or the operator is dead. @default - until objects and pods are there */
  readonly rest?: Act;
  /** @throws where it didn't lead to what it has to lead to */
  readonly expect: Act;
}

/** Disturbance of an operator while a step is carried out. */
export interface Disturbance {
  /** Name of one that a new operator gets: an engine takes longer to list again each time that a watch fails. */
  readonly name?: string;
  readonly begin: (wire: Wire, trial: Trial) => unknown;
  /** Called for an operator that lives, where something would stay unknown to it otherwise. */
  readonly end?: (wire: Wire) => void;
  /** Waits in place of the step, where an operator can't know that there is something to wait for. */
  readonly rest?: Act;
}

/** Carries out a step under a disturbance. @returns whether the operator was killed by that */
export async function carryOut(trial: Trial, step: Step, disturbance: Disturbance): Promise<boolean> {
  const { name, begin, end, rest } = disturbance;
  if (name !== undefined) {
    await trial.start();
    trial.steps.push(`a new operator starts, and ${name}`);
  }
  begin(trial.operator.wire, trial);
  await step.do(trial);
  await (rest ?? step.rest ?? rolledOut)(trial);
  const { wire } = trial.operator;
  const { diedAt } = wire;
  // Nor does it die later, when no other one would be started.
  wire.killAt(undefined);
  if (diedAt !== undefined) {
    trial.steps.push(`the operator is killed at ${diedAt}, and started again`);
    await trial.start();
  } else if (end) {
    wire.eventFault = () => () => 'pass';
    end(wire);
  }
  await step.expect(trial);
  return diedAt !== undefined;
}

/** Returns the life of a custom resource: it is created, edited and deleted, each of which ends as if undisturbed. */
function lifeOf(run: ConformanceRun): readonly [create: Step, edit: Step, end: Step] {
  const [from, to = from] = run.samples;
  return [
    {
      do: (trial) => trial.create(from),
      expect: async (trial) => becomes(trial, await undisturbed(run, from)),
    },
    {
      do: (trial) => trial.edit(to),
      expect: async (trial) => becomes(trial, await undisturbed(run, from, to)),
    },
    { do: (trial) => trial.delete(), rest: (trial) => isGone(trial, true), expect: (trial) => isGone(trial) },
  ];
}

const UNDISTURBED: Disturbance = { begin: () => undefined };

export const killed = ({ write, when }: KillPoint): Disturbance => ({
  begin: (wire) => {
    wire.killAt({ write, when });
  },
});

/** Checks that an operator killed before or after any write ends where it would have undisturbed. */
export async function kills(run: ConformanceRun): Promise<Outcome> {
  const [create, edit, end] = lifeOf(run);
  const counts: number[] = [];
  await using counted = await Trial.begin(run);
  const { wire } = await counted.start();
  for (const step of [create, edit, end]) {
    const before = wire.writes.length;
    await carryOut(counted, step, UNDISTURBED);
    await counted.quiet();
    counts.push(wire.writes.length - before);
  }
  const most = Math.max(...counts);
  const points = Array.from({ length: most }, (_, index) => index + 1).flatMap((write) =>
    (['before', 'after'] as const).map((when): KillPoint => ({ write, when })),
  );
  let done = 0;
  const failures = await trialOfEach(run, points, async (trial, point) => {
    // Where a deletion leads to no such write, its end comes at any time.
    const isWrite = point.write <= (counts[2] ?? 0);
    const restarted: Step = { ...end, do: (one) => one.delete().then(() => one.restart()) };
    await trial.start();
    for (const step of [create, edit, isWrite ? end : restarted])
      if (await carryOut(trial, step, killed(point))) done++;
  });
  return { tried: `${done} kills at ${most} writes`, failures };
}

const LATE_MILLISECONDS = 300;
/** Maximum number of cuts: after each, an engine pauses twice as long. */
const MAX_CUTS = 3;

const lost: EventFault = ({ type }) => (type === 'BOOKMARK' ? 'pass' : 'lose');
const late: EventFault = () => LATE_MILLISECONDS;
const expire = (wire: Wire): void => {
  wire.expire();
};

/** Returns faults in the events of one type each, and of all. */
function watchFaults(types: readonly ResourceType[]): Disturbance[] {
  const rest: Act = (trial) => trial.quiet(LATE_MILLISECONDS + 100);
  const ofType = (type: ResourceType, fault: EventFault): Pick<Disturbance, 'begin' | 'rest'> => ({
    rest,
    begin: (wire, { namespaces }) => {
      const watched = namespaces.map((namespace) => collection(type, namespace));
      wire.eventFault = (path) => (watched.includes(path) ? fault : () => 'pass');
    },
  });
  const cut = (wire: Wire): void => {
    let seen = 0;
    const fault: EventFault = () => {
      if (++seen % 3 === 0 && seen <= 3 * MAX_CUTS)
        setImmediate(() => {
          wire.cut();
        });
      return 'pass';
    };
    wire.eventFault = () => fault;
  };
  return [
    ...types.map((type) => ({
      ...ofType(type, lost),
      ...{ name: `events of ${type.plural} are lost, until the next list`, end: expire },
    })),
    ...types.map((type) => ({
      ...ofType(type, late),
      name: `events of ${type.plural} come ${LATE_MILLISECONDS} ms late`,
    })),
    { name: 'every event comes twice', begin: (wire) => (wire.eventFault = () => () => 'double'), rest },
    { name: `all watches are cut at every third event, ${MAX_CUTS} times`, begin: cut, rest },
  ];
}

/** Checks that lost, late and doubled events, cut watches and stale lists lead to the same objects. */
export async function events(run: ConformanceRun): Promise<Outcome> {
  const types = [run.kind.type, ...run.types, ...run.removes];
  const [create, edit, end] = lifeOf(run);
  const removal: Step = {
    ...edit,
    do: async (trial) => {
      const object = (await trial.objects()).find((one) => trial.isCreatedAgain(one));
      if (object) await trial.remove(object);
    },
  };
  const failures = await trialOfEach(run, watchFaults(types), async (trial, fault) => {
    for (const step of [create, edit, removal, end]) await carryOut(trial, step, fault);
  });
  const stale = await attempt(run, async (trial) => {
    for (const step of [create, edit]) {
      const { wire } = await trial.start();
      await step.do(trial);
      await trial.settled();
      trial.steps.push('kill the operator, and start it with lists from before that');
      await trial.start((next) => (next.stale = new Map(wire.lists)));
      await step.expect(trial);
    }
    await end.do(trial);
    await end.expect(trial);
  });
  return {
    tried: `${types.length} watches: the events of each lost, and late; those of all doubled; all cut; stale lists`,
    failures: [...failures, ...stale],
  };
}

/** Checks that objects wait for those that they depend on, and come once these are ready. The audit of each trial looks on. */
export async function order(run: ConformanceRun): Promise<Outcome> {
  if (!isOrdered(run)) return notApplicable('nothing waits for anything');
  const [create, edit] = lifeOf(run);
  let dependents = 0;
  const failures = await attempt(run, async (trial) => {
    await trial.start();
    for (const step of [create, edit]) {
      const held: Act = async () => {
        await denyPods(trial);
        await step.do(trial);
        await trial.settled();
        await trial.restart();
        await trial.settled();
        await allowPods(trial);
      };
      await carryOut(trial, { ...step, do: held }, UNDISTURBED);
      ({ dependents } = trial.audit);
    }
  });
  return { tried: `${dependents} applies of what depends on others, with pods held back`, failures };
}

/** Disturbances under which a change of what a construct reads is noticed. */
export const DISTURBANCES: readonly Disturbance[] = [
  UNDISTURBED,
  ...[1, 2].flatMap((write) => [killed({ write, when: 'before' }), killed({ write, when: 'after' })]),
  { begin: (wire) => (wire.eventFault = () => lost), end: expire },
  { begin: (wire) => (wire.eventFault = () => late) },
];
export const DISTURBED = 'each with 4 kills, and with lost and late events';

/**
 * Checks that the objects are made of what there is to read, after each change of a course in turn.
 * @param requireMore throws where something else doesn't hold then
 */
function follows(
  run: ConformanceRun,
  courses: readonly (readonly Act[])[],
  requireMore: Act = () => Promise.resolve(),
): Promise<Failure[]> {
  const items = run.samples.flatMap((sample) =>
    courses.flatMap((course) => DISTURBANCES.map((disturbance) => ({ sample, course, disturbance }))),
  );
  const expect = (trial: Trial): Promise<void> =>
    soon(trial, CONVERGENCE_MILLISECONDS, async () => {
      await requireMade(trial);
      await requireMore(trial);
    });
  return trialOfEach(run, items, async (trial, { sample, course, disturbance }) => {
    await trial.startWith(sample);
    for (const change of course) await carryOut(trial, { do: change, expect }, disturbance);
  });
}

/** @throws where the objects aren't those that are rendered of what there is now */
export async function requireMade(trial: Trial): Promise<void> {
  const [first] = differences(...(await madeOf(trial)));
  if (first) throw new Error(first.text);
}

/** Returns which objects there are to be, by the hash of their rendering, and which there are; or why there are none. */
async function madeOf(trial: Trial): Promise<readonly [expected: unknown, found: unknown]> {
  const cr = await trial.get();
  try {
    const objects = await renderingOf(trial, cr);
    const own = (await trial.objects()).filter((object) => !isGenerated(object));
    return [
      Object.fromEntries(
        objects.map((object) => {
          const live = own.find((one) => objectId(one) === objectId(object));
          return [objectId(object), contentHash(live ? asRecorded(object, live) : object)];
        }),
      ),
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
      (change): Act =>
        (trial) =>
          trial.changeAround(subject, change),
    ),
  );
  const changes = `${REFERENCE_CHANGES.length} changes of ${subjects.length} objects`;
  return { tried: `${changes}, ${DISTURBED}`, failures: await follows(run, courses) };
}

/** Checks that the objects are made of what children say now: another writer gives them addresses, and they are replaced. */
export async function observed(run: ConformanceRun): Promise<Outcome> {
  if (!ownRendering(run).observes) return notApplicable('it reads nothing of its children');
  let changed = 0;
  const addressed =
    (ip: string): Act =>
    async (trial) => {
      for (const object of await trial.objects()) {
        const status = { loadBalancer: { ingress: [{ ip }] } };
        const answer = await mergeStatus(run.cluster, trial.placeOf(object), status);
        if (answer.status >= 300 || !JSON.stringify(answer.body.status ?? '').includes(ip)) continue;
        trial.steps.push(
          `another writer gives ${object.kind} ${object.metadata.name} the address ${ip} in its status`,
        );
        changed++;
      }
    };
  const replaced: Act = async (trial) => {
    for (const object of await trial.objects()) if (trial.isCreatedAgain(object)) await trial.remove(object);
  };
  const failures = await follows(run, [[addressed('192.0.2.1'), addressed('192.0.2.2'), replaced]]);
  return { tried: `${changed} addresses, and children deleted, ${DISTURBED}`, failures };
}

/**
 * Checks that generated values are replaced for a rotation, and made again where they are lost, and that the objects follow. The
 * audit of each trial sees that nothing else replaces them, and that they stand nowhere else.
 */
export async function values(run: ConformanceRun): Promise<Outcome> {
  if (!ownRendering(run).generated) return notApplicable('no values are generated for it');
  const secretOf = async (trial: Trial): Promise<AnyObject> => {
    const secret = (await trial.list(run.types)).find(isGenerated);
    if (!secret) throw new Error('there is no Secret of generated values');
    return secret;
  };
  const changes: readonly Act[] = [
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
