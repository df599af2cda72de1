import { defineConfig } from 'vitest/config';

/**
 * Three suites: `unit` needs nothing but Node; `cluster` starts a real control plane once and shares it; `scenarios`
 * does the same, breaks what lies between the controller and the control plane, and takes its time.
 */
export default defineConfig({
  test: {
    // What needs the control plane waits more than it computes.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/cluster/**', 'test/scenarios/*.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          globalSetup: ['test/cluster/global-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: 'scenarios',
          include: ['test/scenarios/*.test.ts'],
          globalSetup: ['test/scenarios/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 900_000,
        },
      },
    ],
  },
});
