import fc from 'fast-check';
import type { AnyObject } from '../../../src/contract/object.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import { at } from './fixtures.js';
import { due } from './reference.js';
import type { World } from './world.js';

const NAMES = ['a', 'b', 'ab', 'c'];
const NAMESPACES = ['default', 'team', 'kube-system'];
const seconds = fc.constantFrom('0s', '5s', '20s', '60s');
const rarely = fc.constantFrom(false, false, false, true);
const pattern = fc.constantFrom('a', '^a$', 'b|c', '.', 'none');

export const spec: fc.Arbitrary<JobWatcherSpec> = fc.record(
  {
    namespacePatterns: fc.array(fc.constantFrom('default', '^team$', 'kube', '.'), {
      minLength: 1,
      maxLength: 2,
    }),
    jobNamePatterns: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    selector: fc.constant({ matchLabels: { app: 'x' } }),
    ...{ completedTTL: seconds, failedTTL: seconds, frequency: fc.constantFrom('1s', '15s') },
    ...{ dryRun: rarely, suspend: rarely, allowShorterOverrides: fc.boolean() },
    priority: fc.constantFrom(0, 0, 0, 1, -1),
    ownerPolicy: fc.record(
      {
        cronJob: fc.constantFrom('Delete', 'Skip'),
        ttlSecondsAfterFinished: fc.constantFrom('Delete', 'Skip'),
      },
      { requiredKeys: [] },
    ),
    tracked: fc.constantFrom('Delete', 'Skip'),
    keepLast: fc.record({ completed: fc.nat(2), failed: fc.nat(1) }),
  },
  { requiredKeys: ['completedTTL'] },
);

/** What may be special about a Job. */
const metadata = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.constantFrom(
    { labels: { app: 'x' } },
    { labels: { 'helm.toolkit.fluxcd.io/name': 'x' } },
    { annotations: { 'batch.my.github.com/keep': 'true' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': '1s' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': '90s' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': 'nonsense' } },
    { deletionTimestamp: at(0) },
    { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'o', uid: 'o', controller: true }] },
    { ownerReferences: [{ apiVersion: 'x/v1', kind: 'Other', name: 'p', uid: 'p', controller: true }] },
  ),
);

export type Step = (world: World) => void;

let uids = 0;

export const addJob: fc.Arbitrary<Step> = fc
  .record({
    ...{ name: fc.constantFrom(...NAMES), namespace: fc.constantFrom(...NAMESPACES), metadata },
    ended: fc.constantFrom('Complete' as const, 'Complete' as const, 'Failed' as const, undefined),
    // Up to a finish in the future.
    ago: fc.integer({ min: -30, max: 60 }),
    spec: fc.constantFrom({}, {}, {}, { ttlSecondsAfterFinished: 1 }),
  })
  .map(({ ended, ago, ...props }) => (world) => {
    const uid = `uid-${++uids}`;
    world.addJob({ ...props, uid, endedAt: Math.floor(world.now) - ago, ...(ended && { ended }) });
  });

export const setWatcher = (given: fc.Arbitrary<JobWatcherSpec>): fc.Arbitrary<Step> =>
  fc
    .tuple(given, fc.constantFrom('one', 'two', 'three'), fc.constantFrom('default', 'team', 'ops'))
    .map(([wanted, name, namespace]) => (world) => {
      world.setWatcher(wanted, { name, namespace });
    });

const dropWatcher: fc.Arbitrary<Step> = fc.nat().map((pick) => (world) => {
  const keys = [...world.watchers.keys()];
  if (keys.length > 0) world.watchers.delete(keys[pick % keys.length]!);
});

export const dropJob: fc.Arbitrary<Step> = fc.nat().map((pick) => (world) => {
  const keys = [...world.jobs.keys()];
  if (keys.length > 0) world.jobs.delete(keys[pick % keys.length]!);
});

export const wait: fc.Arbitrary<Step> = fc.constantFrom(1, 4, 5, 20, 61).map((time) => (world) => {
  world.now += time;
});

export function steps(given: fc.Arbitrary<JobWatcherSpec>): fc.Arbitrary<Step[]> {
  const step = fc.oneof(
    { weight: 6, arbitrary: addJob },
    { weight: 3, arbitrary: setWatcher(given) },
    { weight: 1, arbitrary: dropWatcher },
    { weight: 4, arbitrary: wait },
  );
  return fc.array(step, { minLength: 1, maxLength: 40 });
}

/** By the rules, who lets which Job go now. */
export function dueIn(world: World): Map<string, string> {
  const deletedNamesakes = ({ metadata }: AnyObject): number => {
    const before = world.remembered(`${metadata.namespace}/${metadata.name}`);
    return before.filter(({ uid }) => uid !== metadata.uid).length;
  };
  return due({
    jobs: [...world.jobs.values()],
    watchers: [...world.watchers.values()],
    now: world.now,
    deletedNamesakes,
  });
}

export function uidsOf(jobs: readonly AnyObject[]): string[] {
  return jobs.map(({ metadata }) => metadata.uid!).sort();
}
