import { describe, expect, test } from 'vitest';
import type { Finish, KeptJob } from '../../../src/kinds/job-watcher/job.js';
import { judge } from '../../../src/kinds/job-watcher/matching.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { Watcher } from '../../../src/kinds/job-watcher/watcher.js';
import { at, completed, job, START, watcher } from './fixtures.js';

const TTL = { completedTTL: '10s', failedTTL: '1m' };

/** Why it stays, or the second at which it is due. */
function told(judged: KeptJob, watchers: readonly Watcher[], isProtected = false): (string | number)[] {
  return judge(judged, watchers, isProtected).map((verdict) =>
    'stays' in verdict ? verdict.stays : secondsOf(judged.finish) + verdict.ttlSeconds,
  );
}

function secondsOf(finish: KeptJob['finish']): number {
  return ((finish as Finish).at - START) / 1000;
}

function alone(judged: KeptJob, spec: JobWatcherSpec = TTL): string | number | undefined {
  return told(judged, [watcher(spec)])[0];
}

const owner = (apiVersion: string, kind: string) => ({
  metadata: { ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'o', controller: true }] },
});
const annotated = (key: string, value: string) => ({
  metadata: { annotations: { [`batch.my.github.com/${key}`]: value } },
});

describe('by one watcher', () => {
  test('the TTL is that of how it finished', () => {
    expect(alone(completed({ endedAt: 5 }))).toBe(15);
    expect(alone(job({ ended: 'Failed', endedAt: 5 }))).toBe(65);
    expect(alone(completed(), { completedTTL: '0s' })).toBe(0);
    expect(alone(completed(), { failedTTL: '0s' })).toBe('NoTTL');
    expect(alone(completed({ endedAt: 1000 }), { completedTTL: '1.5s' })).toBe(1002);
  });

  test.each<[what: string, judged: KeptJob, reason: string]>([
    ['running', job(), 'NotFinished'],
    ['pending', job({ status: {} }), 'NotFinished'],
    ['suspended', job({ status: { conditions: [{ type: 'Suspended', status: 'True' }] } }), 'NotFinished'],
    ['being deleted', completed({ metadata: { deletionTimestamp: at(1) } }), 'Terminating'],
    [
      'without a time',
      completed({ status: { conditions: [{ type: 'Complete', status: 'True' }] } }),
      'FinishUnclear',
    ],
    ['of the native controller', completed({ spec: { ttlSecondsAfterFinished: 0 } }), 'NativeTTL'],
    [
      'managed elsewhere',
      completed({ spec: { managedBy: 'kueue.x-k8s.io/multikueue' } }),
      'ManagedElsewhere',
    ],
    ['tracked', completed({ metadata: { labels: { 'kustomize.toolkit.fluxcd.io/name': 'a' } } }), 'Tracked'],
    ['of a controller', completed(owner('argoproj.io/v1alpha1', 'Workflow')), 'Owned'],
    ['of a namesake of CronJob', completed(owner('example.com/v1', 'CronJob')), 'Owned'],
    ['kept', completed(annotated('keep', 'true')), 'KeepAnnotation'],
    [
      'with an unreadable annotation',
      completed(annotated('ttl-after-completed', '3 days')),
      'InvalidAnnotation',
    ],
  ])('never one that is %s', (_, judged, reason) => {
    expect(alone(judged, { ...TTL, completedTTL: '0s' })).toBe(reason);
  });

  test('never one in a protected namespace', () => {
    expect(told(completed(), [watcher(TTL)], true)).toEqual(['ProtectedNamespace']);
  });

  test('policies open what is closed, and close what is open', () => {
    const native = completed({ spec: { ttlSecondsAfterFinished: 0 } });
    expect(alone(native, { ...TTL, ownerPolicy: { ttlSecondsAfterFinished: 'Delete' } })).toBe(10);
    const elsewhere = completed({ spec: { managedBy: 'a/b' } });
    expect(alone(elsewhere, { ...TTL, ownerPolicy: { managedBy: 'Delete' } })).toBe(10);
    const tracked = completed({ metadata: { annotations: { 'helm.sh/hook': 'test' } } });
    expect(alone(tracked, { ...TTL, tracked: 'Delete' })).toBe(10);
    expect(alone(completed(owner('batch/v1', 'CronJob')))).toBe(10);
    expect(alone(completed(owner('batch/v1', 'CronJob')), { ...TTL, ownerPolicy: { cronJob: 'Skip' } })).toBe(
      'CronJob',
    );
    const closed = { cronJob: 'Delete', managedBy: 'Delete', ttlSecondsAfterFinished: 'Delete' } as const;
    expect(alone(completed(owner('a/v1', 'B')), { ...TTL, ownerPolicy: closed, tracked: 'Delete' })).toBe(
      'Owned',
    );
  });

  test('an annotation may lengthen the TTL, and shorten it only where that is allowed', () => {
    expect(alone(completed(annotated('ttl-after-completed', '1h')))).toBe(3600);
    expect(alone(completed(annotated('ttl-after-failed', '1h')))).toBe(10);
    expect(alone(completed(annotated('ttl-after-completed', '1s')))).toBe(10);
    expect(
      alone(completed(annotated('ttl-after-completed', '1s')), { ...TTL, allowShorterOverrides: true }),
    ).toBe(1);
    // No TTL is the longest there is.
    expect(alone(completed(annotated('ttl-after-completed', '1s')), {})).toBe('NoTTL');
    expect(alone(completed(annotated('ttl-after-completed', '1s')), { allowShorterOverrides: true })).toBe(1);
  });
});

describe('by several', () => {
  const one = (spec: JobWatcherSpec, name: string): Watcher => watcher(spec, { name });
  const short = one({ completedTTL: '1s' }, 'short');
  const long = one({ completedTTL: '1h' }, 'long');
  const urgent = one({ completedTTL: '5s', priority: 1 }, 'urgent');
  const dry = one({ completedTTL: '2s', dryRun: true, priority: 9 }, 'dry');

  test('among equals the longest TTL holds, in whatever order they come', () => {
    expect(told(completed(), [short, long])).toEqual(['DecidedByOther', 3600]);
    expect(told(completed(), [long, short])).toEqual([3600, 'DecidedByOther']);
    const never = one({ failedTTL: '1s' }, 'never');
    expect(told(completed(), [short, never])).toEqual(['DecidedByOther', 'NoTTL']);
    expect(told(completed(), [one({ completedTTL: '1s' }, 'b'), one({ completedTTL: '1s' }, 'a')])).toEqual([
      'DecidedByOther',
      1,
    ]);
  });

  test('the highest priority decides', () => {
    expect(told(completed(), [short, urgent, long])).toEqual(['DecidedByOther', 5, 'DecidedByOther']);
    const below = one({ completedTTL: '0s', priority: -1 }, 'below');
    expect(told(completed(), [short, below])).toEqual([1, 'DecidedByOther']);
  });

  test('among equals each may keep a Job', () => {
    const tracked = completed({ metadata: { annotations: { 'helm.sh/hook': 'test' } } });
    const opened = one({ completedTTL: '1s', tracked: 'Delete' }, 'opened');
    expect(told(tracked, [opened, short])).toEqual(['DecidedByOther', 'Tracked']);
    expect(
      told(tracked, [one({ completedTTL: '1s', tracked: 'Delete', priority: 1 }, 'opened'), short]),
    ).toEqual([1, 'DecidedByOther']);
  });

  test('to suspend one lets no other delete what it decides on', () => {
    const suspended = one({ completedTTL: '5s', priority: 1, suspend: true }, 'urgent');
    expect(told(completed(), [short, suspended])).toEqual(['DecidedByOther', 'Suspended']);
  });

  test('a dry run neither deletes nor protects, and is told what would be', () => {
    expect(told(completed(), [short, dry])).toEqual([1, 2]);
    const patient = one({ completedTTL: '2s', dryRun: true, priority: -9 }, 'patient');
    expect(told(completed(), [short, patient])).toEqual([1, 'DecidedByOther']);
    expect(told(completed(), [dry])).toEqual([2]);
  });
});
