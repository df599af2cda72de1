import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { repoFolder } from '../../sandbox/paths.js';

/** What the README tells users to type, in its order. */
const commands = [
  ...(await readFile(join(repoFolder(), 'README.md'), 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms),
]
  .flatMap(([, block]) => (block ?? '').split('\n'))
  .map((line) => line.replace(/\s+#.*/, '').trim())
  .filter((line) => line !== '');

/** These run the project's own scripts, as whoever runs this test has just done. */
const setUp = new Set(['npm ci', 'npm run demo', 'npm test']);

let sandbox: Sandbox;
/** The repository as it is cloned and built, in which commands may leave files. */
let folder: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  sandbox = await startSandbox();
  folder = await mkdtemp(join(tmpdir(), 'readme-'));
  for (const name of await readdir(repoFolder())) {
    if (name !== 'dist' && !name.startsWith('.')) await symlink(join(repoFolder(), name), join(folder, name));
  }
  const kubeconfig = join(folder, '.kubeconfig');
  const admin = await readFile(sandbox.adminKubeconfig, 'utf8');
  await writeFile(kubeconfig, admin);
  const path = [join(repoFolder(), 'node_modules/.bin'), dirname(sandbox.kubectlPath), process.env.PATH];
  env = { ...process.env, KUBECONFIG: kubeconfig, PATH: path.join(delimiter) };
  const context = (await sh('kubectl config current-context')).trim();
  await sh(`kubectl config rename-context ${context} my-cluster`);
  for (const namespace of ['shop', 'billing']) await sh(`kubectl create namespace ${namespace}`);
});

afterAll(async () => {
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

test('there are commands in the README', () => {
  expect(commands.length).toBeGreaterThan(5);
});

test.for(commands.filter((command) => !setUp.has(command)))('%s', async (command) => {
  if (command.startsWith('npx reconstruct run')) return runController(command);
  await sh(command);
  return undefined;
});

async function sh(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', local(command)], { cwd: folder, env });
  return stdout;
}

/** npx would install the package that it is called in once more, and doesn't pass signals on. */
function local(command: string): string {
  return command
    .replace('npx reconstruct', `${process.execPath} ${join(repoFolder(), 'lib/cli/main.js')}`)
    .replace('npx ', '');
}

/** Runs until it works, then ends it as a user would. */
async function runController(command: string): Promise<void> {
  const addresses = '--metrics-bind-address 0 --health-bind-address 0';
  const child = spawn('sh', ['-c', `exec ${local(command)} ${addresses}`], { cwd: folder, env });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  let log = '';
  for await (const chunk of child.stderr) {
    log += String(chunk);
    // Once: a second signal would end it the hard way.
    if (log.includes('"Controller started"') && !child.killed) child.kill('SIGTERM');
  }
  expect(log).toContain('"Controller started"');
  expect((await exited)[0]).toBe(0);
}
