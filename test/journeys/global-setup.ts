import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startSandbox } from '../../sandbox/control-plane.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { loadBundle } from '../support/bundle.js';
import { Cluster, installCrd } from '../support/cluster.js';
import { httpRouteCrd } from '../support/http-route-crd.js';
import { startController } from '../support/operator.js';
import type { SharedOperatorHandle } from './support/operator.js';

const user = 'operator';
/** Users of their own for the journeys that start a second operator. */
const others = Array.from({ length: 20 }, (_, index) => `operator-${index}`);

/** What the operator is told; a journey that needs another policy belongs into `test/full`. */
const policy = 'appservice: { maxSize: 50 }\n';

/** Starts one control plane, and one operator of every kind in all namespaces. Returns their teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sandbox = await startSandbox({ users: [user, ...others] });
  const folder = await mkdtemp(join(tmpdir(), 'journeys-'));
  const logFile = join(folder, 'operator.log');
  const policyFile = join(folder, 'policy.yaml');
  await writeFile(policyFile, policy);
  const cluster = new Cluster(sandbox);
  const { kind: bundle, config } = await loadBundle();
  const kinds = [appService, streamIngress, jobWatcher, bundle];
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  await installCrd(cluster, ...kinds);
  // Where ingress-nginx is, which gets a Role of its own.
  await sandbox.kubectl(['create', 'namespace', 'ingress-nginx']);
  const controller = await startController({
    ...{ cluster, user, kinds, config, logFile },
    args: ['--policy', policyFile, '--leader-elect', '--leader-election-namespace', user],
  });
  const operator: SharedOperatorHandle = { user, pid: controller.pid, logFile };
  project.provide('sandbox', sandbox.handle);
  project.provide('operator', operator);
  return async () => {
    const code = await controller.stop();
    await cluster.close();
    await sandbox.stop();
    await rm(folder, { recursive: true });
    if (code !== 0) throw new Error(`The operator ended with ${String(code)}`);
  };
}
