import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { eventually } from '../full/support/eventually.js';
import { drop, loseAnswer, losing, oneIn, recorded } from './support/faults.js';
import { JobStage, KEEP } from './support/job-stage.js';
import { lists, watches, writesTo } from './support/proxied-request.js';
import { WatchLine } from '../../src/testing/watch-line.js';

/** With a control plane of its own, in which nobody else writes to Jobs. */
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
});
afterAll(() => sandbox.stop());

const atOnce = { completedTTL: '0s', failedTTL: '0s', frequency: '1s' };
const named = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
const allDeleted = (names: readonly string[]): string[] => names.map((name) => `${name} 200`).sort();

/** How a watch of Jobs may end. */
const ends: readonly (readonly [how: string, end: (stage: JobStage) => number])[] = [
  ['cut', ({ proxy }) => proxy.cut(watches('jobs'))],
  ['cut with its connection', ({ proxy }) => proxy.cutConnections(watches('jobs'))],
  ['told that it has expired', ({ proxy }) => proxy.inject(watches('jobs'), WatchLine.error(410, 'Expired'))],
];

test.concurrent.for(ends)(
  'while the watch of Jobs is %s again and again, all that is due goes, once, and nothing else does',
  async ([, end]) => {
    await using stage = await JobStage.start('ended-watch', sandbox);
    const due = named('due', 12);
    const kept = named('kept', 4);
    const running = named('running', 4);
    for (const name of [...kept, ...running]) await stage.makeJob(name);
    for (const name of kept) await stage.finish(name, 10);
    for (const name of kept) await stage.annotate(name, KEEP);
    const deletions = await stage.deletionsFromNowOn();
    await stage.makeWatcher('sweeper', { ...atOnce, completedTTL: '2s' });

    for (const [index, name] of due.entries()) {
      // Some are due at once, and some in two seconds.
      await stage.makeJob(name, { finishedSecondsAgo: index % 2 === 0 ? 10 : 0 });
      if (index % 4 === 1)
        await eventually(() => {
          expect(end(stage)).toBeGreaterThan(0);
        });
    }

    const left = [...kept, ...running].sort();
    await eventually(async () => {
      expect(await stage.jobNames()).toEqual(left);
      expect(await deletions()).toEqual(allDeleted(due));
    });
    await eventually(async () => {
      const { lastRun } = await stage.statusOf('sweeper');
      expect(lastRun?.skipped).toEqual({ KeepAnnotation: kept.length, NotFinished: running.length });
    });
    stage.logsNoError();
  },
);

test.concurrent(
  'Jobs that were changed unheard before they were due stay; those that have finished unheard go after a list',
  async () => {
    await using stage = await JobStage.start('unheard', sandbox);
    const deletions = await stage.deletionsFromNowOn();
    await stage.makeJob('kept', { finishedSecondsAgo: 0 });
    await stage.makeJob('finished');
    await stage.makeJob('seen', { finishedSecondsAgo: 0 });
    await stage.makeWatcher('sweeper', { ...atOnce, completedTTL: '1h' });
    await eventually(async () => {
      expect((await stage.statusOf('sweeper')).lastRun).toMatchObject({ matched: 3, finished: 2 });
    });
    const unheard = ['kept', 'finished'].map((name) => stage.proxy.onEvents(watches('jobs'), losing(name)));
    await stage.annotate('kept', KEEP);
    await stage.finish('finished', 10);

    await stage.adjustWatcher('sweeper', { completedTTL: '0s' });
    await eventually(async () => {
      expect(await stage.jobNames()).toEqual(['finished', 'kept']);
      expect(await deletions()).toEqual(['kept 409', 'seen 200']);
    });
    // What was refused is read, so that it is known from then on; of the other, only a list can tell.
    for (const rule of unheard) rule.remove();
    expect(stage.proxy.inject(watches('jobs'), WatchLine.error(410, 'Expired'))).toBe(1);
    await eventually(async () => {
      expect(await stage.jobNames()).toEqual(['kept']);
      expect(await deletions()).toEqual(['finished 200', 'kept 409', 'seen 200']);
    });
    stage.logsNoError();
  },
);

test.concurrent('a list of Jobs that was true once deletes nothing that isn’t due now', async () => {
  await using stage = await JobStage.prepare('old-list', sandbox);
  const { proxy } = stage;
  const stale = ['kept', 'reborn', 'gone', 'due'];
  for (const name of stale) await stage.makeJob(name, { finishedSecondsAgo: 10 });
  // The first controller only lists them.
  const kept: WatchLine[] = [];
  const stop = proxy.listen(watches('jobs'), (line) => kept.push(line));
  await stage.startController();
  await stage.controller.stop();
  stop();
  await stage.annotate('kept', KEEP);
  await stage.deleteJob('reborn');
  await stage.makeJob('reborn');
  await stage.deleteJob('gone');
  const uids = [await stage.uidOf('kept'), await stage.uidOf('reborn')];
  await stage.makeJob('new', { finishedSecondsAgo: 10 });
  await stage.makeWatcher('sweeper', atOnce);
  const deletions = await stage.deletionsFromNowOn();

  const rule = proxy.on(lists('jobs'), recorded(kept));
  // Nothing is told of what came after.
  const silence = proxy.on(watches('jobs'), drop);
  await stage.startController({ awaitStart: false });
  await eventually(async () => {
    expect(await deletions()).toEqual(['due 200', 'gone 404', 'kept 409', 'reborn 409']);
  });
  rule.remove();
  silence.remove();
  proxy.cut(watches('jobs'));

  await eventually(async () => {
    expect(await stage.jobNames()).toEqual(['kept', 'reborn']);
    expect((await deletions()).filter((line) => line.endsWith('200'))).toEqual(['due 200', 'new 200']);
  });
  expect([await stage.uidOf('kept'), await stage.uidOf('reborn')]).toEqual(uids);
  stage.logsNoError();
});

test.concurrent('a deletion whose answer is lost is asked for again, and counted once', async () => {
  await using stage = await JobStage.start('lost-answer', sandbox);
  const due = named('due', 3);
  for (const name of due) await stage.makeJob(name, { finishedSecondsAgo: 10 });
  const deletions = await stage.deletionsFromNowOn();
  const rule = stage.proxy.on(writesTo('jobs'), oneIn(100, loseAnswer));

  await stage.makeWatcher('sweeper', { ...atOnce, completedTTL: '1h' });
  await eventually(async () => {
    expect((await stage.statusOf('sweeper')).lastRun).toMatchObject({ matched: 3, finished: 3 });
  });
  await stage.adjustWatcher('sweeper', { completedTTL: '0s' });

  await eventually(async () => {
    expect((await stage.statusOf('sweeper')).lastRun).toMatchObject({ matched: 3, deleted: 3, failed: 0 });
  });
  expect(rule.hits).toBe(4);
  const asked = await deletions();
  expect(asked.filter((line) => line.endsWith('200'))).toEqual(allDeleted(due));
  expect(asked.filter((line) => line.endsWith('404'))).toHaveLength(1);
  expect(stage.audited()).toEqual(due.map((name) => `${name} deleted`));
  stage.logsNoError();
});
