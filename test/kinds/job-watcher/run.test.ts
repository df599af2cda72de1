import { expect, test } from 'vitest';
import type { Change } from '../../../src/contract/change.js';
import { OperatorError } from '../../../src/contract/error.js';
import { refOf } from '../../../src/contract/object.js';
import type { DueJob } from '../../../src/kinds/job-watcher/pass.js';
import { outcomeOf } from '../../../src/kinds/job-watcher/report.js';
import { completed, START, watcher } from './fixtures.js';

const sweeper = watcher({ completedTTL: '1s' });

function dueJob(name: string): DueJob {
  const finish = { outcome: 'completed', at: START } as const;
  return { job: completed({ name }), watcher: sweeper, finish, dueAt: START + 1000 };
}

test('only what was deleted counts as deleted, and only what was refused as failed', () => {
  const error = new OperatorError({ reason: 'Forbidden', message: 'No' });
  const answers: Record<string, Omit<Change, 'ref'>> = {
    done: { action: 'deleted' },
    'gone-already': { action: 'unchanged' },
    changed: { action: 'skipped', skippedFor: 'changed' },
    paced: { action: 'skipped', skippedFor: 'paced' },
    refused: { action: 'failed', error },
  };
  const due = Object.keys(answers).map(dueJob);
  const changes = due.map(({ job }) => ({ ref: refOf(job), ...answers[job.metadata.name]! }));
  const other = { ref: refOf(completed({ name: 'of-another-watcher' })), action: 'deleted' } as const;

  const { deleted, failed } = outcomeOf(due, [...changes, other]);

  expect(deleted.map(({ job }) => job.metadata.name)).toEqual(['done']);
  expect(failed.map(({ due: { job } }) => job.metadata.name)).toEqual(['refused']);
  expect(outcomeOf(due, [])).toEqual({ deleted: [], failed: [] });
});
