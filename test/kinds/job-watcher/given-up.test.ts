import { beforeEach, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { World } from './world.js';

let world: World;

beforeEach(() => {
  world = new World();
  for (let index = 0; index < 6; index++)
    world.addJob({ name: `job-${index}`, ended: 'Complete', endedAt: index });
});

const SPEC = { completedTTL: '10s', frequency: '15s' };
const unreachable = new OperatorError({ reason: 'Unreachable', message: 'No answer' });

/** The API server goes away before this Job, and is back for the next turn. */
function lostAt(name: string): void {
  world.refuse = ({ metadata }) => {
    if (metadata.name !== name) return undefined;
    world.refuse = () => undefined;
    return unreachable;
  };
}

test('what a run has deleted before the API server went away is told with the rest', () => {
  world.setWatcher(SPEC);
  world.now = 100;
  lostAt('job-2');
  expect(world.turn()).toEqual(['job-0', 'job-1']);
  expect(world.statusWrites).toEqual([]);

  expect(world.turn()).toHaveLength(4);
  expect(world.status().lastRun).toEqual({ namespaces: 1, matched: 6, finished: 6, deleted: 6, failed: 0 });
});

test('a run with limits that was broken off counts as one: the next comes after the frequency', () => {
  world.setWatcher({ ...SPEC, limits: { maxPerRun: 3, mode: 'Throttle' } });
  world.now = 100;
  lostAt('job-2');
  expect(world.turn()).toEqual(['job-0', 'job-1']);

  expect(world.turn()).toEqual([]);
  expect(world.status().lastRun).toMatchObject({ deleted: 2 });
  world.now = 115;
  expect(world.turn()).toEqual(['job-2', 'job-3', 'job-4']);
});
