import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { commandPath } from '../support/commands.js';
import { ownControlPlane } from '../support/test-clusters.js';

const own = ownControlPlane();
const run = promisify(execFile);

const clone = await mkdtemp(join(tmpdir(), 'demo-test-'));
afterAll(() => rm(clone, { recursive: true, force: true }));

async function demo(folder: string, env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<string> {
  const program = join(folder, 'lib/sandbox/demo/main.js');
  const { stdout } = await run(process.execPath, [program, ...args], { env });
  return stdout;
}

/** Parts of the output in the order in which they have to come. */
const partsWithoutCluster = [
  /^ {4}export class AppService extends Construct \{$/m,
  /^ {2}\$ reconstruct synth examples\/appservice-sample.yaml\n {4}---\n {4}apiVersion: apps\/v1$/m,
  /^ {6}\.spec\.replicas\n {4}- 2\n {4}\+ 3\n\n {4}PodDisruptionBudget appservice-sample would be created$/m,
  /^ {4}mistyped\.yaml: document 1, line 6: spec\.sise: unknown field; did you mean size\?$/m,
  /^ {2}✓ Refused with exit code 2:/m,
  /^1\/8 {2}/m,
];

test('the demo, compiled as in a fresh clone, begins without a cluster, sees every step and cleans up', async () => {
  for (const copied of ['package.json', 'tsconfig.json', 'tsconfig.base.json', 'src', 'sandbox', 'scripts'])
    await cp(join(repoFolder(), copied), join(clone, copied), { recursive: true });
  for (const linked of ['node_modules', 'crds', 'charts', 'examples'])
    await symlink(join(repoFolder(), linked), join(clone, linked));
  await run(process.execPath, [join(clone, 'scripts/transpile.mjs')]);

  const stdout = await demo(clone, process.env);

  const places = partsWithoutCluster.map((part) => stdout.search(part));
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
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

  const stdout = await demo(repoFolder(), env, '--context', 'sandbox');

  expect(stdout).toMatch(partsWithoutCluster[0]!);
  expect(stdout.match(/^ {2}✓ \d\. /gm)).toHaveLength(8);
  expect(stdout).not.toMatch(/^ {2}\$ kubectl .* (?:appservices?|appsvc)[ ,]/m);
  expect((await sandbox.kubectl(['get', 'namespaces', '-o', 'name'])).stdout).not.toContain(
    'reconstruct-demo',
  );
});
