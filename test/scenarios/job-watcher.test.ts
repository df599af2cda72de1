import { describe, expect, test } from 'vitest';
import { WatchLine } from '../../src/testing/watch-line.js';
import { eventually } from '../support/cluster.js';
import {
  clockAhead,
  drop,
  everything,
  lists,
  loseAnswer,
  losing,
  once,
  recorded,
  respond,
  watches,
  writesTo,
} from '../support/faults.js';
import { inspectable, Inspector } from '../support/inspector.js';
import { HOUR, KEEP } from '../support/jobs.js';
import type { Jobs } from '../support/jobs.js';
import { JobStage } from '../support/stages.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** No controllers of Kubernetes write to Jobs in it. */
const own = ownControlPlane({ apiOnly: true });

const start = (purpose: string): Promise<JobStage> => JobStage.start(purpose, own.sandbox);
const all = { jobNamePatterns: ['.'], completedTTL: '0s', failedTTL: '0s' };
const named = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
const sorted = async (lines: Promise<string[]>): Promise<string[]> => (await lines).sort();

interface JobChange {
  readonly change: (jobs: Jobs) => Promise<void>;
  /** Why it stays then. @default - it goes all the same */
  readonly stays?: string;
}

/** Changes of a Job that was judged, before its deletion reaches the API server. */
const changes: readonly (readonly [what: string, JobChange])[] = [
  [
    'replaced by a namesake that runs',
    {
      change: async (jobs) => {
        await jobs.delete('pi');
        await jobs.create('pi', { spec: {} });
      },
      stays: 'NotFinished',
    },
  ],
  [
    'replaced by a namesake that has finished and is kept',
    {
      change: async (jobs) => {
        await jobs.delete('pi');
        await jobs.finished('pi', { annotations: KEEP });
      },
      stays: 'KeepAnnotation',
    },
  ],
  ['annotated to be kept', { change: (jobs) => jobs.annotate('pi', KEEP), stays: 'KeepAnnotation' }],
  [
    'given more time',
    {
      change: (jobs) => jobs.annotate('pi', { 'batch.my.github.com/ttl-after-completed': '2h' }),
      stays: 'NotDue',
    },
  ],
  [
    'handed over to Kubernetes’ own controller',
    {
      change: async (jobs) => {
        await jobs.cluster.merge(jobs.place('pi'), { spec: { ttlSecondsAfterFinished: 7200 } });
      },
      stays: 'NativeTTL',
    },
  ],
  [
    'changed in what doesn’t count',
    { change: (jobs) => jobs.annotate('pi', { 'example.com/note': 'seen' }) },
  ],
];

test.concurrent.for(
  changes.flatMap(
    ([what, change]) =>
      [
        [what, 'is on its way', change],
        [what, 'is lost with its controller', change],
      ] as const,
  ),
)('a Job that is %s while its deletion %s is judged again', async ([, how, { change, stays }]) => {
  const isKilled = how !== 'is on its way';
  await using stage = await start('changed');
  const { jobs } = stage;
  const due = async (): Promise<void> => {
    await jobs.finished('pi');
    await jobs.watch('sweeper', all);
  };
  const deletions = await stage.deletionsFromNowOn();
  const matches = writesTo('jobs', 'pi');
  const gate = await (isKilled ? stage.killedWhileHeld(matches, due) : stage.held(matches, due));
  await change(jobs);
  const uid = await jobs.uidOf('pi');

  if (isKilled) await stage.startController();
  gate?.open();
  // Another one that is due goes after all that has happened so far.
  await jobs.finished('probe');
  await jobs.left('probe');

  const gone = stays === undefined;
  const wanted = [...(gone ? ['pi 200'] : []), ...(isKilled ? [] : ['pi 409']), 'probe 200'];
  await eventually(async () => {
    expect(await sorted(deletions())).toEqual(wanted);
    if (!gone) expect((await jobs.watcher('sweeper')).status?.lastRun?.skipped).toEqual({ [stays]: 1 });
  });
  expect(await jobs.uidOf('pi')).toBe(gone ? undefined : uid);
  if (!isKilled) expect(stage.audited()).toContain('pi changed');
  stage.logsNoError();
});

/** Ends of a watch of Jobs. */
const ends: readonly (readonly [how: string, end: (stage: JobStage) => number])[] = [
  ['cut', ({ proxy }) => proxy.cut(watches('jobs'))],
  ['cut with its connection', ({ proxy }) => proxy.cutConnections(watches('jobs'))],
  ['expired', ({ proxy }) => proxy.inject(watches('jobs'), WatchLine.error(410, 'Expired'))],
];

test.concurrent.for(ends)(
  'while the watch of Jobs is %s again and again, all that is due goes, once, and nothing else does',
  async ([, end]) => {
    await using stage = await start('ended-watch');
    const { jobs } = stage;
    const [due, kept, running] = [named('due', 12), named('kept', 4), named('running', 4)];
    for (const name of running) await jobs.create(name);
    for (const name of kept) await jobs.finished(name, { annotations: KEEP });
    const deletions = await stage.deletionsFromNowOn();
    await jobs.watch('sweeper', { ...all, completedTTL: '2s' });

    for (const [index, name] of due.entries()) {
      // Some are due at once, and some in two seconds.
      await jobs.finished(name, { ago: index % 2 === 0 ? 10 : 0 });
      if (index % 4 === 1)
        await eventually(() => {
          expect(end(stage)).toBeGreaterThan(0);
        });
    }

    await jobs.left('', ...kept, ...running);
    await eventually(async () => {
      expect(await sorted(deletions())).toEqual(due.map((name) => `${name} 200`).sort());
      const { lastRun } = (await jobs.watcher('sweeper')).status ?? {};
      expect(lastRun?.skipped).toEqual({ KeepAnnotation: kept.length, NotFinished: running.length });
    });
    stage.logsNoError();
  },
);

test.concurrent(
  'Jobs that were changed unheard before they were due stay; those that have finished unheard go after a list',
  async () => {
    await using stage = await start('unheard');
    const { jobs, proxy } = stage;
    const deletions = await stage.deletionsFromNowOn();
    for (const name of ['kept', 'seen']) await jobs.finished(name, { ago: 0 });
    await jobs.create('finished');
    await jobs.watch('sweeper', { ...all, completedTTL: '1h' });
    await jobs.told('sweeper', { lastRun: { matched: 3, finished: 2 } });
    const unheard = ['kept', 'finished'].map((name) => proxy.onEvents(watches('jobs'), losing(name)));
    await jobs.annotate('kept', KEEP);
    await jobs.finish('finished');

    await jobs.adjust('sweeper', { completedTTL: '0s' });
    await jobs.left('', 'finished', 'kept');
    await eventually(async () => {
      expect(await sorted(deletions())).toEqual(['kept 409', 'seen 200']);
    });
    // The one that was refused is read, so that it is known from then on; the other is seen by a list alone.
    for (const rule of unheard) rule.remove();
    expect(proxy.inject(watches('jobs'), WatchLine.error(410, 'Expired'))).toBe(1);
    await jobs.left('', 'kept');
    await eventually(async () => {
      expect(await sorted(deletions())).toEqual(['finished 200', 'kept 409', 'seen 200']);
    });
    stage.logsNoError();
  },
);

test.concurrent('a list of Jobs that was true once deletes nothing that isn’t due now', async () => {
  await using stage = await JobStage.prepare('old-list', own.sandbox);
  const { jobs, proxy } = stage;
  for (const name of ['kept', 'reborn', 'gone', 'due']) await jobs.finished(name);
  // The first controller only lists them.
  const listed: WatchLine[] = [];
  const stop = proxy.listen(watches('jobs'), (line) => listed.push(line));
  await stage.startController();
  await stage.controller.stop();
  stop();
  await jobs.annotate('kept', KEEP);
  await jobs.delete('reborn');
  await jobs.create('reborn');
  await jobs.delete('gone');
  const uids = [await jobs.uidOf('kept'), await jobs.uidOf('reborn')];
  await jobs.finished('new');
  await jobs.watch('sweeper', all);
  const deletions = await stage.deletionsFromNowOn();

  const rules = [proxy.on(lists('jobs'), recorded(listed)), proxy.on(watches('jobs'), drop)];
  await stage.startController({ awaitStart: false });
  await eventually(async () => {
    expect(await sorted(deletions())).toEqual(['due 200', 'gone 404', 'kept 409', 'reborn 409']);
  });
  for (const rule of rules) rule.remove();
  proxy.cut(watches('jobs'));

  await jobs.left('', 'kept', 'reborn');
  await eventually(async () => {
    const carriedOut = (await sorted(deletions())).filter((line) => line.endsWith('200'));
    expect(carriedOut).toEqual(['due 200', 'new 200']);
  });
  expect([await jobs.uidOf('kept'), await jobs.uidOf('reborn')]).toEqual(uids);
  stage.logsNoError();
});

test.concurrent('a deletion whose answer is lost is sent again, and counted once', async () => {
  await using stage = await start('lost-answer');
  const { jobs } = stage;
  const due = named('due', 3);
  for (const name of due) await jobs.finished(name);
  const deletions = await stage.deletionsFromNowOn();
  const rule = stage.proxy.on(writesTo('jobs'), once(loseAnswer));

  await jobs.watch('sweeper', { ...all, completedTTL: '2h' });
  await jobs.told('sweeper', { lastRun: { matched: 3, finished: 3 } });
  await jobs.adjust('sweeper', { completedTTL: '0s' });

  await jobs.told('sweeper', { lastRun: { matched: 3, deleted: 3, failed: 0 } });
  expect(rule.hits).toBe(4);
  const asked = await sorted(deletions());
  expect(asked.filter((line) => line.endsWith('200'))).toEqual(due.map((name) => `${name} 200`));
  expect(asked.filter((line) => line.endsWith('404'))).toHaveLength(1);
  expect(stage.audited()).toEqual(due.map((name) => `${name} deleted`));
  stage.logsNoError();
});

test.concurrent('one Job that fails however often never stops the others', async () => {
  await using stage = await start('faulty');
  const { jobs } = stage;
  const rule = stage.proxy.on(writesTo('jobs', 'faulty-job'), respond(500));
  await jobs.finished('faulty-job');
  await jobs.watch('faulty', { completedTTL: '0s' });
  await eventually(() => {
    expect(rule.hits).toBeGreaterThan(10);
  });
  await jobs.told('faulty', { lastRun: { deleted: 0, failed: 1 } });
  await jobs.finished('faulty-other');
  await jobs.left('faulty-', 'faulty-job');
  rule.remove();
  await jobs.left('faulty-');
  await jobs.condition('faulty', { type: 'Ready', status: 'True' });
  expect(new Set(stage.audited('faulty-job'))).toEqual(
    new Set(['faulty-job ServerOverloaded', 'faulty-job deleted']),
  );
});

test.concurrent(
  'a Job whose deletion is put off for a minute holds back no other, and is not sent again meanwhile',
  async () => {
    await using stage = await start('put-off');
    const { jobs } = stage;
    const rule = stage.proxy.on(writesTo('jobs', 'put-off-job'), respond(429, { 'retry-after': '60' }));
    await jobs.finished('put-off-job');
    await jobs.watch('put-off', { completedTTL: '0s' });
    await stage.controller.logged((line) => line.name === 'put-off-job' && line.outcome !== undefined);
    for (const name of ['put-off-second', 'put-off-third']) {
      await jobs.finished(name);
      await jobs.left('put-off-', 'put-off-job');
    }
    expect(rule.hits).toBe(1);
    // Nor is it announced again, or audited.
    expect(stage.audited('put-off-job')).toHaveLength(1);
  },
);

describe('rule 13: the API server’s clock counts where the operator’s is more than 30 s off', () => {
  test.concurrent.for([
    // By the operator's clock, the first has an hour to go, and the second is due for half an hour.
    { name: 'ahead', seconds: 7200, deleted: ['ahead-early 200', 'ahead-over 200'] },
    { name: 'behind', seconds: -7200, deleted: [] },
    { name: 'near', seconds: 20, deleted: ['near-over 200'], skewed: 'False' as const },
  ])('$name by $seconds s', async ({ name, seconds, deleted, skewed = 'True' as const }) => {
    await using stage = await JobStage.prepare('clock', own.sandbox);
    const { jobs } = stage;
    stage.proxy.on(everything, clockAhead(seconds * 1000));
    await stage.startController();
    const deletions = await stage.deletionsFromNowOn();
    await jobs.finished(`${name}-early`, { ago: 1800 });
    await jobs.finished(`${name}-over`, { ago: 2 * HOUR });
    await jobs.watch(name, { completedTTL: '90m' });
    await jobs.condition(name, { type: 'ClockSkewed', status: skewed });
    await jobs.told(name, { lastRun: { deleted: deleted.length } });
    expect(await sorted(deletions())).toEqual(deleted);
  });
});

test('rule 17: of large Jobs next to nothing is kept, and they come as a stream', async () => {
  await using stage = await JobStage.prepare('large', own.sandbox);
  const { jobs, proxy } = stage;
  await jobs.finished('large-first');
  await jobs.watch('large', { completedTTL: '1h30m' });
  await stage.startController({ nodeArgs: inspectable, args: ['--log-level', 'info'] });
  await jobs.told('large', { lastRun: { matched: 1 } });
  using inspector = await Inspector.attach(stage.controller);
  const before = await inspector.heapBytes();
  const annotations = { 'example.com/notes': 'x'.repeat(200_000) };
  const count = 40;
  for (const name of named('large', count))
    await jobs.finished(name, { annotations, image: `example.com/${'x'.repeat(200_000)}` });
  await jobs.told('large', { lastRun: { matched: count + 1 } });
  // They are 16 MB.
  expect((await inspector.heapBytes()) - before).toBeLessThan(4_000_000);
  expect(proxy.requests.some(lists('jobs'))).toBe(true);
  const read = proxy.requests.filter(
    ({ method, resource, isWatch }) => method === 'GET' && resource === 'jobs' && !isWatch,
  );
  expect(read.filter(({ name }) => name === undefined)).toEqual([]);
});
