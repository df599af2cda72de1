import { beforeEach, expect, test } from 'vitest';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import { World } from './world.js';

const SPEC: JobWatcherSpec = { completedTTL: '10s', jobNamePatterns: ['^pi'] };
let world: World;

beforeEach(() => {
  world = new World();
  world.now = 100;
});

function explained() {
  world.turn();
  return world.plan!.explain!();
}

test('which Jobs would go, oldest deadline first, and why the others stay', () => {
  world.setWatcher(SPEC);
  world.addJob({ name: 'pi-late', ended: 'Complete', endedAt: 60 });
  world.addJob({ name: 'pi-early', ended: 'Complete', endedAt: 30 });
  world.addJob({ name: 'pi-young', ended: 'Complete', endedAt: 95 });
  world.addJob({ name: 'pi-failed', ended: 'Failed', endedAt: 0 });
  world.addJob({ name: 'pi-runs' });
  world.addJob({ name: 'other', ended: 'Complete', endedAt: 0 });

  const [found, ...others] = explained();
  expect(others).toEqual([]);
  expect(found).toMatchObject({
    of: { kind: 'JobWatcher', namespace: 'default', name: 'sweeper' },
    summary: 'would delete 2 of 5 Jobs matched; it looks again at 2026-01-01T00:01:45Z',
    differs: true,
  });
  expect(found!.tables!.map(({ title, rows }) => [title, ...rows])).toEqual([
    [
      'Deleted',
      ['default/pi-early', 'completed', '2026-01-01T00:00:30Z', '10 s'],
      ['default/pi-late', 'completed', '2026-01-01T00:01:00Z', '10 s'],
    ],
    [
      'Stay',
      ['1', 'NoTTL', 'there is no TTL for how it finished'],
      ['1', 'NotDue', 'its time has yet to come'],
      ['1', 'NotFinished', 'it runs, waits or is suspended'],
    ],
  ]);
});

test('a dry run deletes nothing, and says how many it would', () => {
  world.setWatcher({ ...SPEC, dryRun: true });
  world.addJob({ name: 'pi', ended: 'Complete' });
  expect(explained()).toMatchObject([
    {
      summary: 'would delete 0 of 1 Job matched, since it is a dry run',
      differs: false,
      tables: [{ rows: [] }, { rows: [['1', 'DryRun', expect.any(String) as string]] }],
    },
  ]);
});

test('limits that stop it are told', () => {
  world.setWatcher({ ...SPEC, limits: { maxPerRun: 1, mode: 'Abort' } });
  for (const name of ['pi-1', 'pi-2']) world.addJob({ name, ended: 'Complete' });
  const [found] = explained();
  expect(found).toMatchObject({ differs: false });
  expect(found!.summary).toContain('would delete 0 of 2 Jobs matched; 2 are due, which is beyond its limits');
});

test("one that can't work says why", () => {
  world.setWatcher({ ...SPEC, completedTTL: 'soon' });
  const [found] = explained();
  expect(found!.differs).toBe(false);
  expect(found!.summary).toMatch(
    /^would delete nothing, since it can't work: spec.completedTTL: "soon" is not a time/,
  );
});
