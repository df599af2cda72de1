import { expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import type { JobWatcherStatus } from '../../src/kinds/job-watcher/spec.js';
import { eventually, inBatches } from '../support/cluster.js';
import { watches } from '../support/faults.js';
import { KEEP } from '../support/jobs.js';
import { JobStage } from '../support/stages.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** Its API server goes away. */
const own = ownControlPlane({ apiOnly: true });

const due = Array.from({ length: 200 }, (_, index) => `due-${index}`);
/** So many are deleted by the time of the restart, at least, and as many are left. */
const some = 50;

test('an API server that is restarted in the middle of two hundred deletions: all go, and each is counted once', async () => {
  const { sandbox } = own;
  await using stage = await JobStage.prepare('restarted', sandbox);
  const { jobs } = stage;
  const metrics = `127.0.0.1:${(await choosePorts()).scheduler}`;
  const runs = new Map<string, number>();
  stage.proxy.listen(watches('jobwatchers'), ({ object }) => {
    const { lastStarted, lastRun } = (object.status ?? {}) as JobWatcherStatus;
    if (lastStarted !== undefined && lastRun) runs.set(lastStarted, lastRun.deleted);
  });
  await stage.startController({ args: ['--metrics-bind-address', metrics] });
  await jobs.finished('kept', { annotations: KEEP });
  await inBatches(due, (name) => jobs.finished(name));
  const deletions = await stage.deletionsFromNowOn();
  await jobs.watch('sweeper', { jobNamePatterns: ['.'], completedTTL: '0s' });
  await eventually(async () => {
    expect((await deletions()).length).toBeGreaterThan(some);
  });

  // It ends in an orderly way, and no answer is lost. Before it is ready it refuses everybody.
  await sandbox.stopApiServer();
  stage.proxy.turnAway();
  await sandbox.startApiServer();
  expect((await jobs.names()).length, 'it is restarted in the middle').toBeGreaterThan(some);
  await stage.proxy.accept();

  await eventually(
    async () => {
      expect(await jobs.names()).toEqual(['kept']);
      expect((await deletions()).filter((line) => line.endsWith('200')).sort()).toEqual(
        due.map((name) => `${name} 200`).sort(),
      );
      expect(stage.audited().filter((line) => line.endsWith(' deleted'))).toHaveLength(due.length);
    },
    { deadlineMilliseconds: 90_000 },
  );
  // What a plan has done is counted once it is over, its statuses included.
  await eventually(async () => {
    const scraped = await (await fetch(`http://${metrics}/metrics`)).text();
    expect(scraped).toContain(`reconstruct_jobs_deleted_total{outcome="completed"} ${due.length}\n`);
  });
  await eventually(() => {
    expect([...runs.values()].reduce((sum, deleted) => sum + deleted, 0)).toBe(due.length);
  });
  stage.logsNoError();
});
