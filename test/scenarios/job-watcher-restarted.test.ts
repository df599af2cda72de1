import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { choosePorts } from '../../sandbox/ports.js';
import type { JobWatcherStatus } from '../../src/kinds/job-watcher/spec.js';
import { eventually } from '../full/support/eventually.js';
import { inBatches } from './support/batches.js';
import { JobStage, KEEP } from './support/job-stage.js';
import { watches } from './support/proxied-request.js';

/** With a control plane of its own, whose API server goes away. */
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
});
afterAll(() => sandbox.stop());

const due = Array.from({ length: 200 }, (_, index) => `due-${index}`);
/** So many are deleted by the time of the restart, at least, and as many are left. */
const some = 50;

test('an API server that is restarted in the middle of two hundred deletions: all go, and each is counted once', async () => {
  await using stage = await JobStage.prepare('restarted', sandbox);
  const metrics = `127.0.0.1:${(await choosePorts()).scheduler}`;
  const runs = new Map<string, number>();
  stage.proxy.listen(watches('jobwatchers'), ({ object }) => {
    const { lastStarted, lastRun } = (object.status ?? {}) as JobWatcherStatus;
    if (lastStarted !== undefined && lastRun) runs.set(lastStarted, lastRun.deleted);
  });
  await stage.startController({ args: ['--metrics-bind-address', metrics] });
  await inBatches([...due, 'kept'], (name) => stage.makeJob(name, { finishedSecondsAgo: 10 }));
  await stage.annotate('kept', KEEP);
  const deletions = await stage.deletionsFromNowOn();
  await stage.makeWatcher('sweeper', { completedTTL: '0s', frequency: '1s' });
  await eventually(async () => {
    expect((await deletions()).length).toBeGreaterThan(some);
  });

  // It ends in an orderly way, and no answer is lost. Before it is ready it refuses everybody.
  await sandbox.stopApiServer();
  stage.proxy.turnAway();
  await sandbox.startApiServer();
  expect((await stage.jobNames()).length, 'it is restarted in the middle').toBeGreaterThan(some);
  await stage.proxy.accept();

  await eventually(
    async () => {
      expect(await stage.jobNames()).toEqual(['kept']);
      expect((await deletions()).filter((line) => line.endsWith('200'))).toEqual(
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
