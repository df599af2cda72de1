import { defineConfig } from 'vitest/config';

/** Two suites: `unit` needs nothing but Node; `cluster` starts a real control plane once and shares it. */
export default defineConfig({
  test: {
    // The cluster suite waits more than it computes.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/cluster/**'],
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
    ],
  },
});
