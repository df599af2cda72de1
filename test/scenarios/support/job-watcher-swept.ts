import type { AnyObject } from '../../../src/contract/object.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { MakeSurroundings } from '../../../src/testing/tested-kind.js';
import { finishedStatus, HOUR } from '../../support/jobs.js';

const { apiVersion, kind } = jobWatcher.type;

const sample = (spec: JobWatcherSpec): AnyObject => ({
  ...{ apiVersion, kind, metadata: { name: 'sample' } },
  spec,
});

/** The second, an edit of the first, deletes more. */
export const jobWatcherSamples: readonly AnyObject[] = [
  sample({
    ...{ namespacePatterns: ['^sweep-'], jobNamePatterns: ['^pi-'], frequency: '1s' },
    ...{ completedTTL: '2h', failedTTL: '100h' },
  }),
  sample({
    ...{ completedTTL: '30m', failedTTL: '0s', frequency: '1s', tracked: 'Delete' },
    ownerPolicy: { ttlSecondsAfterFinished: 'Delete', managedBy: 'Delete' },
    selector: { matchExpressions: [{ key: 'keep', operator: 'NotIn', values: ['always'] }] },
    ...{ keepLast: { completed: 1, groupByLabel: 'report' }, allowShorterOverrides: true },
  }),
  sample({
    ...{ selector: { matchLabels: { report: 'daily' } }, completedTTL: '0s', frequency: '1s', priority: 7 },
    propagationPolicy: 'Foreground',
  }),
  sample({ completedTTL: '0s', failedTTL: '0s', frequency: '2s', dryRun: true }),
  sample({ completedTTL: '0s', failedTTL: '0s', frequency: '1s', suspend: true }),
];

/**
 * Jobs of which each is decided on in another way, all of them long over: no time has to pass. They never run, since they
 * are suspended.
 */
export const withJobs: MakeSurroundings = ({ namespace, round }) => {
  const job = (name: string, ago: number | undefined, more: Partial<JobProps> = {}): AnyObject => ({
    ...{ apiVersion: 'batch/v1', kind: 'Job' },
    metadata: {
      ...{ namespace, name: `${name}-${round}` },
      ...(more.labels && { labels: more.labels }),
      ...(more.annotations && { annotations: more.annotations }),
    },
    spec: {
      ...{ suspend: true, backoffLimit: 0, ...more.spec },
      template: {
        spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: 'example.com/job:1' }] },
      },
    },
    ...(ago !== undefined && { status: finishedStatus({ ago, as: more.as ?? 'Complete' }) }),
  });
  return {
    objects: [
      job('pi-old', 3 * HOUR),
      job('pi-new', 1.5 * HOUR),
      job('pi-unfinished', undefined),
      job('pi-failed', 3 * HOUR, { as: 'Failed' }),
      job('pi-kept', 3 * HOUR, { annotations: { 'batch.my.github.com/keep': 'true' } }),
      job('pi-longer', 3 * HOUR, { annotations: { 'batch.my.github.com/ttl-after-completed': '200h' } }),
      job('pi-shorter', HOUR, { annotations: { 'batch.my.github.com/ttl-after-completed': '1m' } }),
      job('pi-tracked', 4 * HOUR, { annotations: { 'meta.helm.sh/release-name': 'web' } }),
      job('report-old', 5 * HOUR, { labels: { report: 'daily' } }),
      job('report-new', 4 * HOUR, { labels: { report: 'daily' } }),
      job('report-always', 6 * HOUR, { labels: { report: 'daily', keep: 'always' } }),
      job('native', 3 * HOUR, { spec: { ttlSecondsAfterFinished: 1_000_000 } }),
      job('managed', 3 * HOUR, { spec: { managedBy: 'example.com/other' } }),
    ],
  };
};

interface JobProps {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: object;
  readonly as: 'Complete' | 'Failed';
}
