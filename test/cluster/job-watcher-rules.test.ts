import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { resourceType } from '../../src/contract/resource.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { Cluster, configMaps } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { deletionsOf, finishedStatus, HOUR, Jobs, on } from './support/jobs.js';
import { secondsAgo } from './support/kubelet.js';

/**
 * Which Jobs a JobWatcher deletes, and when. Every test has names of its own, and a Job among them that has to go, so
 * that what stays was judged. What other tools get wrong (`test/kinds/job-watcher/defects.test.ts`) is among them, with the
 * rule that it breaks.
 */
const user = 'operator-46';
const cronJobs = resourceType({ apiVersion: 'batch/v1', kind: 'CronJob' });
const cluster = new Cluster(openSandbox(inject('sandbox')));
const MARK = 'batch.my.github.com';
let world: Jobs;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  world = new Jobs(cluster, await cluster.makeNamespace('job-watcher-rules'));
  controller = await startController({
    ...{ cluster, user, kinds: [jobWatcher], namespaces: [world.namespace] },
  });
});

afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** What was deleted, by which watcher. */
function deletedBy(prefix: string): Record<string, unknown> {
  const lines = controller.log.filter(
    ({ outcome, name, namespace }) =>
      outcome === 'deleted' && namespace === world.namespace && name?.startsWith(prefix),
  );
  return Object.fromEntries(lines.map(({ name, watcher }) => [name, watcher])) as Record<string, unknown>;
}

/** Owns what it is named as the controller of. */
async function owner(kind: 'CronJob' | 'ConfigMap', name: string): Promise<object> {
  const metadata = { name, namespace: world.namespace };
  const template = { spec: { containers: [{ name: 'job', image: 'a' }], restartPolicy: 'Never' } };
  const spec = { schedule: '0 0 1 1 *', suspend: true, jobTemplate: { spec: { template } } };
  const history = { successfulJobsHistoryLimit: 100, failedJobsHistoryLimit: 100 };
  const made =
    kind === 'CronJob'
      ? await cluster.create(cronJobs, {
          apiVersion: 'batch/v1',
          kind,
          metadata,
          spec: { ...spec, ...history },
        })
      : await cluster.create(configMaps, { apiVersion: 'v1', kind, metadata });
  const { apiVersion } = kind === 'CronJob' ? cronJobs : configMaps;
  return { ownerReferences: [{ apiVersion, kind, name, uid: made.metadata.uid, controller: true }] };
}

describe('rule 1: finished is a Job whose condition Complete or Failed is True', () => {
  test.concurrent(
    'not SuccessCriteriaMet, not FailureTarget, not counters, nor a condition that is False',
    async () => {
      const at = secondsAgo(HOUR);
      const unfinished = {
        criteria: { startTime: at, succeeded: 1, conditions: [on('SuccessCriteriaMet', at)] },
        target: { startTime: at, failed: 1, conditions: [on('FailureTarget', at)] },
        counters: { startTime: at, succeeded: 1, failed: 3 },
        untrue: { startTime: at, conditions: [{ type: 'Failed', status: 'False', lastTransitionTime: at }] },
      };
      // Kubernetes' own controller would finish them.
      const spec = { suspend: false, managedBy: 'example.com/queue' };
      for (const [name, status] of Object.entries(unfinished)) {
        await world.create(`finished-${name}`, { spec });
        await world.setStatus(`finished-${name}`, status);
      }
      await world.finished('finished-done');
      await world.watch('finished', {
        ...{ completedTTL: '0s', failedTTL: '0s', ownerPolicy: { managedBy: 'Delete' } },
      });

      await world.left(
        'finished-',
        Object.keys(unfinished).map((name) => `finished-${name}`),
      );
      await world.told('finished', { lastRun: { finished: 1, deleted: 1, skipped: { NotFinished: 4 } } });
    },
  );

  test.concurrent(
    'a Job with failed Pods that completed is completed, one with a success that failed is failed',
    async () => {
      const both = { succeeded: 1, failed: 1 };
      for (const [name, as] of [
        ['done', 'Complete'],
        ['broken', 'Failed'],
      ] as const) {
        await world.create(`counters-${name}`);
        await world.setStatus(`counters-${name}`, { ...finishedStatus({ as }), ...both });
      }
      await world.watch('counters', { completedTTL: '30m', failedTTL: '2h' });

      await world.left('counters-', ['counters-broken']);
      await world.told('counters', { lastRun: { finished: 2, deleted: 1, skipped: { NotDue: 1 } } });
    },
  );

  test.concurrent('the finish time is when the condition came, not completionTime', async () => {
    await world.create('moment-late');
    const late = secondsAgo(60);
    await world.setStatus('moment-late', {
      ...finishedStatus({ ago: HOUR }),
      conditions: [on('SuccessCriteriaMet', late), on('Complete', late)],
    });
    await world.finished('moment-early');
    await world.watch('moment', { completedTTL: '30m' });

    await world.left('moment-', ['moment-late']);
    const next = new Date(Date.parse(late) + 1800_000).toISOString().replace('.000', '');
    await world.told('moment', { nextDeletion: next });
  });

  test.concurrent('without a time it stays, and an event says so', async () => {
    await world.create('timeless-job');
    await world.setStatus('timeless-job', {
      ...finishedStatus(),
      conditions: [on('SuccessCriteriaMet'), on('Complete')],
    });
    await world.finished('timeless-other');
    await world.watch('timeless', { completedTTL: '0s' });

    await world.left('timeless-', ['timeless-job']);
    await world.told('timeless', { lastRun: { finished: 2, skipped: { FinishUnclear: 1 } } });
    await eventually(async () => {
      expect(await eventsOn('timeless')).toContain('FinishUnclear');
    });
  });
});

async function eventsOn(name: string): Promise<string[]> {
  const type = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
  const told = await cluster.list<{ regarding: { name: string }; reason: string }>(type, world.namespace);
  return told.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);
}

describe('rule 2: the TTL is that of how it ended, from then on', () => {
  test.concurrent('each has its own, unset is never, and 0 is at once', async () => {
    for (const as of ['Complete', 'Failed'] as const) {
      for (const watcher of ['apart', 'nofailed', 'nocompleted'])
        await world.finished(`${watcher}-${as.toLowerCase()}`, { as });
      await world.finished(`zero-${as.toLowerCase()}`, { as, ago: 0 });
    }
    await world.watch('apart', { completedTTL: '2h', failedTTL: '30m' });
    await world.watch('nofailed', { completedTTL: '1s' });
    await world.watch('nocompleted', { failedTTL: '1s' });
    await world.watch('zero', { completedTTL: '0s', failedTTL: '0s' });

    await world.left('apart-', ['apart-complete']);
    await world.left('nofailed-', ['nofailed-failed']);
    await world.left('nocompleted-', ['nocompleted-complete']);
    await world.left('zero-', []);
    await world.told('nofailed', { lastRun: { skipped: { NoTTL: 1 } } });
    await world.told('nocompleted', { lastRun: { skipped: { NoTTL: 1 } } });
  });

  // Alone, so that nothing else wakes the controller.
  test('the deadline is kept by a timer: neither before it nor with the frequency', async () => {
    await world.watch('timer', { completedTTL: '5s', frequency: '1h' });
    await world.condition('timer', { type: 'Ready', status: 'True' });
    const { status } = await world.finished('timer-job', { ago: 0 });

    await world.left('timer-', []);
    const [deletion] = deletionsOf(await cluster.sandbox.audit(user), 'timer-');
    const deadline = Date.parse((status as { completionTime: string }).completionTime) + 5_000;
    expect(Date.parse(deletion!.requestReceivedTimestamp)).toBeGreaterThanOrEqual(deadline);
  });

  test.concurrent('a Job that completes on its own goes as it does', async () => {
    await world.watch('natural', { completedTTL: '0s' });
    await world.create('natural-job', { spec: {} });
    const job = await controller.logged(
      ({ name, outcome }) => name === 'natural-job' && outcome === 'deleted',
    );
    expect(job).toMatchObject({ finish: 'completed', ttlSeconds: 0 });
  });
});

describe('rule 3: never', () => {
  test.concurrent('what runs, waits or is suspended', async () => {
    await world.create('unfinished-running', {
      spec: { suspend: false },
      image: 'sandbox.invalid/never-ready',
    });
    await world.create('unfinished-suspended');
    await world.finished('unfinished-done');
    await world.watch('unfinished', { completedTTL: '0s', failedTTL: '0s' });

    await world.left('unfinished-', ['unfinished-running', 'unfinished-suspended']);
    await world.told('unfinished', { lastRun: { finished: 1, skipped: { NotFinished: 2 } } });
  });

  test.concurrent(
    'what is being deleted and hangs at a finalizer: it is told, and not deleted again',
    async () => {
      await world.finished('stuck-job', { metadata: { finalizers: ['example.com/hold'] } });
      await cluster.delete(world.place('stuck-job'), { propagationPolicy: 'Foreground' });
      await world.finished('stuck-other');
      await world.watch('stuck', { completedTTL: '0s', propagationPolicy: 'Foreground' });

      await world.told('stuck', { lastRun: { skipped: { Terminating: 1 } } });
      await world.left('stuck-', []);
      await eventually(() => {
        expect(deletedBy('stuck-')).toEqual({ 'stuck-other': `${world.namespace}/stuck` });
      });
      const asked = deletionsOf(await cluster.sandbox.audit(user), 'stuck-');
      expect(asked.map(({ objectRef }) => objectRef?.name)).toEqual(['stuck-other']);
      await world.edit('stuck-job', { metadata: { finalizers: null } });
    },
  );

  test.concurrent('what Kubernetes itself deletes, unless it is asked for', async () => {
    await world.finished('native-job', { spec: { ttlSecondsAfterFinished: 24 * HOUR } });
    await world.finished('native-other');
    await world.watch('native', { completedTTL: '0s' });
    await world.left('native-', ['native-job']);
    await world.told('native', { lastRun: { skipped: { NativeTTL: 1 } } });

    await world.adjust('native', { ownerPolicy: { ttlSecondsAfterFinished: 'Delete' } });
    await world.left('native-', []);
  });

  test.concurrent('what says that it is kept', async () => {
    await world.finished('keep-job', { metadata: { annotations: { [`${MARK}/keep`]: 'true' } } });
    await world.finished('keep-other', { metadata: { annotations: { [`${MARK}/keep`]: 'false' } } });
    await world.watch('keep', { completedTTL: '0s', priority: 1000, allowShorterOverrides: true });
    await world.left('keep-', ['keep-job']);
    await world.told('keep', { lastRun: { skipped: { KeepAnnotation: 1 } } });
  });
});

describe('rule 4: what would come back stays', () => {
  test.concurrent(
    'Jobs of a CronJob go unless they are skipped, those of any other controller stay',
    async () => {
      await world.finished('owners-cron', { metadata: await owner('CronJob', 'owners-cron') });
      await world.finished('owners-other', { metadata: await owner('ConfigMap', 'owners-other') });
      await world.watch('owners', { completedTTL: '0s', ownerPolicy: { cronJob: 'Skip' } });
      await world.told('owners', { lastRun: { skipped: { CronJob: 1, Owned: 1 } } });
      expect(await world.names('owners-')).toEqual(['owners-cron', 'owners-other']);

      await world.adjust('owners', { ownerPolicy: null });
      await world.left('owners-', ['owners-other']);
      await world.told('owners', { lastRun: { skipped: { Owned: 1 } } });
    },
  );

  test.concurrent('what Argo CD, Flux and Helm track, unless it is asked for', async () => {
    const marks = {
      argo: { annotations: { 'argocd.argoproj.io/tracking-id': 'shop:batch/Job:shop/a' } },
      argohook: { annotations: { 'argocd.argoproj.io/hook': 'PreSync' } },
      flux: { labels: { 'kustomize.toolkit.fluxcd.io/name': 'shop' } },
      fluxhelm: { labels: { 'helm.toolkit.fluxcd.io/name': 'shop' } },
      helm: { annotations: { 'meta.helm.sh/release-name': 'shop' } },
      helmhook: { annotations: { 'helm.sh/hook': 'pre-upgrade' } },
    };
    for (const [name, metadata] of Object.entries(marks))
      await world.finished(`tracked-${name}`, { metadata });
    await world.finished('tracked-other');
    await world.watch('tracked', { completedTTL: '0s' });
    await world.left(
      'tracked-',
      Object.keys(marks).map((name) => `tracked-${name}`),
    );
    await world.told('tracked', { lastRun: { skipped: { Tracked: 6 } } });

    await world.adjust('tracked', { tracked: 'Delete' });
    await world.left('tracked-', []);
  });
});

describe('rule 8: keepLast keeps the newest though their time has come', () => {
  test.concurrent('for each controller, each outcome, and each value of the label', async () => {
    const [one, two] = [await owner('CronJob', 'newest-one'), await owner('CronJob', 'newest-two')];
    const of = (kind: string): object => ({ labels: { kind } });
    const given = [
      { name: 'one-old', metadata: one, ago: 300 },
      { name: 'one-new', metadata: one, ago: 200 },
      { name: 'one-failed', metadata: one, ago: 400, as: 'Failed' as const },
      { name: 'two-old', metadata: two, ago: 300 },
      { name: 'two-new', metadata: two, ago: 250 },
      { name: 'a-old', metadata: of('a'), ago: 300 },
      { name: 'a-new', metadata: of('a'), ago: 200 },
      { name: 'b', metadata: of('b'), ago: 400 },
    ];
    for (const { name, ...props } of given) await world.finished(`newest-${name}`, props);
    await world.watch('newest', {
      ...{ completedTTL: '0s', failedTTL: '0s' },
      keepLast: { completed: 1, failed: 0, groupByLabel: 'kind' },
    });

    await world.left('newest-', ['newest-one-new', 'newest-two-new', 'newest-a-new', 'newest-b']);
    await world.told('newest', { lastRun: { skipped: { KeepLast: 4 } } });
    await world.finished('newest-b-new', { metadata: of('b'), ago: 10 });
    await world.left('newest-', ['newest-one-new', 'newest-two-new', 'newest-a-new', 'newest-b-new']);
  });
});

describe('rule 9: a Job’s own annotations', () => {
  test.concurrent('lengthen its TTL, shorten it where that is allowed, and in doubt keep it', async () => {
    const annotated = (key: string, value: string) => ({ annotations: { [`${MARK}/${key}`]: value } });
    await world.finished('own-longer', { metadata: annotated('ttl-after-completed', '48h') });
    await world.finished('own-shorter', { metadata: annotated('ttl-after-failed', '1m'), as: 'Failed' });
    await world.finished('own-unreadable', { metadata: annotated('ttl-after-completed', '2 days') });
    await world.finished('own-otherwise', { metadata: annotated('ttl-after-failed', '48h') });
    await world.watch('own', { completedTTL: '30m', failedTTL: '2h' });
    await world.left('own-', ['own-longer', 'own-shorter', 'own-unreadable']);
    await world.told('own', { lastRun: { skipped: { InvalidAnnotation: 1, NotDue: 2 } } });

    await world.adjust('own', { allowShorterOverrides: true });
    await world.left('own-', ['own-longer', 'own-unreadable']);
  });
});

describe('rule 10: several watchers of one Job', () => {
  const patterns = (prefix: string): object => ({ jobNamePatterns: [`^${prefix}-`] });

  test.concurrent('the highest priority decides', async () => {
    await world.finished('ranked-a');
    await world.finished('ranked-b', { as: 'Failed' });
    await world.watch('rankhigh', {
      ...patterns('ranked'),
      completedTTL: '30m',
      failedTTL: '2h',
      priority: 1,
    });
    await world.watch('ranklow', { ...patterns('ranked'), completedTTL: '2h', failedTTL: '0s' });
    await world.told('ranklow', { lastRun: { skipped: { DecidedByOther: 1 } } });
    await world.left('ranked-', ['ranked-b']);
    await eventually(() => {
      expect(deletedBy('ranked-')).toEqual({ 'ranked-a': `${world.namespace}/rankhigh` });
    });
  });

  test.concurrent(
    'among equals the longest TTL decides, any may keep, and all say that they overlap',
    async () => {
      await world.watch('equalone', { ...patterns('equal'), completedTTL: '30m', tracked: 'Delete' });
      await world.watch('equaltwo', { ...patterns('equal'), completedTTL: '90m', failedTTL: '0s' });
      await world.finished('equal-between');
      await world.finished('equal-tracked', {
        metadata: { labels: { 'helm.toolkit.fluxcd.io/name': 'a' } },
        ago: 2 * HOUR,
      });
      await world.finished('equal-over', { ago: 2 * HOUR });
      await world.left('equal-', ['equal-between', 'equal-tracked']);
      for (const [name, other] of [
        ['equalone', 'equaltwo'],
        ['equaltwo', 'equalone'],
      ] as const) {
        const { message } = await world.condition(name, { type: 'Overlapping', status: 'True' });
        expect(message).toContain(`${world.namespace}/${other}`);
      }
      await world.told('equaltwo', { lastRun: { skipped: { NotDue: 1, Tracked: 1 } } });

      await cluster.delete(world.watcherPlace('equaltwo'));
      await world.left('equal-', []);
      await world.condition('equalone', { type: 'Overlapping', status: 'False' });
    },
  );

  test.concurrent('a dry run neither deletes nor protects, and lists what it would delete', async () => {
    await world.finished('dry-mine', { ago: 2 * HOUR });
    await world.finished('dry-later');
    await world.watch('dry', { completedTTL: '30m', dryRun: true, priority: 9, keepLast: { completed: 0 } });
    await world.told('dry', {
      dryRunCandidates: [`${world.namespace}/dry-mine`, `${world.namespace}/dry-later`],
      lastRun: { deleted: 0, skipped: { DryRun: 2 } },
    });
    await world.condition('dry', { type: 'Ready', status: 'True', reason: 'DryRun' });
    expect(await world.names('dry-')).toHaveLength(2);

    await world.adjust('dry', { keepLast: { completed: 2 } });
    await world.watch('wet', { ...patterns('dry'), completedTTL: '90m' });
    await world.left('dry-', ['dry-later']);
    await eventually(() => {
      expect(deletedBy('dry-')).toEqual({ 'dry-mine': `${world.namespace}/wet` });
    });
    await world.condition('wet', { type: 'Overlapping', status: 'False' });
  });

  test.concurrent('a suspended one deletes nothing, keeps what it decides on, and is Ready', async () => {
    await world.finished('pause-job');
    await world.watch('pause', { completedTTL: '0s', suspend: true, priority: 1 });
    await world.watch('pauseless', { ...patterns('pause'), completedTTL: '0s' });
    await world.condition('pause', { type: 'Ready', status: 'True', reason: 'Suspended' });
    await world.told('pause', { lastRun: { skipped: { Suspended: 1 } } });
    await world.told('pauseless', { lastRun: { skipped: { DecidedByOther: 1 } } });
    expect(await world.names('pause-')).toEqual(['pause-job']);

    await world.adjust('pause', { suspend: false });
    await world.left('pause-', []);
  });
});

describe('rule 12: patterns', () => {
  test.concurrent('are found anywhere in a name, and none takes long', async () => {
    const long = 'a'.repeat(50);
    for (const name of ['x-middle-y', 'x-other-y', `${long}-b`]) await world.finished(`pattern-${name}`);
    await world.watch('pattern', {
      jobNamePatterns: ['ern-.-mid+le', '^pattern-(a+)+$'],
      completedTTL: '0s',
    });
    await world.left('pattern-', [`pattern-${long}-b`, 'pattern-x-other-y']);
    await world.told('pattern', { lastRun: { matched: 1, deleted: 1 } });
  });

  test.concurrent('and labels that match nothing show in the status', async () => {
    await world.finished('typo-job');
    await world.watch('typo', { completedTTL: '0s', selector: { matchLabels: { app: 'tpyo' } } });
    await world.told('typo', { lastRun: { namespaces: 0, matched: 0, finished: 0, deleted: 0, failed: 0 } });
    await world.adjust('typo', { selector: null });
    await world.left('typo-', []);
  });

  test.concurrent('that are none, and lists without any, are refused', async () => {
    for (const jobNamePatterns of [['('], ['a(?=b)'], []])
      await expect(world.watch('refused', { jobNamePatterns, completedTTL: '0s' })).rejects.toThrow(
        /jobNamePatterns/,
      );
  });
});

test.concurrent('rule 13: a finish in the future defers, and never deletes', async () => {
  const { status } = await world.finished('future-job', { ago: -HOUR });
  await world.finished('future-other');
  await world.watch('future', { completedTTL: '0s' });
  await world.left('future-', ['future-job']);
  const { completionTime } = status as { completionTime: string };
  await world.told('future', { nextDeletion: completionTime, lastRun: { skipped: { NotDue: 1 } } });
});

test.concurrent('rule 14: durations are those of Go', async () => {
  for (const completedTTL of ['1d', '-1s', '90']) {
    await expect(world.watch('refused', { completedTTL })).rejects.toThrow(/completedTTL/);
  }
  await world.finished('duration-old', { ago: 2 * HOUR });
  await world.finished('duration-new');
  await world.watch('duration', { completedTTL: '1h29m59.5s' });
  await world.left('duration-', ['duration-new']);
});

test.concurrent('rule 18: what another controller manages stays, unless it is asked for', async () => {
  const spec = { managedBy: 'kueue.x-k8s.io/multikueue' };
  await world.finished('managed-job', { spec });
  await world.finished('managed-other', { spec: { managedBy: 'kubernetes.io/job-controller' } });
  await world.watch('managed', { completedTTL: '0s' });
  await world.left('managed-', ['managed-job']);
  await world.told('managed', { lastRun: { skipped: { ManagedElsewhere: 1 } } });

  await world.adjust('managed', { ownerPolicy: { managedBy: 'Delete' } });
  await world.left('managed-', []);
});
