import { expect, test } from 'vitest';
import { eventually } from '../support/cluster.js';
import { watches, writesTo } from '../support/faults.js';
import type { Matcher } from '../support/faults.js';
import { IngressStage, portsWith } from '../support/stages.js';

const foreign = { 7000: 'a/b:1' };

/** The second of two writes to the Service, where one pass opens and closes. */
function second(matches: Matcher): Matcher {
  let seen = 0;
  return (request) => matches(request) && seen++ > 0;
}

/** One port for another. The controller finds both on its watch when it looks, so that it is one pass. */
async function replace(stage: IngressStage): Promise<void> {
  const told = new Set<string>();
  const stop = stage.proxy.listen(watches('streamingresses'), ({ type, object }) => {
    told.add(`${type} ${object.metadata.name}`);
  });
  stage.controller.signal('SIGSTOP');
  try {
    await stage.drop(9000);
    await stage.ask(9001);
    await eventually(() => {
      expect([...told]).toEqual(expect.arrayContaining(['DELETED p9000', 'ADDED p9001']));
    });
  } finally {
    stop();
    stage.controller.signal('SIGCONT');
  }
}

interface Half {
  /** The request that never arrives. */
  readonly held: () => Matcher;
  readonly change: (stage: IngressStage) => Promise<void>;
  /** What the shared objects have of ours once the controller has been killed. */
  readonly left: { readonly entries: readonly number[]; readonly ports: readonly number[] };
  /** What is open in the end. */
  readonly after: readonly number[];
  /** By both controllers. */
  readonly writes: readonly string[];
}

const halves: readonly (readonly [what: string, Half])[] = [
  [
    'a port is opened, its entry written and the Service not',
    {
      held: () => writesTo('services'),
      change: (stage) => stage.ask(9001),
      left: { entries: [9000, 9001], ports: [9000] },
      after: [9000, 9001],
      writes: ['patch configmaps 200', 'patch services 200'],
    },
  ],
  [
    'a port is closed, the Service written and its entry there yet',
    {
      held: () => writesTo('configmaps'),
      change: (stage) => stage.drop(9000),
      left: { entries: [9000], ports: [] },
      after: [],
      writes: ['patch services 200', 'patch configmaps 200'],
    },
  ],
  [
    'one port is closed and another opened, and the entry of the one is there yet',
    {
      held: () => writesTo('configmaps'),
      change: replace,
      left: { entries: [9000], ports: [] },
      after: [9001],
      writes: ['patch services 200', 'patch configmaps 200', 'patch services 200'],
    },
  ],
  [
    'one port is closed and another opened, and the other has its entry alone',
    {
      held: () => second(writesTo('services')),
      change: replace,
      left: { entries: [9001], ports: [] },
      after: [9001],
      writes: ['patch services 200', 'patch configmaps 200', 'patch services 200'],
    },
  ],
];

test.concurrent.for(halves)(
  'after an operator is killed, the next one does what is left, and nothing twice: while %s',
  async ([, { held, change, left, after, writes }]) => {
    await using stage = await IngressStage.start('killed');
    await stage.applyKeys(foreign, 'helm');
    await stage.ask(9000);
    await eventually(() => stage.requireOpen([9000], foreign));
    await stage.atRest();
    const shared = await stage.sharedWritesFromNowOn();

    await stage.killedWhileHeld(held(), () => change(stage));
    expect(await stage.nginx.entries()).toEqual({ ...stage.ourEntries(left.entries), ...foreign });
    expect(await stage.nginx.ports()).toEqual(portsWith(left.ports));
    // Others go on while no controller runs.
    const more = { ...foreign, 7001: 'a/c:2' };
    await stage.applyKeys(more, 'helm');
    await stage.startController();

    await eventually(() => stage.requireOpen(after, more));
    await stage.atRest();
    expect(await shared()).toEqual(writes);
    stage.logsNoError();
  },
);
