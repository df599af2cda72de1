import type { ResourceType } from '../../contract/resource.js';
import { collection } from '../cluster.js';
import type { EventFault, KillPoint, RecordedLists, Wire } from '../wire.js';
import { becomes, rolledOut, undisturbed, isGone, isGoneOrDead, fresh } from './convergence.js';
import { shortest, trials, attempt } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import { Trial } from './trial.js';

/** Killed before and after each write of a create, an update and a delete, it ends where it would have undisturbed. */
export async function kills(stand: Stand): Promise<Outcome> {
  const [from, to = from] = stand.samples;
  const { most: count, deleting } = await writesOf(stand, from, to);
  const points = Array.from({ length: count }, (_, index) => index + 1).flatMap((write) =>
    (['before', 'after'] as const).map((when) => ({ write, when })),
  );
  let done = 0;
  const failures = await trials(stand, points, async (trial, point) => {
    const killed = (await killedAt(trial, point, from, to)) + (await killedDeleting(trial, point, deleting));
    done += killed;
  });
  return { tried: `${done} kills at ${count} writes`, failures: shortest(failures) };
}

interface Writes {
  /** Of a create, an update or a delete, whichever has most. */
  readonly most: number;
  readonly deleting: number;
}

/** How many writes there are, undisturbed. */
async function writesOf(stand: Stand, from: Sample, to: Sample): Promise<Writes> {
  await using trial = await Trial.begin(stand);
  const { wire } = await trial.start();
  const writesOfOne = async (act: () => Promise<void>): Promise<number> => {
    const before = wire.writes.length;
    await act();
    return wire.writes.length - before;
  };
  const creating = await writesOfOne(async () => {
    await trial.create(from);
    await rolledOut(trial);
  });
  const updating = await writesOfOne(async () => {
    await trial.edit(to);
    await rolledOut(trial);
  });
  const deleting = await writesOfOne(async () => {
    await trial.delete();
    await isGone(trial);
    await trial.quiet();
  });
  return { most: Math.max(creating, updating, deleting), deleting };
}

/** Returns how many kills there were. */
async function killedAt(trial: Trial, point: KillPoint, from: Sample, to: Sample): Promise<number> {
  let count = 0;
  const disturbed = async (act: () => Promise<void>, ...path: [Sample, ...Sample[]]): Promise<void> => {
    const { wire } = trial.operator;
    wire.killAt(point);
    await act();
    await rolledOut(trial);
    // Nor does it die later, when nobody would start another one.
    wire.spare();
    if (await startedAgain(trial, point)) count++;
    await becomes(trial, await undisturbed(trial.stand, ...path));
  };
  await trial.start();
  await disturbed(() => trial.create(from), from);
  await disturbed(() => trial.edit(to), from, to);
  return count;
}

/** What the operator writes when it is deleted, if anything, is left to the next one. */
async function killedDeleting(trial: Trial, point: KillPoint, writes: number): Promise<number> {
  const isWrite = point.write <= writes;
  if (isWrite) trial.operator.wire.killAt(point);
  await trial.delete();
  if (isWrite) await isGoneOrDead(trial);
  const isKilled = await startedAgain(trial, point);
  // Without a write, the end comes at any time.
  if (!isKilled) await trial.restart();
  await isGone(trial);
  return isKilled ? 1 : 0;
}

/** A new operator, where the last one has met its end. */
async function startedAgain(trial: Trial, { write, when }: KillPoint): Promise<boolean> {
  const at = trial.operator.wire.diedAt;
  if (at === undefined) return false;
  trial.steps.push(`the operator is killed ${when} ${at}, its write ${write}, and started again`);
  await trial.start();
  return true;
}

/** What happens to the events of watches while something is done. */
interface Weather {
  readonly name: string;
  readonly begin: (wire: Wire, trial: Trial) => void;
  /** What makes up for it in the end: events that are lost come with the next list. */
  readonly heal?: (wire: Wire) => void;
}

const LATE_MILLISECONDS = 300;
/** After each cut an engine pauses twice as long as after the one before. */
const MOST_CUTS = 3;

/** Whatever becomes of events, the objects are those of an operator that got all of them in time. */
export async function events(stand: Stand): Promise<Outcome> {
  const types = [stand.kind.type, ...stand.types, ...stand.removes];
  const weathers = [...types.map(lost), ...types.map(late), doubled, cut];
  const failures = await trials(stand, weathers, endure);
  const stale = await attempt(stand, servedStale);
  return {
    tried: `${types.length} watches: the events of each lost, and late; those of all doubled; all cut; stale lists`,
    failures: shortest([...failures, ...stale]),
  };
}

async function endure(trial: Trial, { name, begin, heal }: Weather): Promise<void> {
  const [from, to = from] = trial.stand.samples;
  const through = async (act: () => Promise<void>): Promise<void> => {
    // A new one, since an engine takes longer to list anew each time that a watch fails.
    const { wire } = await trial.start();
    trial.steps.push(`a new operator starts, and ${name}`);
    begin(wire, trial);
    await act();
    await trial.quiet(LATE_MILLISECONDS + 100);
    if (!heal) return;
    wire.eventFault = () => () => 'pass';
    heal(wire);
  };
  await through(() => trial.create(from));
  await becomes(trial, await fresh(trial.stand, from));
  await through(() => trial.edit(to));
  const edited = await undisturbed(trial.stand, from, to);
  await becomes(trial, edited);
  await through(() => trial.removeOne());
  await becomes(trial, edited);
  await through(() => trial.delete());
  await isGone(trial);
}

function ofType(type: ResourceType, fault: EventFault): Weather['begin'] {
  return (wire, { scene }) => {
    const watched = scene.namespaces.map((namespace) => collection(type, namespace));
    wire.eventFault = (path) => (watched.includes(path) ? fault : () => 'pass');
  };
}

function lost(type: ResourceType): Weather {
  return {
    name: `events of ${type.plural} are lost, until all is listed anew`,
    begin: ofType(type, (line) => (line.type === 'BOOKMARK' ? 'pass' : 'lose')),
    heal: (wire) => {
      wire.expire();
    },
  };
}

function late(type: ResourceType): Weather {
  return {
    name: `events of ${type.plural} come ${LATE_MILLISECONDS} ms late`,
    begin: ofType(type, () => LATE_MILLISECONDS),
  };
}

const doubled: Weather = {
  name: 'every event comes twice',
  begin: (wire) => {
    wire.eventFault = () => () => 'double';
  },
};

const cut: Weather = {
  name: `all watches are cut at every third event, ${MOST_CUTS} times`,
  begin: (wire) => {
    let seen = 0;
    wire.eventFault = () => () => {
      if (++seen % 3 === 0 && seen <= 3 * MOST_CUTS)
        setImmediate(() => {
          wire.cut();
        });
      return 'pass';
    };
  },
};

/** An operator that starts is told by an API server that is behind: first that there is nothing, then the earlier spec. */
async function servedStale(trial: Trial): Promise<void> {
  const [from, to = from] = trial.stand.samples;
  const { wire: early } = await trial.start();
  await trial.create(from);
  await trial.settled();
  trial.steps.push('kill the operator, and start it with lists from before all of this');
  await trial.start(served(early.lists));
  await becomes(trial, await fresh(trial.stand, from));
  const { wire: middle } = await trial.restart();
  await trial.edit(to);
  await trial.settled();
  trial.steps.push('kill the operator, and start it with lists from before the edit');
  await trial.start(served(middle.lists));
  await becomes(trial, await undisturbed(trial.stand, from, to));
  await trial.delete();
  await isGone(trial);
}

function served(lists: RecordedLists): (wire: Wire) => void {
  return (wire) => {
    wire.stale = new Map(lists);
  };
}
