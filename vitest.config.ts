import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The sources have the undici that the bundle has. */
const undiciOfTheBundle = {
  name: 'undici-of-the-bundle',
  enforce: 'pre' as const,
  resolveId: (id: string, importer?: string) =>
    id === 'undici' && importer?.includes('/src/') === true
      ? fileURLToPath(new URL('scripts/undici-parts.mjs', import.meta.url))
      : undefined,
};

/** The packed command stands for what commands ask of a cluster at their start. */
const packedCluster = {
  name: 'packed-cluster',
  enforce: 'pre' as const,
  resolveId: (id: string, importer?: string) =>
    id.endsWith('/src/cli/cluster.js') && importer?.endsWith('.test.ts') === true
      ? fileURLToPath(new URL('test/support/packed-cluster.ts', import.meta.url))
      : undefined,
};

/** Tests that replace modules, which others of the same worker would get. */
const withMocks = ['test/cli/fn.test.ts', 'test/cli/synth.test.ts'];

/** Scenarios that take minutes each. */
const soak = [
  ...['blackhole', 'churn', 'outage', 'overload', 'upgrade-rollout'],
  ...['sweep-examples', 'sweep-kinds'],
].map((name) => `test/scenarios/${name}.test.ts`);

/** Follows a page whose commands judge by the clock, so nothing else runs beside it. */
const alone = ['test/scenarios/own-kind.test.ts'];

/** What an API server decides without the controllers of Kubernetes; tried on every version that is supported. */
const withoutControllers = [
  ...['contested', 'crds', 'define-crd', 'diff-examples', 'digest'],
  ...['missing-kinds', 'refused-as-failure', 'synth-apply'],
].map((name) => `test/full/${name}.test.ts`);

/**
 * Three rings, by what a test costs:
 * - `npm test`: `unit` and `mocks` need nothing but Node, and start no processes; `journeys` share one control plane and one
 *   operator, each in namespaces of its own.
 * - `npm run test:full`: `full` starts processes, operators of its own, and other control planes; `packed` has the packed command
 *   do what a unit test does with its sources; `scenarios` puts faults between operator and API server.
 * - `npm run test:soak`: the scenarios that take minutes each.
 */
export default defineConfig({
  test: {
    // Tests on a control plane wait more than they compute.
    maxWorkers: 4,
    projects: [
      {
        plugins: [undiciOfTheBundle],
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/full/**', 'test/journeys/**', 'test/scenarios/*.test.ts', ...withMocks],
          isolate: false,
          testTimeout: 60_000,
        },
      },
      { test: { name: 'mocks', include: withMocks, testTimeout: 60_000 } },
      {
        test: {
          name: 'journeys',
          include: ['test/journeys/*.test.ts'],
          globalSetup: ['test/journeys/global-setup.ts'],
          isolate: false,
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'full',
          include: ['test/full/**/*.test.ts'],
          globalSetup: ['test/full/global-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 900_000,
        },
      },
      {
        plugins: [packedCluster],
        test: { name: 'packed', include: ['test/cli/kubeconfig.test.ts'], testTimeout: 60_000 },
      },
      {
        test: {
          name: 'kubernetes',
          include: withoutControllers,
          globalSetup: ['test/full/api-only-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'scenarios',
          include: ['test/scenarios/*.test.ts'],
          exclude: [...soak, ...alone],
          globalSetup: ['test/scenarios/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: 'alone',
          include: alone,
          globalSetup: ['test/scenarios/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: 'soak',
          include: soak,
          globalSetup: ['test/scenarios/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 900_000,
        },
      },
    ],
  },
});
