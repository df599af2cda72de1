import { defineConfig } from 'vitest/config';

/** Of the cluster tests, those that need no controller of Kubernetes: what an API server decides by itself. */
const withoutControllers = [
  ...[
    'app-service-crd',
    'contested',
    'define-crd',
    'diff-examples',
    'digest',
    'job-watcher-crd',
    'missing-kinds',
  ],
  ...['stream-ingress-crd', 'synth-apply'],
];

/**
 * Four suites: `unit` needs nothing but Node; `cluster` starts a real control plane once and shares it; `scenarios`
 * does the same, breaks what lies between the controller and the control plane, and takes its time; `kubernetes` is
 * what of `cluster` needs an API server alone, which `npm run test:kubernetes` starts in another version.
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
          exclude: ['test/cluster/**', 'test/journeys/**', 'test/scenarios/*.test.ts'],
          // Some start programs, on machines that are busy.
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'journeys',
          include: ['test/journeys/*.test.ts'],
          globalSetup: ['test/journeys/global-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          globalSetup: ['test/cluster/global-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: 'kubernetes',
          include: withoutControllers.map((name) => `test/cluster/${name}.test.ts`),
          globalSetup: ['test/cluster/api-only-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
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
