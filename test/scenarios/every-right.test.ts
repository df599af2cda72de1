import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { eventually } from '../full/support/eventually.js';
import { appServiceWalk } from '../full/support/rights/app-service.js';
import { jobWatcherWalk } from '../full/support/rights/job-watcher.js';
import { prepareKinds } from '../full/support/rights/prepare-kinds.js';
import { streamIngressWalk } from '../full/support/rights/stream-ingress.js';
import { describeRight } from '../full/support/rights/used-rights.js';
import { Walk } from '../full/support/rights/walk.js';
import type { WalkedKind } from '../full/support/rights/walk.js';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
  await prepareKinds(sandbox);
});
afterAll(() => sandbox.stop());

/** Returns how many rights there are. */
async function withAll(walked: WalkedKind): Promise<number> {
  await using walk = await Walk.start(walked, { sandbox, namespaced: true });
  await walked.steps(walk);
  await walk.usedAll();
  return walk.rights.length;
}

/** Takes one right away, and waits until something is refused for want of it. */
async function without(walked: WalkedKind, lacking: number): Promise<void> {
  await using walk = await Walk.start(walked, { sandbox, namespaced: true, lacking });
  const { resource } = walk.rights[lacking]!;
  const what = describeRight(walk.rights[lacking]!);
  // It gets as far as it can: what it is refused says enough.
  void walked.steps(walk).catch(() => undefined);
  const [first] = await eventually(
    async () => {
      const refused = await walk.refused();
      expect(refused, `without ${what}`).not.toEqual([]);
      return refused;
    },
    { intervalMilliseconds: 200, deadlineMilliseconds: 120_000 },
  );
  if (!walked.byAdmission.includes(what)) expect(first).toContain(` ${resource} `);
}

test.concurrent.for(
  [appServiceWalk, streamIngressWalk, jobWatcherWalk].map((walked) => [walked.kind.name, walked] as const),
)(
  'with Roles alone %s has all that it needs, and whichever right is taken away is missed',
  { timeout: 1_800_000 },
  async ([, walked]) => {
    const count = await withAll(walked);
    for (let lacking = 0; lacking < count; lacking++) await without(walked, lacking);
    process.stdout.write(`Rights: each of the ${count} of ${walked.kind.name} is missed\n`);
  },
);
