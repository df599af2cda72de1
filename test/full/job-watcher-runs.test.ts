import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { choosePorts } from '../../sandbox/ports.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { rulesFor } from '../../src/install/rules.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import type { LiveWatcher } from '../../src/kinds/job-watcher/spec.js';
import { collection, Cluster, events } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { deletionsOf, Jobs, jobs, pods } from './support/jobs.js';
import { kubeconfigLike } from './support/kubeconfigs.js';
import { Recording } from './support/recording.js';
import { requestsFromNowOn } from './support/requests.js';
import { grant } from './support/rights.js';

/** How a JobWatcher works: how much, where, with which rights, and what it tells. It has Roles alone, in six namespaces. */
const user = 'operator-48';
const cluster = new Cluster(openSandbox(inject('sandbox')));
/** The namespace of most tests, one of a neighbour, one where nothing may be deleted, one of the system, the operator's own. */
let home: Jobs;
let neighbour: Jobs;
let barred: Jobs;
let system: Jobs;
let ops: Jobs;
let controller: RunningController;
let metrics: string;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  const make = async (purpose: string): Promise<Jobs> =>
    new Jobs(cluster, await cluster.makeNamespace(purpose));
  [home, neighbour, barred] = [await make('home'), await make('neighbour'), await make('barred')];
  [system, ops] = [await make('kube'), await make('ops')];
  metrics = `127.0.0.1:${(await choosePorts()).scheduler}`;
  controller = await startController({
    ...{ cluster, user, kinds: [jobWatcher] },
    namespaces: ['default', ...[home, neighbour, barred, system, ops].map(({ namespace }) => namespace)],
    args: ['--metrics-bind-address', metrics],
    // Where the operator is at home, its watchers may act in all namespaces.
    kubeconfig: await kubeconfigLike(cluster, user, { namespace: ops.namespace }),
  });
  await forbidDeletionIn(barred);
});

afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

interface Told extends AnyObject {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly eventTime: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

async function eventsOn(kind: string, name: string): Promise<Told[]> {
  const all = await cluster.list<Told>(events, home.namespace);
  return all.filter(({ regarding }) => regarding.kind === kind && regarding.name === name);
}

/** The value of a metric, 0 where there is none. */
async function metric(name: string, labels = ''): Promise<number> {
  const text = await (await fetch(`http://${metrics}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name}${labels} `));
  return Number(line?.split(' ').at(-1) ?? 0);
}

async function asked(prefix: string): Promise<{ name: string | undefined; at: number }[]> {
  const found = deletionsOf(await cluster.sandbox.audit(user), prefix);
  return found.map(({ objectRef, requestReceivedTimestamp }) => ({
    name: objectRef?.name,
    at: Date.parse(requestReceivedTimestamp),
  }));
}

test('the tutorial: pi is deleted with its Pods 15 s after it has completed, by the example as it is', async () => {
  const example = join(repoFolder(), 'examples/jobwatcher/tutorial.yaml');
  const place = new Jobs(cluster, 'default');
  await cluster.create(jobWatcher.type, parse(readFileSync(example, 'utf8')) as AnyObject);
  await place.create('pi', { spec: {}, image: 'perl:5.34.0' });
  const { finishedAt, dueAt } = await controller.logged(
    ({ name, namespace, outcome }) => namespace === 'default' && name === 'pi' && outcome === 'deleted',
  );
  expect(Date.parse(dueAt as string) - Date.parse(finishedAt as string)).toBe(15_000);
  const [request] = await asked('pi');
  expect(request!.at).toBeGreaterThanOrEqual(Date.parse(dueAt as string));
  await eventually(async () => {
    const left = await cluster.list(pods, 'default', 'batch.kubernetes.io/job-name=pi');
    expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
  });
  await cluster.delete(place.watcherPlace('tutorial'));
});

test('rule 5: of a name that comes back, the third Job stays, and that is told once', async () => {
  await home.watch('loop', { completedTTL: '0s' });
  for (let time = 0; time < 2; time++) {
    const { metadata } = await home.finished('loop-job');
    await controller.logged(({ uid, outcome }) => uid === metadata.uid && outcome === 'deleted');
    await home.left('loop-', []);
  }
  await home.finished('loop-job');
  await home.told('loop', { lastRun: { skipped: { Recreated: 1 } } });
  await home.finished('loop-other');
  await home.left('loop-', ['loop-job']);

  await eventually(async () => {
    expect(await eventsOn('JobWatcher', 'loop')).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'Recreated' }),
    );
  });
  const told = (await eventsOn('JobWatcher', 'loop')).filter(({ reason }) => reason === 'Recreated');
  expect(told).toMatchObject([expect.not.objectContaining({ series: expect.anything() as unknown })]);
});

describe('rule 6: deletions', () => {
  test('take the Pods along, and in the foreground wait for them, without being asked for again', async () => {
    await home.create('front-job', { spec: {} });
    await eventually(async () => {
      const { status } = await cluster.get(home.place('front-job'));
      expect(status).toMatchObject({ succeeded: 1, completionTime: expect.any(String) as string });
    });
    const [pod] = await cluster.list(pods, home.namespace, 'batch.kubernetes.io/job-name=front-job');
    const place = { type: pods, namespace: home.namespace, name: pod!.metadata.name };
    await cluster.merge(place, { metadata: { finalizers: ['example.com/hold'] } });
    await home.watch('front', { completedTTL: '0s', propagationPolicy: 'Foreground' });

    await home.told('front', { lastRun: { skipped: { Terminating: 1 } } });
    const { metadata } = await cluster.get(home.place('front-job'));
    expect(metadata).toMatchObject({ finalizers: ['foregroundDeletion'] });
    await home.finished('front-other');
    await eventually(async () => {
      expect(await cluster.find(home.place('front-other'))).toBeUndefined();
    });
    expect((await asked('front-')).map(({ name }) => name)).toEqual(['front-job', 'front-other']);
    await cluster.merge(place, { metadata: { finalizers: null } });
    await eventually(async () => {
      expect(await cluster.find(home.place('front-job'))).toBeUndefined();
      expect(await cluster.find(place)).toBeUndefined();
    });
  });

  test('are paced to ten a second, oldest deadline first', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `pace-${String(n).padStart(2, '0')}`);
    await Promise.all(names.map((name, n) => home.finished(name, { ago: 7200 - 10 * n })));
    await home.watch('pace', { completedTTL: '0s' });
    await home.left('pace-', []);
    const requests = await asked('pace-');
    expect(requests.map(({ name }) => name)).toEqual(names);
    const first = await eventually(async () => {
      const told = (await eventsOn('Job', names[0]!)).find(({ reason }) => reason === 'TTLExpired');
      return Date.parse(told!.eventTime);
    });
    // Of the thirty, ten may go at once. The first is announced just before it is sent, and may arrive late.
    expect(requests.at(-1)!.at - first).toBeGreaterThan(1_900);
  });

  test.each(['Forbidden', 'Invalid'])('that a policy refuses as %s stop nobody else', async (reason) => {
    const name = `firm${reason.toLowerCase()}`;
    await home.finished(`${name}-job`);
    const lift = await refuseDeletionOf(`${name}-job`, reason);
    await home.watch(name, { completedTTL: '0s' });
    await home.condition(name, { type: 'Stalled', status: 'True', reason });
    await home.told(name, { lastRun: { deleted: 0, failed: 1 } });
    for (const round of [1, 2, 3]) {
      await home.finished(`${name}-${round}`);
      await home.left(`${name}-`, [`${name}-job`]);
    }
    await home.condition(name, { type: 'Stalled', status: 'True', reason });
    // Not again for ten minutes, as long as it is the same object.
    expect(await asked(`${name}-job`)).toHaveLength(1);

    await lift();
    await home.edit(`${name}-job`, { metadata: { labels: { touched: 'yes' } } });
    await home.left(`${name}-`, []);
    await home.condition(name, { type: 'Ready', status: 'True' });
  });

  test('that aren’t permitted in one namespace are told, and the others go on', async () => {
    await barred.finished('rights-a');
    await barred.finished('rights-b');
    await home.finished('rights-c');
    const everywhere = [`^${home.namespace}$`, `^${barred.namespace}$`];
    await ops.watch('rights', { completedTTL: '0s', namespacePatterns: everywhere });

    await home.left('rights-', []);
    const { message } = await ops.condition('rights', {
      type: 'Stalled',
      status: 'True',
      reason: 'Forbidden',
    });
    expect(message).toContain(barred.namespace);
    await ops.told('rights', { lastRun: { namespaces: 2, matched: 3, deleted: 1, failed: 2 } });
    await home.finished('rights-d');
    await home.left('rights-', []);
    expect(await barred.names('rights-')).toHaveLength(2);
    // The right is missing for both.
    expect((await asked('rights-')).filter(({ name }) => name! < 'rights-c')).toHaveLength(1);
    await cluster.delete(ops.watcherPlace('rights'));
  });
});

describe('rule 7: limits', () => {
  const dozen = Array.from({ length: 17 }, (_, n) => n);

  test('Abort deletes nothing beyond an exact share, and goes on once it is kept to', async () => {
    await Promise.all(dozen.map((n) => home.create(`abort-${n}`)));
    await home.finished('abort-x');
    await home.finished('abort-y');
    // 10 % of 19 are 1.9.
    await home.watch('abort', { completedTTL: '0s', limits: { maxPercent: 10 } });
    await home.told('abort', { lastRun: { matched: 19, deleted: 0, skipped: { Limited: 2 } } });
    await home.condition('abort', { type: 'Stalled', status: 'True', reason: 'BlastRadiusExceeded' });
    expect(await home.names('abort-')).toHaveLength(19);

    await home.create('abort-z');
    await home.condition('abort', { type: 'Ready', status: 'True' });
    expect(await home.names('abort-')).toHaveLength(18);
    expect(await home.names('abort-')).not.toContain('abort-x');
  });

  test('Throttle deletes the oldest that they allow, and the next after the frequency', async () => {
    const ages = { a: 50, b: 90, c: 70, d: 60, e: 80 };
    for (const [name, ago] of Object.entries(ages)) await home.finished(`few-${name}`, { ago });
    // Nothing is due until all of them are known.
    await home.watch('few', {
      ...{ completedTTL: '1h', frequency: '4s', limits: { maxPerRun: 2, mode: 'Throttle' } },
    });
    await home.told('few', { lastRun: { matched: 5, finished: 5 } });
    await using recording = await Recording.start<LiveWatcher & AnyObject>(cluster, home.watcherPlace('few'));
    await home.adjust('few', { completedTTL: '0s' });
    await home.left('few-', []);
    const requests = await asked('few-');
    expect(requests.map(({ name }) => name)).toEqual(['few-b', 'few-e', 'few-c', 'few-d', 'few-a']);
    await home.told('few', { lastRun: { deleted: 1 } });
    const deleting = (await recording.states())
      .map(({ status }) => status!)
      .filter(({ lastRun }) => lastRun!.deleted > 0);
    const runs = new Map(deleting.map(({ lastStarted, lastRun }) => [lastStarted!, lastRun!.deleted]));
    expect([...runs.values()]).toEqual([2, 2, 1]);
    const [first, second] = [...runs.keys()].map((time) => Date.parse(time));
    expect(requests[2]!.at - first!).toBeGreaterThanOrEqual(4_000);
    expect(requests[4]!.at - second!).toBeGreaterThanOrEqual(4_000);
  });
});

describe('rule 11: scope', () => {
  test('a watcher acts in its own namespace, and says where its patterns want more', async () => {
    for (const place of [home, neighbour]) await place.finished('scope-job');
    await home.watch('scope', { completedTTL: '0s', namespacePatterns: ['.'] });
    await home.left('scope-', []);
    await home.condition('scope', { type: 'ScopeLimited', status: 'True', reason: 'NamespaceNotPermitted' });
    await home.told('scope', { lastRun: { namespaces: 1, matched: 1 } });

    await home.watch('beyond', { completedTTL: '0s', namespacePatterns: [`^${neighbour.namespace}$`] });
    await home.condition('beyond', { type: 'Accepted', status: 'False', reason: 'NamespaceNotPermitted' });
    await home.condition('beyond', { type: 'Stalled', status: 'True', reason: 'NamespaceNotPermitted' });
    expect(await neighbour.names('scope-')).toEqual(['scope-job']);
  });

  test('in the operator’s namespace it acts where its patterns say, and never where Jobs are protected', async () => {
    const all = [home, neighbour, system, ops];
    for (const place of all) await place.finished('wide-job');
    const namespacePatterns = all.map(({ namespace }) => namespace);
    await ops.watch('wide', { completedTTL: '0s', namespacePatterns });
    for (const place of [home, neighbour]) await place.left('wide-', []);
    await ops.told('wide', { lastRun: { namespaces: 4, matched: 4, skipped: { ProtectedNamespace: 2 } } });
    await ops.condition('wide', { type: 'ScopeLimited', status: 'False' });
    for (const place of [system, ops]) expect(await place.names('wide-')).toEqual(['wide-job']);
  });

  test('Roles are enough: nothing is asked for in all namespaces', async () => {
    const { status } = await cluster.send('GET', '/apis/batch/v1/jobs', { impersonate: user });
    expect(status).toBe(403);
    const wide = (await cluster.sandbox.audit(user)).filter(
      ({ objectRef }) => ['jobs', 'jobwatchers'].includes(objectRef?.resource ?? '') && !objectRef?.namespace,
    );
    expect(wide).toEqual([]);
  });
});

test('rule 15: the status tells all runs, once per frequency at most', async () => {
  await home.watch('often', { completedTTL: '1s', frequency: '3s' });
  await home.condition('often', { type: 'Ready', status: 'True' });
  await using recording = await Recording.start<LiveWatcher & AnyObject>(cluster, home.watcherPlace('often'));
  const requests = await requestsFromNowOn(cluster, user);
  const told = async () => (await recording.states()).slice(1).map(({ status }) => status!);
  // One is due about each second, until the status has told of a few runs.
  let made = 0;
  await eventually(
    async () => {
      await home.finished(`often-${made++}`, { ago: 0 });
      expect((await told()).length).toBeGreaterThan(3);
    },
    { intervalMilliseconds: 700 },
  );
  await home.left('often-', []);
  const statuses = await eventually(async () => {
    const all = await told();
    const apart = new Map(
      all.map(({ lastStarted, lastFinished, lastRun }) => [
        `${lastStarted} to ${lastFinished}`,
        lastRun?.deleted ?? 0,
      ]),
    );
    expect([...apart.values()].reduce((sum, deleted) => sum + deleted, 0)).toBe(made);
    return all;
  });
  const times = (await requests())
    .filter(({ objectRef }) => objectRef?.subresource === 'status' && objectRef.name === 'often')
    .filter(({ code = 0 }) => code < 300)
    .map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
  expect(times).toHaveLength(statuses.length);
  // Each may arrive a bit later than it was made, but none before the time that follows from what those before it say.
  const [before] = await recording.states();
  let opensAt = Date.parse(before!.status!.lastFinished!) + 3_000;
  for (const [index, { lastFinished }] of statuses.entries()) {
    expect(times[index]).toBeGreaterThanOrEqual(opensAt);
    opensAt = Math.max(opensAt, Date.parse(lastFinished!)) + 3_000;
  }
});

describe('rule 16: what is told', () => {
  test('metrics count what was deleted, failed, skipped and waits', async () => {
    for (const as of ['Complete', 'Failed'] as const)
      await home.finished(`gauge-${as.toLowerCase()}`, { as });
    await home.create('gauge-suspended');
    await home.watch('gauge', { completedTTL: '0s', failedTTL: '0s' });
    await home.left('gauge-', ['gauge-suspended']);
    const done = deletionsOf(await cluster.sandbox.audit(user), '').filter(({ code }) => code === 200);
    await eventually(async () => {
      const completed = await metric('reconstruct_jobs_deleted_total', '{outcome="completed"}');
      const failed = await metric('reconstruct_jobs_deleted_total', '{outcome="failed"}');
      expect({ failed, all: completed + failed }).toEqual({ failed: 1, all: done.length });
      expect(await metric('reconstruct_jobs_deletion_lag_seconds_count')).toBe(done.length);
    });
    expect(await metric('reconstruct_jobs_skipped', '{reason="NotFinished"}')).toBeGreaterThan(0);
    // Of the policy, and of the two that lack the right.
    expect(await metric('reconstruct_jobs_delete_errors_total', '{reason="Forbidden"}')).toBe(3);
    expect(await metric('reconstruct_jobs_delete_errors_total', '{reason="Invalid"}')).toBe(1);
    expect(await metric('reconstruct_jobs_pending')).toBe(0);
  });

  test('an event on the Job before it goes, one on the watcher per run, and a line in the log', async () => {
    const { metadata } = await home.finished('story-job', { as: 'Failed' });
    await home.finished('story-other', { as: 'Failed' });
    await home.watch('story', { failedTTL: '30m' });
    const line = await controller.logged(({ uid }) => uid === metadata.uid);
    expect(line).toMatchObject({
      ...{
        level: 'info',
        objectKind: 'Job',
        namespace: home.namespace,
        name: 'story-job',
        outcome: 'deleted',
      },
      ...{ watcher: `${home.namespace}/story`, finish: 'failed', ttlSeconds: 1800 },
      finishedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    });
    await eventually(async () => {
      const [onJob] = (await eventsOn('Job', 'story-job')).filter(({ reason }) => reason === 'TTLExpired');
      expect(onJob).toMatchObject({ type: 'Normal', regarding: { uid: metadata.uid } });
      expect(onJob!.note).toContain(`JobWatcher ${home.namespace}/story`);
      expect(await eventsOn('JobWatcher', 'story')).toMatchObject([
        { type: 'Normal', reason: 'Deleted', note: 'Deleted 2 Jobs of 2' },
      ]);
    });
  });
});

const admission = (kind: string) =>
  resourceType({ apiVersion: 'admissionregistration.k8s.io/v1', kind, namespaced: false });

/** By an admission policy, until it is lifted. */
async function refuseDeletionOf(name: string, reason: string): Promise<() => Promise<void>> {
  const metadata = { name };
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const policies = admission('ValidatingAdmissionPolicy');
  const bindings = admission('ValidatingAdmissionPolicyBinding');
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': home.namespace } };
  const rule = { apiGroups: ['batch'], apiVersions: ['v1'], resources: ['jobs'], operations: ['DELETE'] };
  const expression = `oldObject.metadata.name != '${name}'`;
  await cluster.create(policies, {
    ...{ apiVersion, kind: policies.kind, metadata },
    spec: {
      matchConstraints: { namespaceSelector, resourceRules: [rule] },
      validations: [{ expression, reason, message: 'it is evidence' }],
    },
  });
  await cluster.create(bindings, {
    ...{ apiVersion, kind: bindings.kind, metadata },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  const path = `${collection(jobs, home.namespace)}/${name}`;
  const isRefused = async (wanted: boolean): Promise<void> =>
    eventually(async () => {
      const { status } = await cluster.send('DELETE', path, { query: { dryRun: 'All' } });
      expect(status >= 400).toBe(wanted);
    });
  await isRefused(true);
  return async () => {
    for (const type of [bindings, policies]) await cluster.delete({ type, name });
    await isRefused(false);
  };
}

async function forbidDeletionIn({ namespace }: Jobs): Promise<void> {
  const rules = rulesFor([jobWatcher]).map((rule) => ({
    ...rule,
    verbs: rule.verbs.filter((verb) => verb !== 'delete'),
  }));
  await grant(cluster, { user, rules, namespaces: [namespace] });
  await eventually(async () => {
    const path = `${collection(jobs, namespace)}/none`;
    expect((await cluster.send('DELETE', path, { impersonate: user })).status).toBe(403);
  });
}
