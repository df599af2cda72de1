import { beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { rulesFor } from '../../../src/install/rules.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { at, START } from './fixtures.js';
import { World } from './world.js';

let world: World;

beforeEach(() => {
  world = new World();
});

const SPEC = { completedTTL: '10s', frequency: '15s' };

/** So many Jobs that completed, each a second after the one before. */
function completeJobs(count: number, from = 0): void {
  for (let index = from; index < from + count; index++)
    world.addJob({ name: `job-${index}`, ended: 'Complete', endedAt: index });
}

const forbidden = new OperatorError({ reason: 'Forbidden', message: 'You may not' });

describe('deletion', () => {
  test('comes by a timer when the time has come, and not before', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete', endedAt: 5 });
    expect(world.turn()).toEqual([]);
    expect(world.next).toEqual(new Date(START + 15_000));

    world.now = 14.999;
    expect(world.turn()).toEqual([]);
    world.now = 15;
    expect(world.turn()).toEqual(['pi']);
  });

  test('is of the object that was judged, with its Pods, told before and after', () => {
    world.setWatcher({ ...SPEC, propagationPolicy: 'Foreground' });
    world.addJob({ ended: 'Complete' });
    world.goTo(20);

    world.addJob({ name: 'e', ended: 'Failed' });
    world.setWatcher({ failedTTL: '1s' });
    world.turn();
    expect(world.plan?.sweep?.steps).toMatchObject([
      {
        ...{ object: { metadata: { name: 'e', uid: 'e' } }, propagation: 'Background' },
        announce: { type: 'Normal', reason: 'TTLExpired' },
        audit: { watcher: 'default/sweeper', finish: 'failed', finishedAt: at(0), ttlSeconds: 1 },
      },
    ]);
    expect(world.announced).toEqual([
      `JobWatcher default/sweeper deletes it: it failed at ${at(0)}, and its TTL is 1 s`,
    ]);
    expect(world.events).toMatchObject([{ reason: 'Deleted', note: 'Deleted 1 Job of 1' }]);
    expect(world.plan?.sweep?.deletesPerSecond).toBe(10);
  });

  test('of a Job that has changed meanwhile is judged again', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete' });
    world.now = 20;
    world.refuse = (job) => {
      world.jobs.set('default/pi', { ...job, metadata: { ...job.metadata, resourceVersion: '99' } });
      return undefined;
    };
    world.turn();
    world.addJob({ ended: 'Complete', metadata: { annotations: { 'batch.my.github.com/keep': 'true' } } });
    expect(world.turn()).toEqual([]);
  });

  test('a plan holds a thousand, and the next comes at once', () => {
    world.setWatcher(SPEC);
    completeJobs(1500);
    world.now = 10_000;

    expect(world.turn()).toHaveLength(1000);
    expect(world.next).toEqual(new Date(START + 10_000_000));
    expect(world.turn()).toHaveLength(500);
    expect(world.turn()).toEqual([]);
  });
});

describe('clocks', () => {
  test('beyond that the server’s, and a condition says so', () => {
    world.setWatcher(SPEC);
    world.addJob({ ended: 'Complete' });
    world.addJob({ name: 'later', ended: 'Complete', endedAt: 60 });
    world.skew = 31;
    expect(world.turn()).toEqual(['pi']);
    expect(world.condition('ClockSkewed')).toBe('True ServerTimeUsed');
    expect(world.next).toEqual(new Date(START + 70_000));

    world.skew = -31;
    world.now = 100;
    expect(world.turn()).toEqual([]);
    world.now = 101;
    expect(world.turn()).toEqual(['later']);
  });

  test('a finish at the end of all times spoils no status', () => {
    world.setWatcher({ completedTTL: '2000000h' });
    world.addJob({
      status: {
        conditions: [{ type: 'Complete', status: 'True', lastTransitionTime: '9999-12-31T23:59:59Z' }],
      },
    });
    world.turn();
    expect(world.status().nextDeletion).toBe('9999-12-31T00:00:00Z');
  });
});

describe('limits', () => {
  const limited = (limits: object) => ({ ...SPEC, limits });

  test('Abort deletes nothing and stalls, judges again, and goes on once it fits', () => {
    world.setWatcher(limited({ maxPerRun: 2 }));
    completeJobs(3);
    world.now = 100;
    expect(world.turn()).toEqual([]);
    expect(world.condition('Stalled')).toBe('True BlastRadiusExceeded');
    expect(world.status().lastRun?.skipped).toEqual({ Limited: 3 });
    expect(world.events).toMatchObject([{ type: 'Warning', reason: 'BlastRadiusExceeded' }]);
    expect(world.next).toEqual(new Date(START + 115_000));
    world.turn();
    expect(world.events).toEqual([]);

    world.jobs.delete('default/job-1');
    expect(world.goTo(116)).toEqual(['job-0', 'job-2']);
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('Throttle deletes the oldest, and the next run comes after the frequency', () => {
    world.setWatcher(limited({ maxPerRun: 2, mode: 'Throttle' }));
    completeJobs(5);
    world.now = 100;
    expect(world.turn()).toEqual(['job-0', 'job-1']);
    expect(world.status().lastRun).toMatchObject({ matched: 5, deleted: 2, skipped: { Limited: 3 } });

    world.now = 114;
    expect(world.turn()).toEqual([]);
    expect(world.next).toEqual(new Date(START + 115_000));
    world.now = 115;
    expect(world.turn()).toEqual(['job-2', 'job-3']);
    expect(world.goTo(200)).toEqual(['job-4']);
  });

  test('a restart keeps the pause between two runs, by the status', () => {
    world.setWatcher(limited({ maxPerRun: 2, mode: 'Throttle' }));
    completeJobs(5);
    world.now = 100;
    world.turn();
    world.restart();
    world.now = 110;
    expect(world.turn()).toEqual([]);
    world.now = 115;
    expect(world.turn()).toHaveLength(2);
  });

  test('a run with limits is told at once, so that a restart after it knows', () => {
    world.setWatcher(limited({ maxPerRun: 2, mode: 'Throttle' }));
    completeJobs(5);
    world.now = 8;
    world.turn();
    world.now = 14;
    expect(world.turn()).toEqual(['job-0', 'job-1']);
    expect(world.status()).toMatchObject({ lastStarted: at(14), lastRun: { deleted: 2 } });
    world.restart();
    world.now = 24;
    expect(world.turn()).toEqual([]);
    world.now = 29;
    expect(world.turn()).toHaveLength(2);
  });

  test('a changed spec is judged at once', () => {
    world.setWatcher(limited({ maxPerRun: 2 }));
    completeJobs(3);
    world.now = 100;
    world.turn();
    world.setWatcher(limited({ maxPerRun: 3 }));
    expect(world.turn()).toHaveLength(3);

    completeJobs(5);
    world.now = 200;
    world.setWatcher(limited({ maxPerRun: 2, mode: 'Throttle' }));
    expect(world.turn()).toHaveLength(2);
    world.now = 201;
    expect(world.turn()).toEqual([]);
    world.setWatcher(limited({ maxPerRun: 3, mode: 'Throttle' }));
    expect(world.turn()).toHaveLength(3);
  });
});

describe('loop breaker', () => {
  const again = (uid: string): string[] => {
    world.addJob({ uid, ended: 'Complete', endedAt: world.now });
    return world.goTo(world.now + 100);
  };

  test('the third Job of a name stays, and is told once', () => {
    world.setWatcher(SPEC);
    expect(again('one')).toEqual(['pi']);
    expect(again('two')).toEqual(['pi']);
    expect(again('three')).toEqual([]);
    expect(world.status().lastRun?.skipped).toEqual({ Recreated: 1 });

    world.jobs.clear();
    world.goTo(world.now + 100);
    world.addJob({ uid: 'four', ended: 'Complete', endedAt: world.now });
    world.now += 100;
    world.turn();
    expect(world.events).toMatchObject([{ type: 'Warning', reason: 'Recreated' }]);
    world.turn();
    expect(world.events).toEqual([]);
  });

  test('it stays until 24 hours after the older of the two deletions, and a timer ends it', () => {
    world.setWatcher(SPEC);
    again('one');
    again('two');
    again('three');
    const [first, second] = [10, 110] as const;
    const end = first + 24 * 3600;
    expect(world.next).toEqual(new Date(START + end * 1000));
    expect(world.goTo(end - 1)).toEqual([]);
    expect(world.goTo(end)).toEqual(['pi']);

    world.addJob({ uid: 'four', ended: 'Complete', endedAt: end });
    expect(world.goTo(end + 50)).toEqual([]);
    expect(world.next).toEqual(new Date(START + (second + 24 * 3600) * 1000));
  });

  test('a measured skew that varies writes no status', () => {
    world.setWatcher(SPEC);
    const [first, second] = [5.5, 50].map((time) => new Date(START + time * 1000));
    world.deletions.set('default/pi', [
      { uid: 'one', at: first! },
      { uid: 'two', at: second! },
    ]);
    world.addJob({ uid: 'three', ended: 'Complete', endedAt: 60 });
    world.now = 100;
    world.skew = 40;
    expect(world.turn()).toEqual([]);
    const end = 5.5 + 24 * 3600;
    expect(world.next).toEqual(new Date(START + end * 1000));
    // What is measured of the skew changes from answer to answer.
    world.now = 200;
    world.skew = 41;
    world.turn();
    expect(world.statusWrites).toEqual([]);
    expect(world.next).toEqual(new Date(START + end * 1000));
    expect(world.goTo(end)).toEqual(['pi']);
  });
});

describe('keepLast', () => {
  test('that of any watcher holds, whatever its priority, but of a dry run', () => {
    world.setWatcher({ ...SPEC, priority: 1 }, { name: 'high' });
    world.setWatcher({ keepLast: { completed: 1 } }, { name: 'low' });
    completeJobs(2);
    expect(world.goTo(100)).toEqual(['job-0']);
    world.setWatcher({ keepLast: { completed: 1 }, dryRun: true }, { name: 'low' });
    expect(world.turn()).toEqual(['job-1']);
  });
});

describe('dry run and suspension', () => {
  test('a dry run lists what would be deleted, twenty at most', () => {
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

  test('a suspended one is Ready and deletes nothing', () => {
    world.setWatcher({ ...SPEC, suspend: true });
    completeJobs(1);
    expect(world.goTo(1000)).toEqual([]);
    expect(world.condition('Ready')).toBe('True Suspended');
    expect(world.status().lastRun?.skipped).toEqual({ Suspended: 1 });
  });
});

describe('what is told', () => {
  test('many runs are told once per frequency, together', () => {
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

  test('a changed condition is written at once, whatever the frequency', () => {
    world.setWatcher({ ...SPEC, frequency: '1h' });
    world.turn();
    world.setWatcher({ completedTTL: '1s' }, { name: 'other' });
    world.addJob({});
    world.now = 1;
    world.turn();
    expect(world.condition('Overlapping')).toBe('True SharedJobs');
    expect(world.statusWrites.sort()).toEqual(['other', 'sweeper']);
  });

  test('watchers of other namespaces that match the same Jobs are counted, and their names not shown', () => {
    world.setWatcher(SPEC);
    world.setWatcher({ namespacePatterns: ['.'], completedTTL: '1s' }, { name: 'secret', namespace: 'ops' });
    world.addJob({ ended: 'Complete' });
    world.now = 20;
    world.turn();
    const message = (name: string, namespace: string): string =>
      world.status(name, namespace).conditions?.find(({ type }) => type === 'Overlapping')?.message ?? '';
    expect(message('sweeper', 'default')).toContain('matched by 1 JobWatcher of other namespaces:');
    expect(message('secret', 'ops')).toContain('matched by 1 JobWatcher of other namespaces:');
    expect(JSON.stringify(world.status())).not.toContain('secret');

    world.setWatcher(SPEC, { name: 'mine' });
    world.addJob({ name: 'next' });
    world.now = 200;
    world.turn();
    expect(message('sweeper', 'default')).toContain('matched by default/mine and 1 more:');
  });

  test('the event on a Job names no watcher of another namespace', () => {
    world.setWatcher({ namespacePatterns: ['.'], completedTTL: '1s' }, { name: 'secret', namespace: 'ops' });
    world.addJob({ ended: 'Complete' });
    world.now = 20;
    world.turn();
    expect(world.announced).toEqual([
      expect.stringMatching(/^A JobWatcher of another namespace deletes it: /),
    ]);
  });

  test('what was done and couldn’t be written is told later, once', () => {
    world.setWatcher({ ...SPEC, frequency: '1h' });
    world.turn();
    completeJobs(2);
    world.now = 20;
    world.turn();
    expect(world.statusWrites).toEqual([]);
    world.goTo(3700);
    expect(world.status()).toMatchObject({ lastStarted: at(20), lastRun: { deleted: 2, matched: 2 } });
    world.goTo(9000);
    expect(world.status().lastRun?.deleted).toBe(2);
  });

  test('a right that is missing stalls, counts, and stops nobody else', () => {
    world.setWatcher(SPEC);
    completeJobs(3);
    world.refuse = ({ metadata }) => (metadata.name === 'job-0' ? forbidden : undefined);
    world.now = 100;
    expect(world.turn()).toEqual(['job-1', 'job-2']);
    expect(world.condition('Stalled')).toBe('True Forbidden');
    expect(world.status().lastRun).toMatchObject({ deleted: 2, failed: 1 });
    expect(world.events).toMatchObject([
      { type: 'Warning', reason: 'Forbidden' },
      { type: 'Warning', reason: 'DeletionFailed', note: "Deleted 2 Jobs of 3, 1 couldn't be deleted" },
    ]);
    world.refuse = () => undefined;
    expect(world.goTo(200)).toEqual(['job-0']);
    expect(world.condition('Ready')).toBe('True Watching');
  });

  test('a spec that can’t work stalls with its reason, and stops no other watcher', () => {
    world.setWatcher({ completedTTL: '1s', jobNamePatterns: ['('] }, { name: 'bad' });
    world.setWatcher({ completedTTL: '1s', namespacePatterns: ['^other$'] }, { name: 'far' });
    world.setWatcher(SPEC);
    completeJobs(1);
    world.now = 100;
    expect(world.turn()).toEqual(['job-0']);
    expect(world.condition('Stalled', 'bad')).toBe('True InvalidPattern');
    expect(world.condition('Accepted', 'bad')).toBe('False InvalidPattern');
    expect(world.condition('Accepted', 'far')).toBe('False NamespaceNotPermitted');
    expect(world.condition('Accepted')).toBe('True Accepted');
    world.goTo(1000);
    expect(world.statusWrites).toEqual([]);
  });

  test('patterns that are cut down to the own namespace are told', () => {
    world.setWatcher({ ...SPEC, namespacePatterns: ['.'] });
    world.addJob({ name: 'own', ended: 'Complete' });
    world.addJob({ name: 'foreign', namespace: 'other', ended: 'Complete' });
    expect(world.goTo(100)).toEqual(['own']);
    expect(world.condition('ScopeLimited')).toBe('True NamespaceNotPermitted');
  });

  test('metrics count successes, by outcome', () => {
    world.setWatcher({ ...SPEC, failedTTL: '1s' });
    completeJobs(3);
    world.addJob({ name: 'f', ended: 'Failed', endedAt: 99 });
    world.addJob({ name: 'r' });
    world.setWatcher({ ...SPEC, dryRun: true }, { name: 'dry' });
    world.refuse = ({ metadata }) => (metadata.name === 'job-0' ? forbidden : undefined);
    world.now = 100;
    world.turn();
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
  });
});

test('needs to read Jobs and to delete them, and no other right on them', () => {
  const rules = rulesFor([jobWatcher], { namespaces: ['shop'] }).slice(0, -1);
  expect(rules).toEqual([
    { apiGroups: ['batch.my.github.com'], resources: ['jobwatchers'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['batch.my.github.com'], resources: ['jobwatchers/status'], verbs: ['patch'] },
    { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'list', 'watch', 'delete'] },
  ]);
});

describe('where matching takes long', () => {
  test('the event loop is served in between, and what is due goes all the same', () => {
    world.slow = true;
    world.setWatcher({ ...SPEC, jobNamePatterns: ['.'] });
    completeJobs(4);
    world.now = 20;
    const turns: string[][] = [];
    do turns.push(world.turn());
    while (world.plan?.again?.([]));
    expect(turns.length).toBeGreaterThan(2);
    expect(turns.slice(0, -1).flat()).toEqual([]);
    expect(turns.at(-1)).toHaveLength(4);
    expect(world.status().lastRun).toMatchObject({ matched: 4, deleted: 4 });
  });

  test('Jobs that never come to an end hold up no others, and limits wait for all', () => {
    world.slow = true;
    world.setWatcher(SPEC);
    world.setWatcher({ ...SPEC, limits: { maxPerRun: 100 } }, { name: 'limited', namespace: 'team' });
    world.addJob({ name: 'small', ended: 'Complete' });
    for (let n = 0; n < 60; n++) world.addJob({ name: `t${n}`, namespace: 'team', ended: 'Complete' });
    world.now = 20;
    const gone: string[] = [];
    for (let turn = 0; turn < 30; turn++) gone.push(...world.turn());
    expect(gone).toEqual(['small']);
    while (world.plan?.again?.([])) gone.push(...world.turn());
    world.now = 30;
    gone.push(...world.turn());
    expect(gone).toHaveLength(61);
  });

  test('a diff shows it all at once', () => {
    world.slow = true;
    world.setWatcher({ ...SPEC, jobNamePatterns: ['.'] });
    completeJobs(4);
    world.now = 20;
    world.turn();
    expect(world.plan?.explain?.()[0]?.touches).toHaveLength(4);
  });
});

describe('where there are very many watchers', () => {
  beforeEach(() => {
    for (let n = 0; n < 1200; n++) world.setWatcher(SPEC, { name: `w${n}` });
    world.addJob({ ended: 'Failed' });
  });

  test('no plan computes the status of more than 500, and one in which nothing has changed of none', () => {
    const told: number[] = [];
    do told.push((world.turn(), world.plan!.status.length));
    while (world.plan?.again?.([]));
    // Each is looked at once more when it is there.
    expect(told).toEqual([500, 500, 500, 500, 400]);
    expect(world.condition('Overlapping', 'w1199')).toBe('True SharedJobs');

    world.turn();
    expect(world.plan!.status).toEqual([]);
    expect(world.next).toBeUndefined();
    world.setWatcher({ ...SPEC, dryRun: true }, { name: 'w7' });
    world.turn();
    expect(world.condition('Ready', 'w7')).toBe('True DryRun');
  });

  test('statuses that can’t be written are tried in turn, at a pace', () => {
    world.refuseStatus = true;
    while ((world.turn(), world.plan?.again?.([])));
    const tried = new Set<string>();
    for (let turn = 0; turn < 3; turn++) {
      world.turn();
      for (const { target } of world.plan!.status) tried.add(target.metadata.name);
      expect(world.plan?.again?.([])).toBe(false);
      expect(world.next).toEqual(new Date(START + 1000));
    }
    expect(tried.size).toBe(1200);
  });
});
