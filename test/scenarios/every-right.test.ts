import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { eventually } from '../cluster/support/eventually.js';
import { appServiceWalk } from '../cluster/support/rights/app-service.js';
import { jobWatcherWalk } from '../cluster/support/rights/job-watcher.js';
import { prepareKinds } from '../cluster/support/rights/prepare-kinds.js';
import { streamIngressWalk } from '../cluster/support/rights/stream-ingress.js';
import { describeRight } from '../cluster/support/rights/used-rights.js';
import { Walk } from '../cluster/support/rights/walk.js';
import type { WalkedKind } from '../cluster/support/rights/walk.js';

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

/** Returns what it was refused. */
async function without(walked: WalkedKind, lacking: number): Promise<string> {
  await using walk = await Walk.start(walked, { sandbox, namespaced: true, lacking });
  // It gets as far as it can: what it is refused says enough.
  void walked.steps(walk).catch(() => undefined);
  const [refused] = await eventually(
    async () => {
      const all = await walk.refused();
      expect(all, describeRight(walk.rights[lacking]!)).not.toEqual([]);
      return all;
    },
    { intervalMilliseconds: 200, deadlineMilliseconds: 60_000 },
  );
  return `without ${describeRight(walk.rights[lacking]!)}: ${refused!}`;
}

test.concurrent.for(
  [appServiceWalk, streamIngressWalk, jobWatcherWalk].map((walked) => [walked.kind.name, walked] as const),
)(
  'with Roles alone %s has all that it needs, and is refused something whichever right is taken away',
  async ([, walked]) => {
    const count = await withAll(walked);
    const told: string[] = [];
    for (let lacking = 0; lacking < count; lacking++) told.push(await without(walked, lacking));
    process.stdout.write(`${told.join('\n')}\n`);
  },
);
