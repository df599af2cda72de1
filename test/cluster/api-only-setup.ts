import type { TestProject } from 'vitest/node';
import { startSandbox } from '../../sandbox/control-plane.js';
import { operatorUsers } from './global-setup.js';
import { httpRouteCrd } from './support/http-route-crd.js';

/** Starts a shared sandbox of etcd and an API server alone. Returns its teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sandbox = await startSandbox({ users: operatorUsers, apiOnly: true });
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  project.provide('sandbox', sandbox.handle);
  return () => sandbox.stop();
}
