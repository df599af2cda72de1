import { beforeAll, describe, expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import type { AnyObject } from '../../src/contract/object.js';
import { rulesFor } from '../../src/install/rules.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import {
  collection,
  deny,
  events,
  eventually,
  grant,
  installCrd,
  jobs,
  kubeconfigOf,
  pods,
} from '../support/cluster.js';
import { Jobs } from '../support/jobs.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { openCluster } from '../support/test-clusters.js';

/** How much a JobWatcher deletes, where, with which rights, and what it reports. It has Roles alone, in five namespaces. */
const user = 'operator-48';
const cluster = openCluster();
/** The namespace of most tests, one of a neighbour, one where nothing may be deleted, one of the system, the operator's own. */
let home: Jobs;
let neighbour: Jobs;
let barred: Jobs;
let system: Jobs;
let ops: Jobs;
let controller: RunningController;
let metrics: string;
let deletions: (prefix?: string) => Promise<string[]>;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  const made = ['home', 'neighbour', 'barred', 'kube', 'ops'].map(
    async (purpose) => new Jobs(cluster, await cluster.makeNamespace(purpose)),
  );
  [home, neighbour, barred, system, ops] = (await Promise.all(made)) as [Jobs, Jobs, Jobs, Jobs, Jobs];
  metrics = `127.0.0.1:${(await choosePorts()).scheduler}`;
  controller = await startController({
    ...{ cluster, user, kinds: [jobWatcher] },
    namespaces: [home, neighbour, barred, system, ops].map(({ namespace }) => namespace),
    args: ['--metrics-bind-address', metrics],
    // In the operator's own namespace, watchers may act in all namespaces.
    kubeconfig: await kubeconfigOf(cluster, user, { namespace: ops.namespace }),
  });
  await forbidDeletionIn(barred);
  deletions = await home.deletionsFromNowOn(user);
});

interface Told extends AnyObject {
  readonly reason: string;
  readonly eventTime: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

async function eventsOn(kind: string, name: string): Promise<Told[]> {
  const all = await cluster.list<Told>(events, home.namespace);
  return all.filter(({ regarding }) => regarding.kind === kind && regarding.name === name);
}

test('rule 5: of a name that comes back, the third Job stays, and that is reported once', async () => {
  await home.watch('loop', { completedTTL: '0s' });
  for (let time = 0; time < 2; time++) {
    const { metadata } = await home.finished('loop-job');
    await controller.logged(({ uid, outcome }) => uid === metadata.uid && outcome === 'deleted');
    await home.left('loop-');
  }
  await home.finished('loop-job');
  await home.told('loop', { lastRun: { skipped: { Recreated: 1 } } });
  await home.finished('loop-other');
  await home.left('loop-', 'loop-job');

  await eventually(async () => {
    const told = (await eventsOn('JobWatcher', 'loop')).filter(({ reason }) => reason === 'Recreated');
    expect(told).toMatchObject([{ type: 'Warning' }]);
    expect(told[0]).not.toHaveProperty('series.count');
  });
});

describe('rule 6: deletions', () => {
  test('take the Pods along, and in the foreground wait for them, without being sent again', async () => {
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
      expect(await home.uidOf('front-other')).toBeUndefined();
    });
    expect(await deletions('front-')).toEqual(['front-job 200', 'front-other 200']);
    await cluster.merge(place, { metadata: { finalizers: null } });
    await eventually(async () => {
      expect(await home.uidOf('front-job')).toBeUndefined();
      expect(await cluster.find(place)).toBeUndefined();
    });
  });

  test('are paced to ten a second, oldest deadline first', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `pace-${String(n).padStart(2, '0')}`);
    await Promise.all(names.map((name, n) => home.finished(name, { ago: 7200 - 10 * n })));
    await home.watch('pace', { completedTTL: '0s' });
    await home.left('pace-');
    expect(await deletions('pace-')).toEqual(names.map((name) => `${name} 200`));
    const [first, last] = await eventually(async () => {
      const times = [names[0]!, names.at(-1)!].map(async (name) => {
        const told = (await eventsOn('Job', name)).find(({ reason }) => reason === 'TTLExpired');
        return Date.parse(told!.eventTime);
      });
      return (await Promise.all(times)) as [number, number];
    });
    // Of the thirty, ten may go at once.
    expect(last - first).toBeGreaterThan(1_900);
  });

  test.each(['Forbidden', 'Invalid'])('that a policy refuses as %s stop no others', async (reason) => {
    const name = `firm${reason.toLowerCase()}`;
    const path = `${collection(jobs, home.namespace)}/${name}-job`;
    await home.finished(`${name}-job`);
    const lift = await deny(cluster, {
      ...{ namespace: home.namespace, group: 'batch', resource: 'jobs', operation: 'DELETE', reason },
      ...{ expression: `oldObject.metadata.name != '${name}-job'`, message: 'it is evidence' },
      probe: () => cluster.send('DELETE', path, { query: { dryRun: 'All' } }),
    });
    await home.watch(name, { completedTTL: '0s' });
    await home.condition(name, { type: 'Stalled', status: 'True', reason: 'Refused' });
    await home.told(name, { lastRun: { deleted: 0, failed: 1 } });
    await home.finished(`${name}-other`);
    await home.left(`${name}-`, `${name}-job`);
    await home.condition(name, { type: 'Stalled', status: 'True', reason: 'Refused' });
    // Not again for ten minutes, as long as it is the same object.
    expect(await deletions(`${name}-job`)).toHaveLength(1);

    await lift();
    await cluster.merge(home.place(`${name}-job`), { metadata: { labels: { touched: 'yes' } } });
    await home.left(`${name}-`);
    await home.condition(name, { type: 'Ready', status: 'True' });
  });

  test('that aren’t permitted in one namespace are reported, and the others go on', async () => {
    for (const name of ['rights-a', 'rights-b']) await barred.finished(name);
    await home.finished('rights-c');
    const everywhere = [`^${home.namespace}$`, `^${barred.namespace}$`];
    await ops.watch('rights', { completedTTL: '0s', namespacePatterns: everywhere });

    await home.left('rights-');
    const stalled = { type: 'Stalled', status: 'True', reason: 'Forbidden' } as const;
    expect((await ops.condition('rights', stalled)).message).toContain(barred.namespace);
    await ops.told('rights', { lastRun: { namespaces: 2, matched: 3, deleted: 1, failed: 2 } });
    await home.finished('rights-d');
    await home.left('rights-');
    expect(await barred.names('rights-')).toHaveLength(2);
    // The right is missing for both.
    expect((await deletions('rights-')).filter((line) => line.endsWith('403'))).toHaveLength(1);
    await cluster.delete(ops.watcherPlace('rights'));
  });
});

describe('rule 7: limits', () => {
  test('Abort deletes nothing beyond an exact share, and goes on once it is kept to', async () => {
    await Promise.all(Array.from({ length: 17 }, (_, n) => home.create(`abort-${n}`)));
    for (const name of ['abort-x', 'abort-y']) await home.finished(name);
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
    await home.adjust('few', { completedTTL: '0s' });
    await home.left('few-');
    const order = ['few-b', 'few-e', 'few-c', 'few-d', 'few-a'];
    expect(await deletions('few-')).toEqual(order.map((name) => `${name} 200`));
    await home.told('few', { lastRun: { deleted: 1 } });
  });
});

describe('rule 11: scope', () => {
  test('a watcher acts in its own namespace, and reports where its patterns want more', async () => {
    for (const place of [home, neighbour]) await place.finished('scope-job');
    await home.watch('scope', { completedTTL: '0s', namespacePatterns: ['.'] });
    await home.left('scope-');
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
    for (const place of [home, neighbour]) await place.left('wide-');
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

test('rule 16: metrics count what was deleted, failed, skipped and waits', async () => {
  for (const as of ['Complete', 'Failed'] as const) await home.finished(`gauge-${as.toLowerCase()}`, { as });
  await home.create('gauge-suspended');
  await home.watch('gauge', { completedTTL: '0s', failedTTL: '0s' });
  await home.left('gauge-', 'gauge-suspended');
  const done = (await deletions()).filter((line) => line.endsWith('200'));
  await eventually(async () => {
    const lines = (await (await fetch(`http://${metrics}/metrics`)).text()).split('\n');
    const value = (name: string): number =>
      Number(
        lines
          .find((line) => line.startsWith(`${name} `))
          ?.split(' ')
          .at(-1) ?? 0,
      );
    const [completed, failed] = ['completed', 'failed'].map((outcome) =>
      value(`reconstruct_jobs_deleted_total{outcome="${outcome}"}`),
    ) as [number, number];
    expect({ failed, all: completed + failed }).toEqual({ failed: 1, all: done.length });
    expect(value('reconstruct_jobs_deletion_lag_seconds_count')).toBe(done.length);
    expect(value('reconstruct_jobs_skipped{reason="NotFinished"}')).toBeGreaterThan(0);
    expect(value('reconstruct_jobs_delete_errors_total{reason="Forbidden"}')).toBe(2);
    expect(value('reconstruct_jobs_delete_errors_total{reason="Refused"}')).toBe(2);
    expect(value('reconstruct_jobs_pending')).toBe(0);
  });
});

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
