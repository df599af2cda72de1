import type { TestProject } from 'vitest/node';
import { startSandbox } from '../../sandbox/control-plane.js';

/** Starts the sandbox that the scenarios share, each in a namespace of its own. Returns its teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sandbox = await startSandbox({ users: ['swept-operator'] });
  project.provide('sandbox', sandbox.handle);
  return () => sandbox.stop();
}
