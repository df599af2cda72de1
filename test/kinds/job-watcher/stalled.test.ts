import { beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import { at } from './fixtures.js';
import { World } from './world.js';

const SPEC: JobWatcherSpec = { completedTTL: '10s', frequency: '15s' };
const refused = new OperatorError({ reason: 'Invalid', message: 'No', retry: 'onChange' });
let world: World;

beforeEach(() => {
  world = new World();
  world.now = 100;
});

function addJobs(prefix: string, count: number): void {
  for (let index = 0; index < count; index++)
    world.addJob({ name: `${prefix}-${index}`, ended: 'Complete', endedAt: index });
}

function refuse(prefix: string): void {
  world.refuse = ({ metadata }) => (metadata.name.startsWith(prefix) ? refused : undefined);
}

/** How many statuses are written until then, at all the times that the plans ask for. */
function writesUntil(seconds: number): number {
  let writes = 0;
  for (let turns = 0; world.next && turns < 1000; turns++) {
    const next = (world.next.getTime() - Date.parse(at(0))) / 1000;
    if (next > seconds) break;
    world.now = Math.max(world.now, next);
    world.turn();
    writes += world.statusWrites.length;
  }
  world.now = seconds;
  world.turn();
  return writes + world.statusWrites.length;
}

describe('a watcher that gets no further writes nothing in an hour', () => {
  test('where more is due than Abort allows', () => {
    world.setWatcher({ ...SPEC, limits: { maxPerRun: 2 } });
    addJobs('job', 3);
    world.turn();
    expect(world.condition('Stalled')).toBe('True BlastRadiusExceeded');
    expect(world.status().nextDeletion).toBeUndefined();
    expect(world.next).toBeDefined();

    expect(writesUntil(3700)).toBe(0);
  });

  test('where all that is due is refused', () => {
    world.setWatcher({ ...SPEC, limits: { maxPerRun: 1, mode: 'Throttle' } });
    addJobs('stuck', 3);
    refuse('stuck');
    world.turn();
    expect(world.status().nextDeletion).toBe(at(115));
    world.goTo(200);
    expect(world.condition('Stalled')).toBe('True Invalid');
    expect(world.status().nextDeletion).toBeUndefined();

    expect(writesUntil(3800)).toBe(0);
  });

  test('and what is due later doesn’t count as its next deletion', () => {
    world.setWatcher({ ...SPEC, limits: { maxPerRun: 2 } });
    addJobs('job', 3);
    world.addJob({ name: 'young', ended: 'Complete', endedAt: 500 });
    world.turn();
    expect(world.status().nextDeletion).toBeUndefined();
    world.jobs.delete('default/job-0');
    world.goTo(200);
    expect(world.status().nextDeletion).toBe(at(510));
  });
});
