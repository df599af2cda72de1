import { describe, expect, test } from 'vitest';
import type { Verdict } from '../../../src/kinds/job-watcher/matching.js';
import type { Watcher } from '../../../src/kinds/job-watcher/watcher.js';
import type { KeptJob } from '../../../src/kinds/job-watcher/keep-job.js';
import { completed, job, matchingOf, watcher } from './fixtures.js';

const [a, b] = ['a', 'b'].map((name) => watcher({ completedTTL: '10s', failedTTL: '1h' }, { name }));

describe('Jobs that are judged alike', () => {
  const matching = matchingOf(a!, b!);
  const verdicts = (of: KeptJob): readonly Verdict[] => matching.verdicts(of);

  test('share their verdicts, whenever they have finished', () => {
    expect(verdicts(completed({ name: 'x', endedAt: 1 }))).toBe(
      verdicts(completed({ name: 'y', endedAt: 2 })),
    );
  });

  test('and no others do', () => {
    const alike = verdicts(completed({ name: 'x' }));

    for (const other of [
      job({ name: 'runs' }),
      job({ name: 'failed', ended: 'Failed' }),
      completed({ metadata: { annotations: { 'batch.my.github.com/ttl-after-completed': '11s' } } }),
      completed({ metadata: { annotations: { 'batch.my.github.com/keep': 'true' } } }),
    ]) {
      expect(verdicts(other)).not.toBe(alike);
      expect(verdicts(other)).not.toEqual(alike);
    }
  });
});

test('verdicts that few Jobs have in common are right, however many they are', () => {
  const matching = matchingOf(a!);
  for (let seconds = 10; seconds <= 2010; seconds++) {
    const annotations = { 'batch.my.github.com/ttl-after-completed': `${seconds}s` };
    const verdicts = matching.verdicts(completed({ metadata: { annotations } }));
    expect(verdicts).toEqual([{ watcher: a, ttlSeconds: seconds }]);
  }
});

describe('when watchers change', () => {
  const counted = (name: string, calls: string[]): Watcher => {
    const plain = watcher({ completedTTL: '10s' }, { name });
    return { ...plain, coversJob: (job) => calls.push(`${name} ${job}`) > 0 };
  };

  test('only those that are new are matched with the Jobs, and only in their namespace', () => {
    const calls: string[] = [];
    const [one, two] = [counted('one', calls), counted('two', calls)];
    const other = { ...counted('other', calls), namespace: 'other' };
    const jobs = [completed({ name: 'x' }), completed({ name: 'y', namespace: 'other' })];
    const matching = matchingOf(one, other);
    matching.catchUp(jobs, () => false);
    expect(calls.splice(0)).toEqual(['one x', 'other y']);

    matching.update([one, two, other]);
    matching.catchUp(jobs, () => false);
    expect(calls.splice(0)).toEqual(['two x']);
    expect(matching.verdicts(jobs[0]!).map(({ watcher: { key } }) => key)).toEqual([
      'default/one',
      'default/two',
    ]);

    matching.update([two, other]);
    expect(matching.verdicts(jobs[0]!).map(({ watcher: { key } }) => key)).toEqual(['default/two']);
    expect(calls).toEqual([]);
  });

  test('where it takes long, namespaces take turns', () => {
    const calls: string[] = [];
    const matching = matchingOf(counted('one', calls), { ...counted('other', calls), namespace: 'other' });
    const many = Array.from({ length: 100 }, (_, index) => completed({ name: `x${index}` }));
    let left = 2;
    const waiting = matching.catchUp(
      [...many, completed({ name: 'y', namespace: 'other' })],
      () => --left === 0,
    );
    expect(calls).toEqual(['one x99', 'other y']);
    expect([...waiting]).toEqual(['default']);
  });
});
