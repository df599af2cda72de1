import type { ResourceType } from '../../contract/resource.js';
import { collection } from '../cluster.js';
import type { EventFault } from '../event-stream.js';
import type { RecordedLists, Wire } from '../wire.js';
import { fresh } from './fresh.js';
import { attempt, shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import type { Stand } from './stand.js';
import type { Trial } from './trial.js';

/** What happens to the events of watches while something is done. */
interface Weather {
  readonly name: string;
  readonly begin: (wire: Wire, trial: Trial) => void;
  /** What makes up for it in the end: events that are lost come with the next list. */
  readonly heal?: (wire: Wire) => void;
}

const LATE_MILLISECONDS = 300;

/** Whatever becomes of events, the objects are those of an operator that got all of them in time. */
export async function events(stand: Stand): Promise<Outcome> {
  const types = [stand.kind.type, ...stand.types];
  const weathers = [...types.map(lost), ...types.map(late), doubled, cut];
  const failures = await trials(stand, weathers, endure);
  const stale = await attempt(stand, servedStale);
  return {
    tried: `${types.length} watches each lost, late, doubled and cut; stale lists`,
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
    await trial.operator.quiet(LATE_MILLISECONDS + 100);
    if (!heal) return;
    wire.eventFault = () => () => 'pass';
    heal(wire);
  };
  await through(() => trial.create(from));
  await trial.becomes(await fresh(trial.stand, from));
  await through(() => trial.edit(to));
  await trial.becomes(await fresh(trial.stand, to));
  await through(() => trial.removeOne());
  await trial.becomes(await fresh(trial.stand, to));
  await through(() => trial.delete());
  await trial.isGone();
}

function ofType(type: ResourceType, fault: EventFault): Weather['begin'] {
  return (wire, { namespace }) => {
    const watched = collection(type, namespace);
    wire.eventFault = (path) => (path === watched ? fault : () => 'pass');
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
  name: 'all watches are cut at every third event',
  begin: (wire) => {
    let seen = 0;
    wire.eventFault = () => () => {
      if (++seen % 3 === 0)
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
  await trial.becomes(await fresh(trial.stand, from));
  const { wire: middle } = await trial.restart();
  await trial.edit(to);
  await trial.settled();
  trial.steps.push('kill the operator, and start it with lists from before the edit');
  await trial.start(served(middle.lists));
  await trial.becomes(await fresh(trial.stand, to));
  await trial.delete();
  await trial.isGone();
}

function served(lists: RecordedLists): (wire: Wire) => void {
  return (wire) => {
    wire.stale = new Map(lists);
  };
}
