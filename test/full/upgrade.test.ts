import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import type { AuditEntry } from '../../sandbox/audit.js';
import { objectId } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { requireAnnounced } from '../../src/testing/announced.js';
import { announced, observed, unannounced, unseen } from '../upgrade/announced.js';
import type { ObservedChange } from '../upgrade/announced.js';
import { lastRelease } from '../upgrade/release.js';
import { restore } from '../upgrade/restore.js';
import { deployments, pods } from '../support/cluster.js';
import { ExampleStand } from '../support/example-stand.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';

const user = 'operator-76';
const replicaSets = resourceType({ apiVersion: 'apps/v1', kind: 'ReplicaSet' });
const release = lastRelease();
const known = announced();

interface Workload {
  readonly generation: number | undefined;
  readonly replicaSets: readonly string[];
  readonly pods: readonly string[];
}

let stand: ExampleStand;
let controller: RunningController;
let sent: readonly AuditEntry[];
let changes: readonly ObservedChange[];
let objects: Readonly<Record<'before' | 'after', readonly AnyObject[]>>;
let before: ReadonlyMap<string, Workload>;

beforeAll(async () => {
  stand = await ExampleStand.open(user);
  await restore(stand, release);
  const left = await stand.applied();
  before = await workloads();
  const requests = await requestsFromNowOn(stand.cluster, user);
  controller = await stand.startController();
  for (const cr of release.customResources) await worked(cr as AnyObject);
  await settled(stand.cluster, user);
  sent = writes(await requests());
  objects = { before: left, after: await stand.applied() };
  changes = changesOf(objects.before, objects.after);
});
afterAll(() => (stand as ExampleStand | undefined)?.[Symbol.asyncDispose]());

/** Waits until it was reconciled: by itself, or with all that share something with it. */
async function worked({ kind, metadata }: AnyObject): Promise<void> {
  const { namespace, name } = metadata;
  const isOwned = stand.kinds.some((one) => one.type.kind === kind && 'children' in one);
  await controller.logged(
    (line) =>
      line.msg === 'reconciled' &&
      line.kind === kind &&
      (!isOwned || (line.namespace === namespace && line.name === name)),
  );
}

function changesOf(then: readonly AnyObject[], now: readonly AnyObject[]): ObservedChange[] {
  const [was, is] = [then, now].map(
    (objects) => new Map(objects.map((object) => [objectId(object), object])),
  );
  const ids = [...new Set([...was!.keys(), ...is!.keys()])];
  return ids.flatMap((id) => observed(was!.get(id), is!.get(id)) ?? []);
}

/** Of every Deployment, what its Pods are. */
async function workloads(): Promise<Map<string, Workload>> {
  const [allSets, allPods] = [await stand.all(replicaSets), await stand.all(pods)];
  const uids = (objects: readonly AnyObject[], app: string): string[] =>
    objects
      .filter(({ metadata }) => metadata.labels?.app === app)
      .map(({ metadata }) => metadata.uid!)
      .sort();
  const all = await stand.all(deployments);
  return new Map(
    all.map(({ metadata: { name, generation } }) => [
      name,
      { generation, replicaSets: uids(allSets, name), pods: uids(allPods, name) },
    ]),
  );
}

test(`an upgrade changes nothing that is applied, but what the changelog names: from ${release.version}`, () => {
  expect(release.customResources.length).toBeGreaterThan(10);
  expect(unannounced(changes, known)).toEqual([]);
  expect(unseen(changes, known), 'announced, but not so').toEqual([]);
});

test('it writes nothing but what it changes', () => {
  const changed = changes.map(({ kind, object }) => {
    const [namespace, name] = object.split(' ')[1]!.split('/');
    return `${resourceType({ apiVersion: 'v1', kind }).plural} ${namespace}/${name}`;
  });
  const isKnown = ({ objectRef: { resource = '', namespace = '', name = '' } = {} }: AuditEntry): boolean =>
    changed.includes(`${resource} ${namespace}/${name}`);
  const writesOfObjects = sent.filter(({ objectRef }) => objectRef?.subresource === undefined);

  expect(writesOfObjects.filter((entry) => !isKnown(entry)).map(summary)).toEqual([]);
});

test('it writes no status of what shares objects or makes none, unless something changes', () => {
  // That of the others tells what Kubernetes has made of a Deployment, of which here everything is new.
  const statuses = sent.filter(({ objectRef }) =>
    ['streamingresses', 'jobwatchers'].includes(objectRef?.resource ?? ''),
  );

  expect(changes.length > 0 ? [] : statuses.map(summary)).toEqual([]);
});

test('no Pod is restarted, but where the changelog says so', async () => {
  requireAnnounced({ ...objects, announcedIn: join(repoFolder(), 'CHANGELOG.md') });
  const restarted = changes
    .filter(({ fields }) => fields.some((field) => field.startsWith('.spec.template')))
    .filter((change) => unannounced([change], known).length === 0)
    .map(({ object }) => object.split('/')[1]!);
  const kept = [...before].filter(([name]) => !restarted.includes(name));
  expect([...before.values()].flatMap((workload) => workload.pods).length).toBeGreaterThan(5);

  const after = await workloads();
  expect(kept.map(([name]) => [name, after.get(name)])).toEqual(kept);
});
