import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { eventually } from '../full/support/eventually.js';
import { Gate } from './support/faults.js';
import type { Rule } from './support/rules.js';
import { JobStage, KEEP } from './support/job-stage.js';
import { writesTo } from './support/proxied-request.js';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
});
afterAll(() => sandbox.stop());

const atOnce = { completedTTL: '0s', failedTTL: '0s', frequency: '1s' };

interface JobChange {
  readonly change: (stage: JobStage) => Promise<void>;
  /** Why it stays then. @default - it goes all the same */
  readonly stays?: string;
}

/** What happens to a Job that was judged, before its deletion reaches the API server. */
const changes: readonly (readonly [what: string, JobChange])[] = [
  [
    'replaced by a namesake that runs',
    {
      change: async (stage) => {
        await stage.deleteJob('pi');
        await stage.makeJob('pi');
      },
      stays: 'NotFinished',
    },
  ],
  [
    'replaced by a namesake that is suspended',
    {
      change: async (stage) => {
        await stage.deleteJob('pi');
        await stage.makeJob('pi', { suspend: true });
      },
      stays: 'NotFinished',
    },
  ],
  [
    'replaced by a namesake that has finished and is kept',
    {
      change: async (stage) => {
        await stage.deleteJob('pi');
        await stage.makeJob('pi', { annotations: KEEP, finishedSecondsAgo: 10 });
      },
      stays: 'KeepAnnotation',
    },
  ],
  [
    'told to be kept',
    {
      change: (stage) => stage.annotate('pi', KEEP),
      stays: 'KeepAnnotation',
    },
  ],
  [
    'given more time',
    {
      change: (stage) => stage.annotate('pi', { 'batch.my.github.com/ttl-after-completed': '1h' }),
      stays: 'NotDue',
    },
  ],
  [
    'handed over to Kubernetes’ own controller',
    {
      change: async (stage) => {
        await stage.cluster.merge(stage.job('pi'), { spec: { ttlSecondsAfterFinished: 3600 } });
      },
      stays: 'NativeTTL',
    },
  ],
  [
    'changed in what doesn’t count',
    {
      change: (stage) => stage.annotate('pi', { 'example.com/note': 'seen' }),
    },
  ],
];

/** A Job is due, and the request that deletes it is held. */
async function withHeldDeletion(purpose: string): Promise<{ stage: JobStage; gate: Gate; rule: Rule }> {
  const stage = await JobStage.start(purpose, sandbox);
  const gate = new Gate();
  const rule = stage.proxy.on(writesTo('jobs', 'pi'), gate.fault);
  await stage.makeJob('pi', { finishedSecondsAgo: 10 });
  await stage.makeWatcher('sweeper', atOnce);
  await eventually(() => {
    expect(gate.held).toBe(1);
  });
  return { stage, gate, rule };
}

/** Waits for what the controller does after all that has happened so far: another Job that is due goes. */
async function afterwards(stage: JobStage): Promise<void> {
  await stage.makeJob('probe', { finishedSecondsAgo: 10 });
  await eventually(async () => {
    expect(await stage.jobNames()).not.toContain('probe');
  });
}

test.concurrent.for(changes)(
  'a Job that is %s while its deletion is on its way is judged again',
  async ([, { change, stays }]) => {
    const held = await withHeldDeletion('changed');
    await using stage = held.stage;
    const deletions = await stage.deletionsFromNowOn();
    await change(stage);
    const uid = await stage.uidOf('pi');

    held.gate.open();
    await eventually(async () => {
      expect(await deletions()).toContain('pi 409');
    });
    await afterwards(stage);

    if (stays === undefined) {
      // The same pass deletes both, in whatever order.
      await eventually(async () => {
        expect(await stage.uidOf('pi')).toBeUndefined();
        expect(await deletions()).toEqual(['pi 200', 'pi 409', 'probe 200']);
      });
    } else {
      expect(await stage.uidOf('pi')).toBe(uid);
      await eventually(async () => {
        expect(await deletions()).toEqual(['pi 409', 'probe 200']);
        expect((await stage.statusOf('sweeper')).lastRun?.skipped).toEqual({ [stays]: 1 });
      });
    }
    expect(stage.audited()).toContain('pi changed');
    stage.logsNoError();
  },
);

test.concurrent.for(changes)(
  'killed between what it read and the deletion, after which the Job is %s: the next one judges anew',
  async ([, { change, stays }]) => {
    const held = await withHeldDeletion('killed');
    await using stage = held.stage;
    await stage.controller.kill();
    held.rule.remove();
    const deletions = await stage.deletionsFromNowOn();
    await change(stage);
    const uid = await stage.uidOf('pi');

    await stage.startController();
    await afterwards(stage);

    if (stays === undefined) {
      await eventually(async () => {
        expect(await stage.uidOf('pi')).toBeUndefined();
        expect(await deletions()).toEqual(['pi 200', 'probe 200']);
      });
    } else {
      expect(await stage.uidOf('pi')).toBe(uid);
      await eventually(async () => {
        expect(await deletions()).toEqual(['probe 200']);
      });
    }
    stage.logsNoError();
  },
);

test.concurrent('a Job that has finished can’t be made one that hasn’t', async () => {
  await using stage = await JobStage.prepare('unfinished', sandbox);
  await stage.makeJob('pi', { finishedSecondsAgo: 10 });

  const { status, body } = await stage.cluster.send(
    'PATCH',
    `/apis/batch/v1/namespaces/${stage.namespace}/jobs/pi/status`,
    { body: { status: { conditions: [] } }, contentType: 'application/merge-patch+json' },
  );

  expect(status, String(body.message)).toBe(422);
});
