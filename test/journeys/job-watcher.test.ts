import { beforeAll, expect, test } from 'vitest';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import type { JobWatcherSpec } from '../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../src/kinds/job-watcher/spec.js';
import { events, eventually } from '../support/cluster.js';
import { summary, writes } from '../support/requests.js';
import { cluster, logFromNowOn, operator } from './support/operator.js';

const jobs = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });
const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });
let namespace: string;

beforeAll(async () => {
  namespace = await cluster.makeNamespace('job-watcher');
});

/** The Job of the tutorial, whose Pods complete by themselves here. */
async function createPi(name: string, metadata: object = {}): Promise<AnyObject> {
  const container = {
    name: 'pi',
    image: 'perl:5.34.0',
    command: ['perl', '-Mbignum=bpi', '-wle', 'print bpi(2000)'],
  };
  return cluster.create(jobs, {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace, ...metadata } },
    spec: { template: { spec: { containers: [container], restartPolicy: 'Never' } }, backoffLimit: 4 },
  });
}

async function watch(name: string, spec: JobWatcherSpec): Promise<void> {
  const { apiVersion, kind } = jobWatcher.type;
  await cluster.create(jobWatcher.type, { ...{ apiVersion, kind, metadata: { name, namespace }, spec } });
}

async function watcher(name: string): Promise<LiveWatcher> {
  return cluster.get<LiveWatcher & AnyObject>({ type: jobWatcher.type, namespace, name });
}

async function jobNames(): Promise<string[]> {
  return (await cluster.list(jobs, namespace)).map(({ metadata }) => metadata.name).sort();
}

async function completed(name: string): Promise<void> {
  await eventually(async () => {
    const job = await cluster.get({ type: jobs, namespace, name });
    expect(job.status).toMatchObject({ succeeded: 1, completionTime: expect.any(String) as string });
  });
}

test('the Job of the tutorial is deleted with its Pods after its TTL, and what is kept stays', async () => {
  await createPi('pi');
  await createPi('pi-kept', { annotations: { 'batch.my.github.com/keep': 'true' } });
  await createPi('other');
  await Promise.all(['pi', 'pi-kept', 'other'].map(completed));
  const pi = await cluster.get({ type: jobs, namespace, name: 'pi' });
  const requests = await operator.requestsFromNowOn(namespace);
  const log = logFromNowOn();

  await watch('sweeper', {
    ...{ namespacePatterns: [namespace], jobNamePatterns: ['pi'], frequency: '1s' },
    ...{ completedTTL: '3s', failedTTL: '1h' },
  });

  await eventually(async () => {
    expect(await jobNames()).toEqual(['other', 'pi-kept']);
    const owners = (await cluster.list(pods, namespace)).map(
      ({ metadata }) => metadata.ownerReferences?.[0]?.name,
    );
    expect(owners.sort()).toEqual(['other', 'pi-kept']);
    const { status } = await watcher('sweeper');
    expect(status).toMatchObject({
      lastRun: { matched: 2, finished: 2, deleted: 1, skipped: { KeepAnnotation: 1 } },
    });
  });
  const line = await log.logged(({ uid }) => uid === pi.metadata.uid);
  expect(line).toMatchObject({
    ...{ namespace, name: 'pi', outcome: 'deleted', watcher: `${namespace}/sweeper` },
    ...{ finish: 'completed', ttlSeconds: 3 },
  });
  await eventually(async () => {
    const told = await cluster.list<AnyObject & { regarding: ObjectRef; reason: string }>(events, namespace);
    const ours = told.filter(({ reason }) => ['TTLExpired', 'Deleted'].includes(reason));
    const seen = ours.map(({ regarding, reason }) => `${regarding.kind} ${regarding.name} ${reason}`);
    expect(seen.sort()).toEqual(['Job pi TTLExpired', 'JobWatcher sweeper Deleted']);
  });
  const deletions = writes(await requests()).filter(({ verb }) => verb === 'delete');
  expect(deletions.map(summary)).toEqual([`delete jobs ${namespace}/pi 200`]);
});

test('nothing is asked for while nothing is due', async () => {
  const { status } = await watcher('sweeper');
  const requests = await operator.requestsFromNowOn(namespace);
  // Wakes the controller, and is none of its concern; once it is seen, all before it is.
  await createPi('unmatched');
  await completed('unmatched');
  await watch('probe', { jobNamePatterns: ['^none$'] });
  await eventually(async () => {
    expect((await watcher('probe')).status?.conditions).toBeDefined();
  });

  expect(
    writes(await requests())
      .map(summary)
      .filter((one) => !one.includes('events')),
  ).toEqual([`patch jobwatchers/status ${namespace}/probe 200`]);
  expect((await watcher('sweeper')).status).toEqual(status);
});

test('a Job that changes between judgement and deletion is judged again', async () => {
  const ttl = 'batch.my.github.com/ttl-after-completed';
  await createPi('pi-edited', { annotations: { [ttl]: '10m' } });
  await completed('pi-edited');
  const place = { type: jobs, namespace, name: 'pi-edited' };
  const nextDeletion = async (): Promise<number> => {
    const { status } = await watcher('sweeper');
    expect(status?.lastRun?.skipped).toEqual({ KeepAnnotation: 1, NotDue: 1 });
    return Date.parse(status?.nextDeletion ?? '');
  };
  const first = await eventually(nextDeletion);

  await cluster.merge(place, { metadata: { annotations: { [ttl]: '1h' } } });
  await eventually(async () => {
    expect((await nextDeletion()) - first).toBe(50 * 60_000);
  });
  expect(await jobNames()).toContain('pi-edited');

  await cluster.merge(place, { metadata: { annotations: { [ttl]: null } } });
  await eventually(async () => {
    expect(await jobNames()).not.toContain('pi-edited');
  });
});
