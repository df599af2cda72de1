import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { appServiceWalk } from './support/rights/app-service.js';
import { jobWatcherWalk } from './support/rights/job-watcher.js';
import { prepareKinds } from './support/rights/prepare-kinds.js';
import { streamIngressWalk } from './support/rights/stream-ingress.js';
import { Walk } from './support/rights/walk.js';

/**
 * With a control plane of its own, in which nobody else has custom resources, no API is left out, and nothing collects
 * garbage before the controller does. That each right is needed is shown in the scenarios, by taking it away.
 */
let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
  await prepareKinds(sandbox);
});
afterAll(() => sandbox.stop());

const walks = [appServiceWalk, streamIngressWalk, jobWatcherWalk].flatMap((walked) => [
  [walked.kind.name, 'in the whole cluster', { walked, namespaced: false }] as const,
  [walked.kind.name, 'by Roles alone', { walked, namespaced: true }] as const,
]);

test.for(walks)(
  '%s uses every right that is installed for it %s, and misses none',
  async ([, , { walked, namespaced }]) => {
    await using walk = await Walk.start(walked, { sandbox, namespaced });
    expect(walk.rights.length).toBeGreaterThan(10);

    await walked.steps(walk);

    await walk.usedAll();
  },
);
