import { beforeAll, expect, test } from 'vitest';
import { deployments, eventually, services } from '../support/cluster.js';
import { goTool } from '../support/commands.js';
import type { FaultProxy, RecordedRequest } from '../support/fault-proxy.js';
import { Gate, lists as listsOf, watches } from '../support/faults.js';
import type { Matcher } from '../support/faults.js';
import { settled } from '../support/requests.js';
import { Scenario, small, summaryOf, writesIn } from '../support/stages.js';
import { ownControlPlane } from '../support/test-clusters.js';
import { Backup } from './support/backup.js';
import { WatchLine } from '../../src/testing/watch-line.js';

/** Its API server forgets what it has cached. */
const own = ownControlPlane({ apiOnly: true });
beforeAll(async () => {
  await goTool('etcdutl');
});

const count = 20;
const types = ['appservices', 'deployments', 'services'];
/** Of what these scenarios make; others are watched too, and some of them aren't even installed. */
const theirWatches: Matcher = (request) => watches()(request) && types.includes(request.resource);

async function withResources(purpose: string): Promise<Scenario> {
  const scenario = await Scenario.start({ purpose, sandbox: own.sandbox });
  const { subject } = scenario;
  for (let index = 0; index < count; index++) await subject.create(`web-${index}`, small);
  for (let index = 0; index < count; index++) await subject.asRendered(`web-${index}`);
  await settled(scenario.cluster, scenario.user);
  return scenario;
}

/** Changes while the watches are away; the rest must not be touched for it. */
async function changeSome({ subject, cluster }: Scenario): Promise<void> {
  await subject.edit('web-0', { ...small, image: 'example.com/web:2' });
  await cluster.delete(subject.childPlace(services, 'web-1'));
  await cluster.merge(subject.childPlace(services, 'web-2'), { spec: { type: 'ClusterIP' } });
  await subject.create('new', small);
}

/**
 * Writes about others than those that were changed, and reads of single ones: where a store was empty for a moment,
 * what it had held is asked for, one by one.
 */
function unfounded(requests: ReturnType<Scenario['requestsFromNowOn']>): string[] {
  const changed = /\/(web-0|web-1|web-2|new)[ /]/;
  const reads = requests().filter(
    ({ method, resource, name }) => method === 'GET' && name !== undefined && types.includes(resource),
  );
  return [...writesIn(requests()), ...reads.map(summaryOf)].filter(
    (line) => !changed.test(line) && !/^\w+ events\b/.test(line),
  );
}

/** Counts the requests for a complete list, by resource. */
function listsAmong(requests: readonly RecordedRequest[]): Record<string, number> {
  const all = requests.filter(({ method, name }) => method === 'GET' && name === undefined);
  const asked = all.filter(({ isWatch, query }) => !isWatch || query.get('sendInitialEvents') === 'true');
  return Object.fromEntries(
    types.map((type) => [type, asked.filter(({ resource }) => resource === type).length]),
  );
}

const once = Object.fromEntries(types.map((type) => [type, 1]));

test('410 in the middle of the watches leads to one list each, and no event is lost', async () => {
  await using scenario = await withResources('expired');
  const requests = scenario.requestsFromNowOn();

  expect(scenario.proxy.inject(theirWatches, WatchLine.error(410, 'Expired'))).toBe(types.length);
  await changeSome(scenario);

  await scenario.subject.asRendered('new');
  await scenario.endsWell();
  // A watch that isn't needed for all to be right may still be waiting to list.
  await eventually(() => {
    expect(listsAmong(requests())).toEqual(once);
  });
  expect(unfounded(requests)).toEqual([]);
});

test('after etcd was restored from a backup, nothing of what was lost is applied to what is back', async () => {
  await using scenario = await Scenario.start({ purpose: 'restored', sandbox: own.sandbox });
  const { subject, cluster, proxy } = scenario;
  const { ports, ...portless } = small;
  await subject.create('web', portless);
  for (const name of ['shed', 'deleted']) await subject.create(name, small);
  for (const name of ['web', 'shed', 'deleted']) await subject.asRendered(name);
  await scenario.settled();
  const backup = await Backup.take(own.sandbox);
  const places = [subject.childPlace(deployments, 'web'), subject.childPlace(services, 'shed')];
  const kept = await Promise.all(places.map((place) => cluster.get(place)));
  // An edit that changes one child and adds another, one by which a child is deleted, a creation and a deletion.
  await subject.edit('web', { ...portless, image: 'example.com/web:2', ports });
  await subject.edit('shed', portless);
  await subject.create('lost', small);
  await subject.delete('deleted');
  for (const type of [deployments, services]) await cluster.delete(subject.childPlace(type, 'deleted'));
  for (const name of ['web', 'shed', 'lost']) await subject.asRendered(name);
  await scenario.settled();
  expect(await cluster.find(subject.childPlace(services, 'shed'))).toBeUndefined();
  const lists = ['services', 'deployments', 'appservices'].map((resource) => listedInTurn(proxy, resource));
  const requests = scenario.requestsFromNowOn();

  await backup.restore();
  // Custom resources last, so that the lost ones are known for longest.
  for (const list of lists) await list();

  await subject.edit('deleted', { ...small, image: 'example.com/web:3' });
  await scenario.endsWell();
  expect(await cluster.find(subject.place('lost'))).toBeUndefined();
  expect(await Promise.all(places.map((place) => cluster.find(place)))).toEqual(kept);
  expect(await cluster.find(subject.childPlace(services, 'web'))).toBeUndefined();
  expect(writesIn(requests()).filter((line) => !/\/deleted|^\w+ events/.test(line))).toEqual([]);
});

/** Holds lists of a resource back until the result is called, which resolves once one is complete. */
function listedInTurn(proxy: FaultProxy, resource: string): () => Promise<void> {
  const gate = new Gate();
  proxy.on(listsOf(resource), gate.fault);
  return async () => {
    const complete = Promise.withResolvers<undefined>();
    const stop = proxy.listen(listsOf(resource), ({ type }) => {
      if (type === 'BOOKMARK') complete.resolve(undefined);
    });
    gate.open();
    await complete.promise;
    stop();
  };
}
