import { beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { keepJob } from '../../../src/kinds/job-watcher/job.js';
import { at, liveJob } from './fixtures.js';
import { World } from './world.js';

/** What other tools that delete Jobs get wrong, each as a test that this one doesn't. */
let world: World;

beforeEach(() => {
  world = new World();
});

const both = { completedTTL: '10s', failedTTL: '1h' };
const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: at(0) });

describe('kube-cleanup-operator', () => {
  test('a Job that completed after a retry has completed: it counts its failed Pods as a failure too', () => {
    world.setWatcher(both);
    world.addJob({ status: { succeeded: 1, failed: 1, conditions: [condition('Complete')] } });
    expect(world.goTo(10)).toEqual(['pi']);
  });

  test('a Job that failed with one success has failed: it takes the TTL of a success', () => {
    world.setWatcher(both);
    world.addJob({ status: { succeeded: 1, failed: 3, conditions: [condition('Failed')] } });
    expect(world.goTo(3599)).toEqual([]);
    expect(world.goTo(3600)).toEqual(['pi']);
  });
});

describe('k8s-cleaner', () => {
  test('a deletion that failed isn’t counted as one: it counts before it tries', () => {
    world.setWatcher(both);
    world.addJob({ ended: 'Complete' });
    world.refuse = () => new OperatorError({ reason: 'Forbidden', message: 'No' });
    world.now = 10;
    world.turn();
    expect(world.samples.filter(({ metric }) => metric === 'reconstruct_jobs_deleted_total')).toEqual([]);
    expect(world.status().lastRun).toMatchObject({ deleted: 0, failed: 1 });
  });

  test('the Pods go with the Job: it sends no policy, which orphans them', () => {
    world.setWatcher(both);
    world.addJob({ ended: 'Complete' });
    world.now = 10;
    world.turn();
    expect(world.plan?.sweep?.steps[0]?.propagation).toBe('Background');
  });
});

describe('kyverno', () => {
  test('one Job that can’t be deleted never stops the others, however often it fails', () => {
    world.setWatcher({ ...both, frequency: '1s' });
    world.addJob({ name: 'stuck', ended: 'Complete', endedAt: -100 });
    world.refuse = ({ metadata }) =>
      metadata.name === 'stuck' ? new OperatorError({ reason: 'Refused', message: 'No' }) : undefined;
    for (let round = 0; round < 50; round++) {
      world.addJob({ name: `job-${round}`, ended: 'Complete', endedAt: world.now });
      expect(world.goTo(world.now + 10)).toEqual([`job-${round}`]);
    }
  });

  const refused = new OperatorError({ reason: 'Invalid', message: 'No', retry: 'onChange' });

  test('more Jobs that can’t be deleted than a plan holds never stop the others, and are tried once', () => {
    world.setWatcher({ ...both, frequency: '1s' });
    for (let index = 0; index < 1100; index++)
      world.addJob({ name: `stuck-${index}`, ended: 'Complete', endedAt: -100 });
    world.addJob({ name: 'other', ended: 'Complete', endedAt: -50 });
    world.refuse = ({ metadata }) => (metadata.name.startsWith('stuck') ? refused : undefined);
    world.turn();
    expect(world.turn()).toEqual(['other']);
    expect(world.condition('Stalled')).toBe('True Invalid');
    for (let index = 0; index < 1000; index++)
      world.addJob({ name: `more-${index}`, ended: 'Complete', endedAt: -20 });
    expect(world.turn()).toHaveLength(1000);
    expect(world.condition('Stalled')).toBe('True Invalid');
    // It is the engine that asks again, when that may be of use.
    world.goTo(10);
    expect(world.next).toBeUndefined();
  });

  test('nor where limits let through no more than fail', () => {
    world.setWatcher({ ...both, frequency: '15s', limits: { maxPerRun: 1, mode: 'Throttle' } });
    world.addJob({ name: 'stuck', ended: 'Complete', endedAt: -100 });
    world.addJob({ name: 'other', ended: 'Complete', endedAt: -50 });
    world.refuse = ({ metadata }) => (metadata.name === 'stuck' ? refused : undefined);
    world.turn();
    expect(world.condition('Stalled')).toBe('True Invalid');
    expect(world.goTo(15)).toEqual(['other']);
    // As long as one can't be deleted, it stays so.
    expect(world.condition('Stalled')).toBe('True Invalid');
    world.jobs.clear();
    world.goTo(60);
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('nor where Abort would count them with the others', () => {
    world.setWatcher({ ...both, frequency: '15s', limits: { maxPerRun: 2 } });
    world.refuse = ({ metadata }) => (metadata.name.startsWith('stuck') ? refused : undefined);
    for (let index = 0; index < 3; index++) {
      world.addJob({ name: `stuck-${index}`, ended: 'Complete', endedAt: world.now - 100 });
      expect(world.goTo(world.now + 20)).toEqual([]);
      expect(world.condition('Stalled')).toBe('True Invalid');
    }
    const gone: string[] = [];
    for (let index = 0; index < 5; index++) {
      world.addJob({ name: `good-${index}`, ended: 'Complete', endedAt: world.now - 50 });
      gone.push(...world.goTo(world.now + (index % 2 === 0 ? 0 : 20)));
    }
    gone.push(...world.goTo(world.now + 20));
    expect(gone).toEqual(['good-0', 'good-1', 'good-2', 'good-3', 'good-4']);
    expect(world.condition('Stalled')).toBe('True Invalid');

    for (let index = 0; index < 3; index++)
      world.addJob({ name: `many-${index}`, ended: 'Complete', endedAt: world.now - 50 });
    expect(world.goTo(world.now + 60)).toEqual([]);
    expect(world.condition('Stalled')).toBe('True BlastRadiusExceeded');
  });

  test('one that is refused for good is told and counted once, until it changes', () => {
    world.setWatcher(both);
    world.addJob({ ended: 'Complete', endedAt: -100 });
    world.refuse = () => refused;
    const errors = (): number =>
      world.samples.filter(({ metric }) => metric === 'reconstruct_jobs_delete_errors_total').length;
    world.turn();
    expect([errors(), world.statusWrites.length]).toEqual([1, 1]);
    expect(world.condition('Stalled')).toBe('True Invalid');
    for (world.now = 1; world.now < 1000; world.now += 7) {
      world.turn();
      expect([errors(), world.statusWrites, world.events]).toEqual([0, [], []]);
    }
    expect(world.status().lastRun).toMatchObject({ matched: 1, failed: 1 });

    const changedAt = world.now;
    world.addJob({ ended: 'Complete', endedAt: -100 });
    world.turn();
    expect(errors()).toBe(1);
    world.goTo(2000);
    expect(world.status()).toMatchObject({ lastStarted: at(changedAt), lastRun: { failed: 1 } });
    world.refuse = () => undefined;
    expect(world.turn()).toEqual(['pi']);
    world.goTo(3000);
    expect(world.status().lastRun).toMatchObject({ matched: 1, deleted: 1, failed: 0 });
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('it is deleted only as it was judged: it sends no preconditions', () => {
    world.setWatcher(both);
    world.addJob({ ended: 'Complete', uid: 'judged' });
    world.now = 10;
    world.turn();
    const { metadata } = world.plan!.sweep!.steps[0]!.object;
    expect(metadata).toMatchObject({ uid: 'judged', resourceVersion: expect.any(String) as string });
  });
});

test('janitors in general: of a Job as large as can be next to nothing is kept', () => {
  const template = { spec: { containers: [{ args: ['x'.repeat(1_000_000)] }] } };
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(200_000) };
  const live = liveJob({
    ended: 'Complete',
    spec: { template },
    metadata: { annotations, managedFields: [{}] },
  });
  expect(JSON.stringify(keepJob(live)).length).toBeLessThan(300);
});

test('GitOps tools and parents that make it again: such Jobs stay, and it is counted why', () => {
  world.setWatcher(both);
  const owner = { apiVersion: 'awx.ansible.com/v1', kind: 'Task', name: 'o', uid: 'o', controller: true };
  world.addJob({
    name: 'argo',
    ended: 'Complete',
    metadata: { annotations: { 'argocd.argoproj.io/hook': 'Sync' } },
  });
  world.addJob({
    name: 'flux',
    ended: 'Complete',
    metadata: { labels: { 'kustomize.toolkit.fluxcd.io/name': 'a' } },
  });
  world.addJob({ name: 'owned', ended: 'Complete', metadata: { ownerReferences: [owner] } });
  expect(world.goTo(1000)).toEqual([]);
  expect(world.status().lastRun?.skipped).toEqual({ Owned: 1, Tracked: 2 });
});
