import type { TestProject } from 'vitest/node';
import { startSandbox } from '../../sandbox/control-plane.js';
import { httpRouteCrd } from '../support/http-route-crd.js';
import { operatorUsers } from './global-setup.js';

/**
 * Starts a shared sandbox of etcd and an API server alone, whose version has to be RECONSTRUCT_TEST_KUBERNETES where
 * that is set. Returns its teardown.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sandbox = await startSandbox({ users: operatorUsers, apiOnly: true });
  const { stdout } = await sandbox.kubectl(['get', '--raw', '/version']);
  const { gitVersion } = JSON.parse(stdout) as { gitVersion: string };
  const wanted = process.env.RECONSTRUCT_TEST_KUBERNETES ?? gitVersion;
  if (gitVersion !== wanted) {
    await sandbox.stop();
    throw new Error(`The API server is of Kubernetes ${gitVersion}, not ${wanted}`);
  }
  process.stderr.write(`The API server is of Kubernetes ${gitVersion}.\n`);
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  project.provide('sandbox', sandbox.handle);
  return () => sandbox.stop();
}
