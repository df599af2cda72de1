import { describe, expect, test } from 'vitest';
import type { Verdict } from '../../../src/kinds/job-watcher/judge.js';
import type { KeptJob } from '../../../src/kinds/job-watcher/keep-job.js';
import { Matching } from '../../../src/kinds/job-watcher/matching.js';
import { VerdictLists } from '../../../src/kinds/job-watcher/verdict-lists.js';
import { completed, job, settings, watcher } from './fixtures.js';

const [a, b] = ['a', 'b'].map((name) => watcher({ completedTTL: '10s', failedTTL: '1h' }, { name }));
const watchers = [a!, b!];

describe('lists of verdicts', () => {
  const lists: readonly (readonly Verdict[])[] = [
    [{ watcher: a!, ttlSeconds: 1 }],
    [{ watcher: b!, ttlSeconds: 1 }],
    [{ watcher: a!, ttlSeconds: 11 }],
    [{ watcher: a!, stays: 'NotFinished' }],
    [{ watcher: a!, stays: 'DecidedByOther' }],
    [
      { watcher: a!, ttlSeconds: 1 },
      { watcher: b!, stays: 'DecidedByOther' },
    ],
    [
      { watcher: b!, stays: 'DecidedByOther' },
      { watcher: a!, ttlSeconds: 1 },
    ],
  ];

  test('that say the same are one, and no others', () => {
    const known = new VerdictLists(watchers);
    const shared = lists.map((list) => known.shared(list));

    expect(new Set(shared).size).toBe(lists.length);
    for (const [index, list] of lists.entries()) {
      expect(known.shared(list.map((verdict) => ({ ...verdict })))).toBe(shared[index]);
      expect(shared[index]).toEqual(list);
    }
  });

  test('that few have in common are forgotten before they are many, and are right ever after', () => {
    const known = new VerdictLists(watchers);
    const of = (ttlSeconds: number): readonly Verdict[] => known.shared([{ watcher: a!, ttlSeconds }]);
    const first = of(0);

    for (let ttlSeconds = 1; ttlSeconds <= 1000; ttlSeconds++)
      expect(of(ttlSeconds)).toEqual([{ watcher: a, ttlSeconds }]);

    expect(of(0)).not.toBe(first);
    expect(of(0)).toEqual(first);
  });
});

describe('Jobs that are judged alike', () => {
  const matching = new Matching(watchers, settings);
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
