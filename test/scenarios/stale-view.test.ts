import { expect, test } from 'vitest';
import { eventually, services } from '../support/cluster.js';
import { everything, lists, losing, recorded, watches, writesTo } from '../support/faults.js';
import { Scenario, small, writesIn } from '../support/stages.js';
import { WatchLine } from '../../src/testing/watch-line.js';
/** The sandbox's garbage collector looks for new kinds every half minute. */
const collectable = { deadlineMilliseconds: 120_000 };
const edited = { ...small, image: 'example.com/web:2' };

/** Waits until the API server has sent an event of this kind about an object, whether or not it was passed on. */
async function sent(scenario: Scenario, type: string, name: string, act: () => Promise<void>): Promise<void> {
  let heard = false;
  const stop = scenario.proxy.listen(everything, (line) => {
    heard ||= line.type === type && line.object.metadata.name === name;
  });
  await act();
  await eventually(() => {
    expect(heard, `${type} ${name}`).toBe(true);
  });
  stop();
}

/** What makes a watch list again: the API server tells that the version is too old. */
function expire(scenario: Scenario, resource: string): void {
  const injected = scenario.proxy.inject(watches(resource), WatchLine.error(410, 'Expired'));
  expect(injected, `open watches of ${resource}`).toBeGreaterThan(0);
}

test.concurrent(
  'a child whose creation and deletion no watch delivered comes back after a relist',
  async () => {
    await using scenario = await Scenario.start({ purpose: 'unheard-child' });
    const { subject, cluster, proxy } = scenario;
    const rule = proxy.onEvents(watches('services'), losing('web'));
    await scenario.createReady(small, 'web');
    const place = subject.childPlace(services, 'web');
    await sent(scenario, 'DELETED', 'web', () => cluster.delete(place));
    rule.remove();
    expect(await cluster.find(place)).toBeUndefined();

    expire(scenario, 'services');

    await eventually(() => cluster.get(place));
    await scenario.endsWell();
  },
);

test.concurrent(
  'custom resources whose creation or deletion no watch delivered are found by a relist',
  async () => {
    await using scenario = await Scenario.start({ purpose: 'unheard-resources' });
    const { subject, cluster, proxy } = scenario;
    await subject.create('deleted', small);
    await subject.ready('deleted');
    await scenario.settled();
    const requests = scenario.requestsFromNowOn();
    const rules = ['created', 'deleted', 'both'].map((name) =>
      proxy.onEvents(watches('appservices'), losing(name)),
    );

    await sent(scenario, 'DELETED', 'deleted', () => subject.delete('deleted'));
    await sent(scenario, 'ADDED', 'created', async () => {
      await subject.create('created', small);
    });
    await sent(scenario, 'DELETED', 'both', async () => {
      await subject.create('both', small);
      await subject.delete('both');
    });
    // Its children are collected, and an owner that seems to be there must not make them come back for ever.
    await eventually(async () => {
      expect(await cluster.find(subject.childPlace(services, 'deleted'))).toBeUndefined();
    }, collectable);
    for (const rule of rules) rule.remove();
    expire(scenario, 'appservices');

    await subject.ready('created');
    await scenario.endsWell({ deadlineMilliseconds: 120_000 });
    const writes = writesIn(requests());
    expect(writes.filter((line) => line.includes('/both'))).toEqual([]);
    expect(writes.filter((line) => /(deployments|services)\/deleted 201/.test(line))).toEqual([]);
  },
);

test.concurrent('a list that was true once leads to nothing wrong when it is served again', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'old-list' });
  const { subject, proxy } = scenario;
  const lines = new Map<string, WatchLine[]>();
  const resources = ['appservices', 'deployments', 'services'];
  await subject.create('gone', small);
  await subject.create('edited', small);
  // The first controller makes the children; what the second one lists is kept.
  await scenario.startController();
  await subject.ready('gone');
  await subject.ready('edited');
  await scenario.settled();
  await scenario.controller.stop();
  const stops = resources.map((resource) => {
    const kept: WatchLine[] = [];
    lines.set(resource, kept);
    return proxy.listen(watches(resource), (line) => kept.push(line));
  });
  await scenario.startController();
  await scenario.controller.stop();
  for (const stop of stops) stop();

  await subject.edit('edited', edited);
  await subject.delete('gone');
  await subject.create('new', small);
  const requests = scenario.requestsFromNowOn();
  const rules = resources.map((resource) => proxy.on(lists(resource), recorded(lines.get(resource)!)));
  await scenario.startController({ awaitStart: false });
  await eventually(() => {
    for (const rule of rules) expect(rule.hits).toBeGreaterThan(0);
  });
  for (const rule of rules) rule.remove();

  await subject.ready('new');
  await scenario.endsWell({ deadlineMilliseconds: 120_000 });
  expect(writesIn(requests()).filter((line) => line.startsWith('DELETE'))).toEqual([]);
});

test.concurrent(
  'an edit that a write of the status comes on top of is carried out, however late its event comes',
  async () => {
    await using scenario = await Scenario.start({ purpose: 'late-edit' });
    const { subject, proxy } = scenario;
    await scenario.createReady(small, 'web');
    await scenario.settled();
    // The API server refuses the Deployment, so nothing but the status is written.
    const gate = await scenario.held(writesTo('appservices', 'web'), () =>
      subject.edit('web', { ...small, resources: { claims: [{ name: 'gpu' }] } }),
    );
    const late: WatchLine[] = [];
    const rule = proxy.onEvents(watches('appservices'), (line) => {
      if (line.type !== 'BOOKMARK') late.push(line);
      return 'swallow';
    });
    await subject.edit('web', edited);
    gate.open();
    await eventually(() => {
      expect(late.map(({ object }) => object.metadata.generation)).toEqual([3, 3]);
    });
    rule.remove();
    // By now the answer is there too.
    await scenario.settled();
    for (const line of late) proxy.inject(watches('appservices'), line);

    await subject.asRendered('web');
    await scenario.endsWell();
  },
);
