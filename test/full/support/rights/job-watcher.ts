import { expect } from 'vitest';
import { jobWatcher as kind } from '../../../../src/kinds/job-watcher/kind.js';
import { losing } from '../../../scenarios/support/faults.js';
import { watches } from '../../../scenarios/support/proxied-request.js';
import { eventually } from '../eventually.js';
import { Jobs } from '../jobs.js';
import type { Walk, WalkedKind } from './walk.js';

/** Deletes Jobs, tells of it, and finds out that a Job has changed and that a JobWatcher has gone. */
export const jobWatcherWalk: WalkedKind = { kind, steps, byAdmission: [] };

async function steps(walk: Walk): Promise<void> {
  const { cluster, namespace, proxy } = walk;
  const jobs = new Jobs(cluster, namespace);
  await jobs.watch('one', { completedTTL: '0s' });
  await jobs.finished('one-a');
  const { lastStarted } = await jobs.told('one', { lastRun: { deleted: 1 } });
  // Runs are told apart by the second in which they start.
  await eventually(() => {
    expect(Date.now()).toBeGreaterThan(Date.parse(lastStarted!) + 2_000);
  });
  await jobs.finished('one-b');
  await walk.toldTwice('one', 'Deleted');

  // It has changed, and no watch tells so.
  await jobs.finished('changed-a');
  await jobs.watch('changed', { completedTTL: '10h' });
  await jobs.told('changed', { lastRun: { matched: 1 } });
  const rule = proxy.onEvents(watches('jobs'), losing('changed-a'));
  await jobs.edit('changed-a', { metadata: { annotations: { 'example.com/seen': 'no' } } });
  await jobs.adjust('changed', { completedTTL: '0s' });
  await jobs.left('changed-', []);
  rule.remove();

  // It is gone, and no watch tells so.
  await jobs.watch('gone', { completedTTL: '0s' });
  await jobs.condition('gone', { type: 'Ready', status: 'True' });
  proxy.onEvents(watches('jobwatchers'), losing('gone'));
  await cluster.delete(jobs.watcherPlace('gone'));
  await jobs.finished('gone-a');
  await jobs.left('gone-', []);
}
