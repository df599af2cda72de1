import { expect, test } from 'vitest';
import type { KeptJob } from '../../../src/kinds/job-watcher/keep-job.js';
import { pass } from '../../../src/kinds/job-watcher/pass.js';
import type { PassInput, WatcherPass } from '../../../src/kinds/job-watcher/pass.js';
import type { Watcher } from '../../../src/kinds/job-watcher/watcher.js';
import { completed, job, matchingOf, START, watcher } from './fixtures.js';

/** What a pass finds, so many seconds after the start. */
function look(
  watchers: readonly Watcher[],
  jobs: readonly KeptJob[],
  now: number,
  more: Partial<PassInput> = {},
): WatcherPass[] {
  const matching = matchingOf(...watchers);
  const found = pass({
    ...{ watchers, jobs, now: START + now * 1000, verdicts: (one) => matching.verdicts(one) },
    ...{ recreatedUntil: () => undefined, hasFailed: () => false, opensAt: () => -Infinity, ...more },
  });
  return watchers.map((one) => found.get(one)!);
}

const sweeper = watcher({ completedTTL: '10s', frequency: '15s' });

test('the next time is that of the earliest, wherever it stands', () => {
  const jobs = [20, 5, 30].map((endedAt) => completed({ name: `job-${endedAt}`, endedAt }));

  expect(look([sweeper], jobs, 0)[0]?.nextDeletion).toBe(START + 15_000);
  expect(look([sweeper], [...jobs].reverse(), 0)[0]?.nextDeletion).toBe(START + 15_000);
  expect(look([sweeper], [], 0)[0]?.nextDeletion).toBeUndefined();
});

test('what waits for the next run is due when that may begin', () => {
  const limited = watcher({ completedTTL: '10s', limits: { maxPerRun: 1 } });

  const [found] = look([limited], [completed()], 100, { opensAt: () => START + 107_000 });

  expect(found).toMatchObject({ due: [], nextDeletion: START + 107_000, judgedAgainAt: START + 107_000 });
  expect(found?.skipped).toEqual(new Map([['Limited', 1]]));
});

test('overlaps are those of all Jobs, not only of the first', () => {
  const named = (name: string, pattern: string, dryRun = false): Watcher =>
    watcher({ jobNamePatterns: [pattern], dryRun }, { name });
  const watchers = [
    named('a', 'x'),
    named('b', 'x|y'),
    named('c', 'y'),
    named('dry', 'y', true),
    named('e', 'z'),
  ];
  const jobs = ['x', 'y', 'x', 'z'].map((name, index) => job({ name: `${name}${index}` }));

  const found = look(watchers, jobs, 0).map(({ overlaps }) => [...overlaps.names].sort());

  const [a, b, c] = ['default/a', 'default/b', 'default/c'] as const;
  expect(found).toEqual([[b], [a, c], [b], [b, c], []]);
});

test('counts namespaces, Jobs, and those that have finished', () => {
  const everywhere = watcher({ namespacePatterns: ['.'] }, { namespace: 'ops' });
  const jobs = [completed(), job({ name: 'b' }), job({ name: 'c', namespace: 'other', ended: 'Failed' })];

  expect(look([everywhere], jobs, 0)[0]).toMatchObject({ matched: 3, finished: 2, due: [] });
  expect(look([everywhere], jobs, 0)[0]?.namespaces.size).toBe(2);
});

test('counts right where no two Jobs are judged alike, however many they are', () => {
  const watchers = ['a', 'b'].map((name) => watcher({ completedTTL: '10s' }, { name }));
  const annotations = (seconds: number) => ({ 'batch.my.github.com/ttl-after-completed': `${seconds}s` });
  const jobs = Array.from({ length: 2500 }, (_, index) =>
    completed({ name: `job-${index}`, metadata: { annotations: annotations(index) } }),
  );

  const [a, b] = look(watchers, [...jobs, job()], 1000);

  // The TTL is lengthened and never shortened; of equals, the first by name decides.
  expect(a).toMatchObject({ matched: 2501, finished: 2500, nextDeletion: START + 1_001_000 });
  expect(a?.due).toHaveLength(1001);
  expect(a?.skipped).toEqual(
    new Map([
      ['NotDue', 1499],
      ['NotFinished', 1],
    ]),
  );
  expect(b).toMatchObject({
    matched: 2501,
    finished: 2500,
    due: [],
    overlaps: { names: new Set(['default/a']), most: 1 },
  });
  expect(b?.skipped).toEqual(
    new Map([
      ['DecidedByOther', 2500],
      ['NotFinished', 1],
    ]),
  );
});
