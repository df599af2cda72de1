import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { commandPath } from '../support/commands.js';
import { ownControlPlane } from '../support/test-clusters.js';

const own = ownControlPlane();

async function demo(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<string> {
  const program = join(repoFolder(), 'lib/sandbox/demo/main.js');
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { env });
  return stdout;
}

test('the demo sees every step and cleans up', async () => {
  const stdout = await demo(process.env);

  expect(stdout.match(/^ {2}✓ \d\. /gm)).toHaveLength(8);
  expect(stdout).toMatch(/Cleaned up in .*Every step was seen\./);
});

test('it plays on a cluster of the user that serves AppServices of another group too', async () => {
  const { sandbox } = own;
  await sandbox.kubectl(['apply', '-f', 'crds', '-f', 'crds/optional']);
  const env = {
    ...process.env,
    PATH: commandPath(sandbox.kubectlPath),
    KUBECONFIG: sandbox.adminKubeconfig,
    KUBECACHEDIR: join(sandbox.dir, 'kubectl-cache'),
  };

  const stdout = await demo(env, '--context', 'sandbox');

  expect(stdout.match(/^ {2}✓ \d\. /gm)).toHaveLength(8);
  expect(stdout).not.toMatch(/^ {2}\$ kubectl .* (?:appservices?|appsvc)[ ,]/m);
  expect((await sandbox.kubectl(['get', 'namespaces', '-o', 'name'])).stdout).not.toContain(
    'reconstruct-demo',
  );
});
