import { describe, expect, test } from 'vitest';
import type { Finish, KeptJob } from '../../../src/kinds/job-watcher/job.js';
import { judge } from '../../../src/kinds/job-watcher/matching.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { Watcher } from '../../../src/kinds/job-watcher/watcher.js';
import { at, completed, job, START, watcher } from './fixtures.js';

type Verdict = string | number;

/** Why it stays, or the second at which it is due. */
function verdicts(judged: KeptJob, watchers: readonly Watcher[], isProtected = false): Verdict[] {
  return judge(judged, watchers, isProtected).map((verdict) =>
    'stays' in verdict ? verdict.stays : ((judged.finish as Finish).at - START) / 1000 + verdict.ttlSeconds,
  );
}

const of = (apiVersion: string, kind: string) =>
  completed({ metadata: { ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'o', controller: true }] } });
const annotated = (key: string, value: string) =>
  completed({ metadata: { annotations: { [`batch.my.github.com/${key}`]: value } } });
const native = completed({ spec: { ttlSecondsAfterFinished: 0 } });
const elsewhere = completed({ spec: { managedBy: 'kueue.x-k8s.io/multikueue' } });
const tracked = completed({ metadata: { annotations: { 'helm.sh/hook': 'test' } } });
const unclear = completed({ status: { conditions: [{ type: 'Complete', status: 'True' }] } });
const suspended = job({ status: { conditions: [{ type: 'Suspended', status: 'True' }] } });
const allOpen = {
  ownerPolicy: { cronJob: 'Delete', managedBy: 'Delete', ttlSecondsAfterFinished: 'Delete' },
  tracked: 'Delete',
} as const;

test.each<[of: string, judged: KeptJob, spec: JobWatcherSpec, verdict: Verdict]>([
  ['completed', completed({ endedAt: 5 }), {}, 15],
  ['failed', job({ ended: 'Failed', endedAt: 5 }), {}, 65],
  ['at once', completed(), { completedTTL: '0s' }, 0],
  ['rounded up', completed({ endedAt: 1000 }), { completedTTL: '1.5s' }, 1002],
  ['running', job(), {}, 'NotFinished'],
  ['pending', job({ status: {} }), {}, 'NotFinished'],
  ['suspended', suspended, {}, 'NotFinished'],
  ['going', completed({ metadata: { deletionTimestamp: at(1) } }), {}, 'Terminating'],
  ['without a time', unclear, {}, 'FinishUnclear'],
  ['with the TTL of Kubernetes', native, {}, 'NativeTTL'],
  ['the same, opened', native, { ownerPolicy: { ttlSecondsAfterFinished: 'Delete' } }, 10],
  ['managed elsewhere', elsewhere, {}, 'ManagedElsewhere'],
  ['the same, opened', elsewhere, { ownerPolicy: { managedBy: 'Delete' } }, 10],
  ['tracked', tracked, {}, 'Tracked'],
  ['the same, opened', tracked, { tracked: 'Delete' }, 10],
  ['of a CronJob', of('batch/v1', 'CronJob'), {}, 10],
  ['the same, closed', of('batch/v1', 'CronJob'), { ownerPolicy: { cronJob: 'Skip' } }, 'CronJob'],
  ['of a controller', of('argoproj.io/v1alpha1', 'Workflow'), allOpen, 'Owned'],
  ['of a namesake of CronJob', of('example.com/v1', 'CronJob'), allOpen, 'Owned'],
  ['kept', annotated('keep', 'true'), allOpen, 'KeepAnnotation'],
  ['with a typing error', annotated('ttl-after-completed', '3 days'), allOpen, 'InvalidAnnotation'],
  ['lengthened', annotated('ttl-after-completed', '1h'), {}, 3600],
  ['lengthened for the other outcome', annotated('ttl-after-failed', '1h'), {}, 10],
  ['shortened', annotated('ttl-after-completed', '1s'), {}, 10],
  ['shortened, as is allowed', annotated('ttl-after-completed', '1s'), { allowShorterOverrides: true }, 1],
])('a Job %s', (_, judged, spec, verdict) => {
  const ttls = { completedTTL: '10s', failedTTL: '1m' };
  expect(verdicts(judged, [watcher({ ...ttls, ...spec })])).toEqual([verdict]);
});

test('no TTL is the longest there is', () => {
  const short = annotated('ttl-after-completed', '1s');
  expect(verdicts(completed(), [watcher({ failedTTL: '0s' })])).toEqual(['NoTTL']);
  expect(verdicts(short, [watcher({})])).toEqual(['NoTTL']);
  expect(verdicts(short, [watcher({ allowShorterOverrides: true })])).toEqual([1]);
});

test('nothing goes in a protected namespace', () => {
  expect(verdicts(completed(), [watcher({ completedTTL: '0s' })], true)).toEqual(['ProtectedNamespace']);
});

describe('by several', () => {
  const one = (name: string, spec: JobWatcherSpec): Watcher =>
    watcher({ completedTTL: '1s', ...spec }, { name });
  const short = one('short', {});
  const long = one('long', { completedTTL: '1h' });
  const urgent = one('urgent', { completedTTL: '5s', priority: 1 });
  const dry = one('dry', { completedTTL: '2s', dryRun: true, priority: 9 });
  const opened = one('opened', { tracked: 'Delete' });
  const decided = 'DecidedByOther';

  test.each<[rule: string, judged: KeptJob, by: Watcher[], verdicts: Verdict[]]>([
    ['among equals the longest TTL holds', completed(), [short, long], [decided, 3600]],
    ['in whatever order they come', completed(), [long, short], [3600, decided]],
    ['of equal TTLs always the same', completed(), [one('b', {}), one('a', {})], [decided, 1]],
    ['the highest priority decides', completed(), [short, urgent, long], [decided, 5, decided]],
    ['also below zero', completed(), [short, one('below', { priority: -1 })], [1, decided]],
    ['among equals each may keep a Job', tracked, [opened, short], [decided, 'Tracked']],
    ['but none below', tracked, [one('x', { tracked: 'Delete', priority: 1 }), short], [1, decided]],
    [
      'a suspended one still decides',
      completed(),
      [short, one('urgent', { priority: 1, suspend: true })],
      [decided, 'Suspended'],
    ],
    ['a dry run neither deletes nor protects', completed(), [short, dry], [1, 2]],
    ['nor below', completed(), [short, one('dry', { dryRun: true, priority: -9 })], [1, decided]],
    ['nor alone', completed(), [dry], [2]],
  ])('%s', (_, judged, by, wanted) => {
    expect(verdicts(judged, by)).toEqual(wanted);
  });
});
