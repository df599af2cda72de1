import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allowance, newest } from '../../../src/kinds/job-watcher/pass.js';
import type { KeptJob } from '../../../src/kinds/job-watcher/keep-job.js';
import type { Limits } from '../../../src/kinds/job-watcher/spec.js';
import { at, completed, job } from './fixtures.js';

describe('limits', () => {
  const allow = (limits: Limits | undefined, due: number, matched: number, failed = 0) =>
    allowance(limits, { due, failed, matched });

  test('without any all are allowed', () => {
    expect(allow(undefined, 7, 7)).toEqual({ count: 7, exceeded: false });
  });

  test('a share is exact', () => {
    expect(allow({ maxPercent: 10 }, 100, 1000)).toEqual({ count: 100, exceeded: false });
    expect(allow({ maxPercent: 10 }, 101, 1000)).toEqual({ count: 0, exceeded: true });
    expect(allow({ maxPercent: 10, mode: 'Throttle' }, 109, 1000)).toEqual({
      count: 100,
      exceeded: false,
    });
    expect(allow({ maxPercent: 29 }, 29, 100)).toEqual({ count: 29, exceeded: false });
    expect(allow({ maxPercent: 100 }, 7, 7)).toEqual({ count: 7, exceeded: false });
  });

  test('Throttle lets through what is within them, Abort nothing', () => {
    expect(allow({ maxPerRun: 3, mode: 'Throttle' }, 5, 9)).toEqual({ count: 3, exceeded: false });
    expect(allow({ maxPerRun: 3, mode: 'Abort' }, 5, 9)).toEqual({ count: 0, exceeded: true });
    expect(allow({ maxPerRun: 3 }, 5, 9)).toEqual({ count: 0, exceeded: true });
    expect(allow({ maxPerRun: 5, maxPercent: 20, mode: 'Throttle' }, 5, 10)).toEqual({
      count: 2,
      exceeded: false,
    });
  });

  test('where not even one is allowed, that is told and not waited for', () => {
    expect(allow({ maxPercent: 10, mode: 'Throttle' }, 1, 9)).toEqual({ count: 0, exceeded: true });
  });

  test('what has failed exceeds nothing, and takes what room is left', () => {
    expect(allow({ maxPerRun: 3 }, 5, 9, 2)).toEqual({ count: 3, exceeded: false });
    expect(allow({ maxPerRun: 3 }, 5, 9, 4)).toEqual({ count: 3, exceeded: false });
    expect(allow({ maxPerRun: 3 }, 5, 9, 1)).toEqual({ count: 0, exceeded: true });
    expect(allow({ maxPercent: 10 }, 2, 9, 2)).toEqual({ count: 0, exceeded: false });
    expect(allow({ maxPercent: 10, mode: 'Throttle' }, 2, 9, 1)).toEqual({ count: 0, exceeded: true });
  });

  test('neither is ever gone beyond, and as many are allowed as can be', () => {
    const limits = fc.record(
      {
        maxPerRun: fc.integer({ min: 1, max: 50 }),
        maxPercent: fc.integer({ min: 1, max: 100 }),
        mode: fc.constant('Throttle' as const),
      },
      { requiredKeys: ['mode'] },
    );
    fc.assert(
      fc.property(limits, fc.nat(300), fc.nat(300), (given, due, others) => {
        const matched = due + others;
        const { count } = allow(given, due, matched);
        const fits = (jobs: number): boolean =>
          jobs <= (given.maxPerRun ?? jobs) && jobs * 100 <= (given.maxPercent ?? 100) * matched;

        expect(fits(count)).toBe(true);
        expect(count === due || !fits(count + 1)).toBe(true);
      }),
    );
  });
});

describe('keepLast', () => {
  const names = (kept: ReadonlySet<KeptJob>): string[] =>
    [...kept].map(({ metadata }) => metadata.name).sort();
  const owned = (uid: string) => ({
    metadata: {
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: uid, uid, controller: true }],
    },
  });
  const labelled = (value: string) => ({ metadata: { labels: { app: value } } });

  test('keeps the newest by outcome', () => {
    const jobs = [
      completed({ name: 'a', endedAt: 1 }),
      completed({ name: 'b', endedAt: 3 }),
      completed({ name: 'c', endedAt: 2 }),
      job({ name: 'd', ended: 'Failed', endedAt: 9 }),
      job({ name: 'e' }),
    ];
    expect(names(newest({ completed: 2 }, jobs))).toEqual(['b', 'c']);
    expect(names(newest({ completed: 1, failed: 1 }, jobs))).toEqual(['b', 'd']);
    expect(names(newest({ completed: 0 }, jobs))).toEqual([]);
  });

  test('of each controller, else of each namespace and value of the label', () => {
    const jobs = [
      completed({ name: 'a1', endedAt: 1, ...owned('a') }),
      completed({ name: 'a2', endedAt: 2, ...owned('a') }),
      completed({ name: 'b1', endedAt: 0, ...owned('b') }),
      completed({ name: 'x1', endedAt: 1, ...labelled('x') }),
      completed({ name: 'x2', endedAt: 2, ...labelled('x') }),
      completed({ name: 'y1', endedAt: 0, ...labelled('y') }),
      completed({ name: 'n1', endedAt: 0 }),
      completed({ name: 'o1', endedAt: 0, namespace: 'other' }),
    ];
    expect(names(newest({ completed: 1, groupByLabel: 'app' }, jobs))).toEqual([
      'a2',
      'b1',
      'n1',
      'o1',
      'x2',
      'y1',
    ]);
    expect(names(newest({ completed: 1 }, jobs))).toEqual(['a2', 'b1', 'o1', 'x2']);
  });

  test('what is being deleted is none of them, and those of one second have an order', () => {
    const going = completed({ name: 'z', endedAt: 9, metadata: { deletionTimestamp: at(9) } });
    const jobs = [going, completed({ name: 'b' }), completed({ name: 'a' })];
    expect(names(newest({ completed: 1 }, jobs))).toEqual(['a']);
    expect(names(newest({ completed: 1 }, [...jobs].reverse()))).toEqual(['a']);
  });
});
