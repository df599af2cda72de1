import { beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { JobWatcherController } from '../../../src/kinds/job-watcher/controller.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { Sweeper } from '../../../src/kinds/job-watcher/sweep.js';
import { at, liveJob, settings, START } from './fixtures.js';
import { World } from './world.js';

let world: World;

beforeEach(() => {
  world = new World();
});

const SPEC = { completedTTL: '10s', frequency: '15s' };

/** So many Jobs that completed, each a second after the one before. */
function completeJobs(count: number, prefix = 'job'): void {
  for (let index = 0; index < count; index++)
    world.addJob({ name: `${prefix}-${index}`, ended: 'Complete', endedAt: index });
}

const forbidden = new OperatorError({ reason: 'Forbidden', message: 'You may not' });
const invalid = new OperatorError({ reason: 'Invalid', message: 'No', retry: 'onChange' });

function refuse(prefix: string, error = invalid): void {
  world.refuse = ({ metadata }) => (metadata.name.startsWith(prefix) ? error : undefined);
}

/** The API server goes away before this Job, and is back for the next turn. */
function lostAt(name: string): void {
  world.refuse = ({ metadata }) => {
    if (metadata.name !== name) return undefined;
    world.refuse = () => undefined;
    return new OperatorError({ reason: 'Unreachable', message: 'No answer' });
  };
}

const time = (seconds: number): Date => new Date(START + seconds * 1000);

describe('deletion', () => {
  test('comes by a timer when the time has come, and not before', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete', endedAt: 5 });
    expect(world.turn()).toEqual([]);
    expect(world.next).toEqual(time(15));

    world.now = 14.999;
    expect(world.turn()).toEqual([]);
    world.now = 15;
    expect(world.turn()).toEqual(['pi']);
  });

  test('is of the object that was judged, with its Pods, announced before and reported after', () => {
    world.addJob({ name: 'e', ended: 'Failed' });
    world.setWatcher({ failedTTL: '1s' });
    world.now = 20;
    world.turn();

    expect(world.plan?.steps).toMatchObject([
      {
        ...{ do: 'job-watcher/sweep', plannedFor: time(20).getTime() },
        object: { metadata: { name: 'e', uid: 'e', resourceVersion: expect.any(String) as string } },
        ...{ propagation: 'Background', announce: { type: 'Normal', reason: 'TTLExpired' } },
        audit: { watcher: 'default/sweeper', finish: 'failed', finishedAt: at(0), ttlSeconds: 1 },
      },
    ]);
    expect(world.announced).toEqual([
      `JobWatcher default/sweeper deletes it: it failed at ${at(0)}, and its TTL is 1 s`,
    ]);
    expect(world.events).toMatchObject([{ reason: 'Deleted', note: 'Deleted 1 Job of 1' }]);
  });

  test('keeps the pace that the admin has set', () => {
    const { handlers } = new JobWatcherController(jobWatcher.type, { ...settings, deletesPerSecond: 25 });
    expect(handlers).toEqual([new Sweeper(25)]);
    expect(handlers).not.toEqual([new Sweeper(10)]);
  });

  test('waits during a pause, and where the annotation says neither true nor false', () => {
    const paused = 'reconstruct.kosmos.io/paused';
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete' });
    world.annotateWatcher({ [paused]: 'true' });
    world.now = 20;
    expect(world.turn()).toEqual([]);
    expect(world.condition('Ready')).toBe('True Suspended');
    world.annotateWatcher({ [paused]: 'yes' });
    expect(world.turn()).toEqual([]);
    expect(world.condition('Stalled')).toBe('True InvalidAnnotation');
    world.annotateWatcher({ [paused]: 'false' });
    expect(world.turn()).toEqual(['pi']);
  });

  test('a plan holds a thousand, and the next comes at once', () => {
    world.setWatcher(SPEC);
    completeJobs(1500);
    world.now = 10_000;

    expect(world.turn()).toHaveLength(1000);
    expect(world.next).toEqual(time(10_000));
    expect(world.turn()).toHaveLength(500);
    expect(world.turn()).toEqual([]);
  });

  test('by the clock of the server, where ours is more than 30 s off, and a condition says so', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete' });
    world.addJob({ name: 'later', ended: 'Complete', endedAt: 60 });
    world.skew = 31;
    expect(world.turn()).toEqual(['pi']);
    expect(world.condition('ClockSkewed')).toBe('True ServerTimeUsed');
    expect(world.next).toEqual(time(70));

    world.skew = -31;
    world.now = 100;
    expect(world.turn()).toEqual([]);
    world.now = 101;
    expect(world.turn()).toEqual(['later']);
  });

  test('of a Job that finished at the end of all times spoils no status', () => {
    world.setWatcher({ completedTTL: '2000000h' });
    const lastTransitionTime = '9999-12-31T23:59:59Z';
    world.addJob({ status: { conditions: [{ type: 'Complete', status: 'True', lastTransitionTime }] } });
    world.turn();
    expect(world.status().nextDeletion).toBe('9999-12-31T00:00:00Z');
  });

  test('keepLast of any watcher holds, whatever its priority, but of a dry run', () => {
    world.setWatcher({ ...SPEC, priority: 1 }, { name: 'high' });
    world.setWatcher({ keepLast: { completed: 1 } }, { name: 'low' });
    completeJobs(2);
    expect(world.goTo(100)).toEqual(['job-0']);
    world.setWatcher({ keepLast: { completed: 1 }, dryRun: true }, { name: 'low' });
    expect(world.turn()).toEqual(['job-1']);
  });

  test('comes not of a dry run, which lists what would be deleted, twenty at most', () => {
    world.setWatcher({ ...SPEC, dryRun: true });
    completeJobs(30);
    world.now = 1000;
    expect(world.turn()).toEqual([]);
    expect(world.condition('Ready')).toBe('True DryRun');
    expect(world.status().dryRunCandidates).toHaveLength(20);
    expect(world.status().dryRunCandidates?.[0]).toBe('default/job-0');
    expect(world.status().lastRun).toMatchObject({ matched: 30, deleted: 0, skipped: { DryRun: 30 } });
    world.setWatcher(SPEC);
    expect(world.turn()).toHaveLength(30);
    expect(world.status().dryRunCandidates).toBeUndefined();
  });
});

describe('limits', () => {
  const limited = (limits: object) => ({ ...SPEC, limits });
  const throttled = limited({ maxPerRun: 2, mode: 'Throttle' });

  test('Abort deletes nothing and stalls, writes nothing meanwhile, and goes on once it fits', () => {
    world.setWatcher(limited({ maxPerRun: 2 }));
    completeJobs(3);
    world.addJob({ name: 'young', ended: 'Complete', endedAt: 5000 });
    world.now = 100;
    expect(world.turn()).toEqual([]);
    expect(world.condition('Stalled')).toBe('True BlastRadiusExceeded');
    expect(world.status().lastRun?.skipped).toEqual({ Limited: 3, NotDue: 1 });
    expect(world.events).toMatchObject([{ type: 'Warning', reason: 'BlastRadiusExceeded' }]);
    // What is due later doesn't count as its next deletion.
    expect(world.status().nextDeletion).toBeUndefined();
    expect(world.next).toEqual(time(115));
    for (world.now = 115; world.now < 3700; world.now += 15) {
      world.turn();
      expect([world.statusWrites, world.events]).toEqual([[], []]);
    }

    world.jobs.delete('default/job-1');
    expect(world.goTo(3700)).toEqual(['job-0', 'job-2']);
    expect(world.condition('Ready')).toBe('True Watching');
    expect(world.status().nextDeletion).toBe(at(5010));
  });

  test('Throttle deletes the oldest, and the next run comes after the frequency, also after a restart', () => {
    world.setWatcher(throttled);
    completeJobs(7);
    world.now = 100;
    expect(world.turn()).toEqual(['job-0', 'job-1']);
    expect(world.status().lastRun).toMatchObject({ matched: 7, deleted: 2, skipped: { Limited: 5 } });

    world.now = 114;
    expect(world.turn()).toEqual([]);
    expect(world.next).toEqual(time(115));
    world.now = 115;
    expect(world.turn()).toEqual(['job-2', 'job-3']);
    // A run with limits is in the status at once, so that a restart after it knows.
    expect(world.status()).toMatchObject({ lastStarted: at(115), lastRun: { deleted: 2 } });
    world.restart();
    world.now = 129;
    expect(world.turn()).toEqual([]);
    world.now = 130;
    expect(world.turn()).toHaveLength(2);
    expect(world.goTo(200)).toEqual(['job-6']);
  });

  test('a status that says something else meanwhile brings the next run no nearer, also after a restart', () => {
    world.setWatcher(throttled);
    completeJobs(5);
    world.now = 100;
    expect(world.turn()).toHaveLength(2);
    world.now = 105;
    world.addJob({ name: 'new', ended: 'Complete', endedAt: 0 });
    world.setWatcher({ completedTTL: '1h', jobNamePatterns: ['new'] }, { name: 'other' });
    expect(world.turn()).toEqual([]);
    expect(world.condition('Overlapping')).toBe('True SharedJobs');
    world.restart();
    expect(world.turn()).toEqual([]);
    expect(world.goTo(114)).toEqual([]);
    world.now = 115;
    expect(world.turn()).toHaveLength(2);
  });

  test('a changed spec is judged at once', () => {
    world.setWatcher(throttled);
    completeJobs(5);
    world.now = 200;
    expect(world.turn()).toHaveLength(2);
    world.now = 201;
    expect(world.turn()).toEqual([]);
    world.setWatcher(limited({ maxPerRun: 3, mode: 'Throttle' }));
    expect(world.turn()).toHaveLength(3);
  });

  test('a run that was broken off counts as one: the next comes after the frequency', () => {
    completeJobs(6);
    world.setWatcher(limited({ maxPerRun: 3, mode: 'Throttle' }));
    world.now = 100;
    lostAt('job-2');
    expect(world.turn()).toEqual(['job-0', 'job-1']);

    expect(world.turn()).toEqual([]);
    expect(world.status().lastRun).toMatchObject({ deleted: 2 });
    world.now = 115;
    expect(world.turn()).toEqual(['job-2', 'job-3', 'job-4']);
  });

  test('runs keep their distance where no status can be written', () => {
    world.setWatcher(throttled);
    completeJobs(7);
    world.refuseStatus = true;
    world.now = 100;
    expect(world.turn()).toHaveLength(2);
    world.now = 115;
    expect(world.turn()).toHaveLength(2);
    world.now = 116;
    expect(world.turn()).toEqual([]);
    expect(world.next).toEqual(time(130));
  });
});

describe('loop breaker', () => {
  const again = (uid: string): string[] => {
    world.addJob({ uid, ended: 'Complete', endedAt: world.now });
    return world.goTo(world.now + 100);
  };

  test('the third Job of a name stays until 24 hours after the older of the two deletions', () => {
    world.setWatcher(SPEC);
    expect([again('one'), again('two'), again('three')]).toEqual([['pi'], ['pi'], []]);
    expect(world.status().lastRun?.skipped).toEqual({ Recreated: 1 });

    const [first, second] = [10, 110] as const;
    const end = first + 24 * 3600;
    expect(world.next).toEqual(time(end));
    expect(world.goTo(end - 1)).toEqual([]);
    expect(world.goTo(end)).toEqual(['pi']);

    world.addJob({ uid: 'four', ended: 'Complete', endedAt: end });
    expect(world.goTo(end + 50)).toEqual([]);
    expect(world.next).toEqual(time(second + 24 * 3600));
  });

  test('it is announced by one event', () => {
    world.setWatcher(SPEC);
    for (const uid of ['one', 'two']) again(uid);
    world.addJob({ uid: 'three', ended: 'Complete', endedAt: world.now });
    world.now += 100;
    world.turn();
    expect(world.events).toMatchObject([{ type: 'Warning', reason: 'Recreated' }]);
    world.turn();
    expect(world.events).toEqual([]);
  });

  test('a measured skew that varies writes no status', () => {
    world.setWatcher(SPEC);
    world.deletions.add(liveJob({ uid: 'one' }), time(5.5).getTime());
    world.deletions.add(liveJob({ uid: 'two' }), time(50).getTime());
    world.addJob({ uid: 'three', ended: 'Complete', endedAt: 60 });
    world.now = 100;
    world.skew = 40;
    expect(world.turn()).toEqual([]);
    const end = 5.5 + 24 * 3600;
    expect(world.next).toEqual(time(end));
    // What is measured of the skew changes from answer to answer.
    world.now = 200;
    world.skew = 41;
    world.turn();
    expect(world.statusWrites).toEqual([]);
    expect(world.next).toEqual(time(end));
  });
});

describe('the status', () => {
  test('has many runs once per frequency, together', () => {
    world.setWatcher(SPEC);
    completeJobs(40);
    world.now = 5;
    world.turn();
    let writes = 0;
    for (world.now = 6; world.now <= 49; world.now++) {
      world.turn();
      writes += world.statusWrites.length;
    }
    // At 20, 35 and 50.
    expect(writes).toBe(2);
    world.goTo(51);
    expect(world.status()).toMatchObject({ lastStarted: at(36), lastRun: { deleted: 14 } });
  });

  test('has a changed condition at once, whatever the frequency', () => {
    world.setWatcher({ ...SPEC, frequency: '1h' });
    world.turn();
    world.setWatcher({ completedTTL: '1s' }, { name: 'other' });
    world.addJob({});
    world.now = 1;
    world.turn();
    expect(world.condition('Overlapping')).toBe('True SharedJobs');
    expect(world.statusWrites.sort()).toEqual(['other', 'sweeper']);
  });

  test('names no watcher of another namespace, and neither does the event on a Job', () => {
    world.setWatcher(SPEC);
    world.setWatcher({ namespacePatterns: ['.'], completedTTL: '50s' }, { name: 'secret', namespace: 'ops' });
    world.addJob({ ended: 'Complete' });
    world.now = 20;
    world.turn();
    const message = (name: string, namespace: string): string =>
      world.status(name, namespace).conditions?.find(({ type }) => type === 'Overlapping')?.message ?? '';
    expect(message('sweeper', 'default')).toContain('matched by 1 JobWatcher of other namespaces:');
    expect(message('secret', 'ops')).toContain('matched by 1 JobWatcher of other namespaces:');
    expect(JSON.stringify(world.status())).not.toContain('secret');

    world.setWatcher(SPEC, { name: 'mine' });
    world.now = 60;
    world.turn();
    expect(message('sweeper', 'default')).toContain('matched by default/mine and 1 more:');
    expect(world.announced).toEqual([
      expect.stringMatching(/^A JobWatcher of another namespace deletes it: /),
    ]);
  });

  test('has what was done and couldn’t be written later, once', () => {
    world.setWatcher({ ...SPEC, frequency: '1h' });
    world.turn();
    completeJobs(6);
    world.now = 20;
    lostAt('job-2');
    expect(world.turn()).toEqual(['job-0', 'job-1']);
    expect(world.turn()).toHaveLength(4);
    expect(world.statusWrites).toEqual([]);
    const lastRun = { matched: 6, finished: 6, deleted: 6, failed: 0 };
    world.goTo(3700);
    expect(world.status()).toMatchObject({ lastStarted: at(20), lastRun });
    world.goTo(9000);
    expect(world.status()).toMatchObject({ lastRun });
  });

  test('of a spec that can’t work stalls with its reason, and stops no other watcher', () => {
    world.setWatcher({ completedTTL: '1s', jobNamePatterns: ['('] }, { name: 'bad' });
    world.setWatcher({ completedTTL: '1s', namespacePatterns: ['^other$'] }, { name: 'far' });
    world.setWatcher({ ...SPEC, namespacePatterns: ['.'] });
    world.addJob({ name: 'own', ended: 'Complete' });
    world.addJob({ name: 'foreign', namespace: 'other', ended: 'Complete' });
    world.now = 100;
    expect(world.turn()).toEqual(['own']);
    expect(world.condition('Stalled', 'bad')).toBe('True InvalidPattern');
    expect(world.condition('Accepted', 'bad')).toBe('False InvalidPattern');
    expect(world.condition('Accepted', 'far')).toBe('False NamespaceNotPermitted');
    expect(world.condition('Accepted')).toBe('True Accepted');
    expect(world.condition('ScopeLimited')).toBe('True NamespaceNotPermitted');
    world.goTo(1000);
    expect(world.statusWrites).toEqual([]);
  });
});

describe('what is refused', () => {
  test('stalls, is counted, and stops nothing else', () => {
    world.setWatcher({ ...SPEC, failedTTL: '1s' });
    completeJobs(3);
    world.addJob({ name: 'f', ended: 'Failed', endedAt: 99 });
    world.addJob({ name: 'r' });
    world.setWatcher({ ...SPEC, dryRun: true }, { name: 'dry' });
    refuse('job-0', forbidden);
    world.now = 100;
    expect(world.turn()).toEqual(['job-1', 'job-2', 'f']);
    expect(world.condition('Stalled')).toBe('True Forbidden');
    expect(world.status().lastRun).toMatchObject({ deleted: 3, failed: 1 });
    expect(world.events.filter(({ regarding }) => regarding === 'sweeper')).toMatchObject([
      { type: 'Warning', reason: 'Forbidden' },
      { type: 'Warning', reason: 'DeletionFailed', note: "Deleted 3 Jobs of 5, 1 couldn't be deleted" },
    ]);
    const sum = (metric: string, labels?: object): number =>
      world.samples
        .filter((sample) => sample.metric === `reconstruct_jobs_${metric}`)
        .filter((sample) => !labels || JSON.stringify(sample.labels) === JSON.stringify(labels))
        .reduce((total, { value }) => total + value, 0);
    expect(sum('deleted_total', { outcome: 'completed' })).toBe(2);
    expect(sum('deleted_total', { outcome: 'failed' })).toBe(1);
    expect(sum('delete_errors_total', { reason: 'Forbidden' })).toBe(1);
    // Dry runs count nothing.
    expect(sum('skipped', { reason: 'NotFinished' })).toBe(1);
    expect(sum('skipped', { reason: 'DryRun' })).toBe(0);
    expect(sum('pending')).toBe(1);
    // Due at 11, 12 and 100.
    expect(sum('deletion_lag_seconds')).toBe(89 + 88 + 0);

    world.refuse = () => undefined;
    expect(world.goTo(200)).toEqual(['job-0']);
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('for good is reported and counted once, until it changes', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete', endedAt: -100 });
    refuse('pi');
    const errors = (): number =>
      world.samples.filter(({ metric }) => metric === 'reconstruct_jobs_delete_errors_total').length;
    world.turn();
    expect([errors(), world.statusWrites.length]).toEqual([1, 1]);
    expect(world.condition('Stalled')).toBe('True Invalid');
    expect(world.status().nextDeletion).toBeUndefined();
    for (world.now = 1; world.now < 1000; world.now += 7) {
      world.turn();
      expect([errors(), world.statusWrites, world.events]).toEqual([0, [], []]);
    }
    expect(world.status().lastRun).toMatchObject({ matched: 1, failed: 1 });

    const changedAt = world.now;
    world.addJob({ ended: 'Complete', endedAt: -100 });
    world.turn();
    expect(errors()).toBe(1);
    world.goTo(2000);
    expect(world.status()).toMatchObject({ lastStarted: at(changedAt), lastRun: { failed: 1 } });
    world.refuse = () => undefined;
    expect(world.turn()).toEqual(['pi']);
    world.goTo(3000);
    expect(world.status().lastRun).toMatchObject({ matched: 1, deleted: 1, failed: 0 });
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('never stops the others, though it is more than a plan holds, and is tried once', () => {
    world.setWatcher({ ...SPEC, frequency: '1s' });
    world.now = 2000;
    completeJobs(1100, 'stuck');
    world.addJob({ name: 'other', ended: 'Complete', endedAt: 1500 });
    refuse('stuck');
    world.turn();
    expect(world.turn()).toEqual(['other']);
    expect(world.condition('Stalled')).toBe('True Invalid');
    completeJobs(1000, 'more');
    expect(world.turn()).toHaveLength(1000);
    expect(world.condition('Stalled')).toBe('True Invalid');
    // It is the engine that asks again, when that may be of use.
    world.goTo(2010);
    expect(world.next).toBeUndefined();
  });
});

describe('where matching takes long', () => {
  beforeEach(() => {
    world.slow = true;
    world.setWatcher({ ...SPEC, jobNamePatterns: ['.'] });
    world.now = 20;
  });

  test('the event loop is served in between, and what is due goes all the same', () => {
    completeJobs(4);
    const turns: string[][] = [];
    do turns.push(world.turn());
    while (world.isAgain);
    expect(turns.length).toBeGreaterThan(2);
    expect(turns.slice(0, -1).flat()).toEqual([]);
    expect(turns.at(-1)).toHaveLength(4);
    expect(world.status().lastRun).toMatchObject({ matched: 4, deleted: 4 });
  });

  test('a diff shows it all at once', () => {
    completeJobs(4);
    world.turn();
    expect(world.conclusion.explanations?.[0]?.touches).toHaveLength(4);
  });

  test('Jobs that never come to an end hold up no others, and limits wait for all', () => {
    world.setWatcher({ ...SPEC, limits: { maxPerRun: 100 } }, { name: 'limited', namespace: 'team' });
    world.addJob({ name: 'small', ended: 'Complete' });
    for (let n = 0; n < 60; n++) world.addJob({ name: `t${n}`, namespace: 'team', ended: 'Complete' });
    const gone: string[] = [];
    for (let turn = 0; turn < 30; turn++) gone.push(...world.turn());
    expect(gone).toEqual(['small']);
    while (world.isAgain) gone.push(...world.turn());
    world.now = 30;
    gone.push(...world.turn());
    expect(gone).toHaveLength(61);
  });
});

describe('where there are very many watchers', () => {
  beforeEach(() => {
    for (let n = 0; n < 1200; n++) world.setWatcher(SPEC, { name: `w${n}` });
    world.addJob({ ended: 'Failed' });
  });

  test('no plan computes the status of more than 500, and one in which nothing has changed of none', () => {
    const counts: number[] = [];
    do counts.push((world.turn(), world.conclusion.status.length));
    while (world.isAgain);
    // Each is looked at once more when it is there.
    expect(counts).toEqual([500, 500, 500, 500, 400]);
    expect(world.condition('Overlapping', 'w1199')).toBe('True SharedJobs');

    world.turn();
    expect(world.conclusion.status).toEqual([]);
    expect(world.next).toBeUndefined();
    world.setWatcher({ ...SPEC, dryRun: true }, { name: 'w7' });
    world.turn();
    expect(world.condition('Ready', 'w7')).toBe('True DryRun');
  });

  test('statuses that can’t be written are tried in turn, at a pace', () => {
    world.refuseStatus = true;
    while ((world.turn(), world.isAgain));
    const tried = new Set<string>();
    for (let turn = 0; turn < 3; turn++) {
      world.turn();
      for (const { target } of world.conclusion.status) tried.add(target.metadata.name);
      expect(world.isAgain).toBe(false);
      expect(world.next).toEqual(time(1));
    }
    expect(tried.size).toBe(1200);
  });
});
