import { Command } from 'commander';
import { join } from 'node:path';
import type { SandboxHandle } from './client.js';
import { startSandbox } from './control-plane.js';
import {
  checkName,
  letRunOn,
  listStates,
  lockSandbox,
  readState,
  removeState,
  sandboxRoot,
  type SandboxState,
} from './state.js';

/** The user of an operator under development, beside `admin`. */
const operatorUser = 'operator';

/** Starts a sandbox that runs on in the background, unless it runs already; returns how to use it. */
async function up(name: string, apiOnly: boolean): Promise<string> {
  return locked(name, async (dir) => {
    const state = await readState(dir);
    if (state.kind === 'running')
      return `The sandbox ${name} is already running.\n${usage(name, state.record.handle)}`;
    if (state.kind === 'broken') throw new Error(describe(name, state));
    await removeState(dir, state);
    const sandbox = await startSandbox({ dataDir: dir, users: [operatorUser], apiOnly });
    await letRunOn(sandbox);
    return `The sandbox ${name} is running at ${sandbox.url}.\n${usage(name, sandbox.handle)}`;
  });
}

/** Stops a sandbox and removes all of it. */
async function down(name: string): Promise<string> {
  return locked(name, async (dir) => {
    const state = await readState(dir);
    await removeState(dir, state);
    return state.kind === 'absent'
      ? `There is no sandbox ${name}.`
      : `The sandbox ${name} is stopped and removed.`;
  });
}

/** Says of one sandbox, or of all, what runs. */
async function status(name?: string): Promise<string> {
  const names = name === undefined ? await listStates(sandboxRoot()) : [checkName(name)];
  if (names.length === 0) return 'There is no sandbox. Start one with: npm run sandbox -- up';
  const lines = names.map(async (each) => describe(each, await readState(join(sandboxRoot(), each))));
  return (await Promise.all(lines)).join('\n');
}

/** The path of a user's kubeconfig. */
async function kubeconfig(name: string, user: string): Promise<string> {
  const state = await readState(join(sandboxRoot(), checkName(name)));
  if (state.kind !== 'running') throw new Error(describe(name, state));
  const { kubeconfigs } = state.record.handle;
  const path = kubeconfigs[user];
  if (path !== undefined) return path;
  throw new Error(`The sandbox has no user "${user}"; it has ${Object.keys(kubeconfigs).join(' and ')}.`);
}

function optionOf(name: string): string {
  return name === 'default' ? '' : ` --name ${name}`;
}

function describe(name: string, state: SandboxState): string {
  const option = optionOf(name);
  const restart = `npm run sandbox -- down${option}, then up${option}`;
  switch (state.kind) {
    case 'absent':
      return `There is no sandbox ${name}. Start one with: npm run sandbox -- up${option}`;
    case 'stale':
      return `The sandbox ${name} is not running, only its files are left. Remove them and start again with: ${restart}`;
    case 'broken':
      return `The sandbox ${name} has lost ${state.ended.join(', ')}. Start it again with: ${restart}`;
    case 'running': {
      const processes = Object.entries(state.record.processes).map(
        ([program, { pid }]) => `  ${program}: ${pid}`,
      );
      return [
        `The sandbox ${name} is running at ${state.record.handle.url}. Process ids:`,
        ...processes,
      ].join('\n');
    }
  }
}

function usage(name: string, handle: SandboxHandle): string {
  return [
    'Use it with:',
    `  export KUBECONFIG=${handle.adminKubeconfig}`,
    `  ${handle.kubectlPath} get nodes`,
    `An operator under development, without rights until you bind a role to the user "${operatorUser}":`,
    `  export KUBECONFIG=${handle.kubeconfigs[operatorUser] ?? ''}`,
    'Stop it and remove all of it with:',
    `  npm run sandbox -- down${optionOf(name)}`,
  ].join('\n');
}

/** Runs `action` while no other command changes the same sandbox. */
async function locked(name: string, action: (dir: string) => Promise<string>): Promise<string> {
  const { dir, release } = await lockSandbox(name);
  try {
    return await action(dir);
  } finally {
    await release();
  }
}

const program = new Command('npm run sandbox --')
  .description('A real Kubernetes control plane on loopback, for development')
  .showHelpAfterError();

const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

program
  .command('up')
  .description('start a sandbox in the background')
  .option('--name <name>', 'name of the sandbox', 'default')
  .option('--api-only', 'only etcd and the API server: no controllers, no nodes', false)
  .action(async ({ name, apiOnly }: { name: string; apiOnly: boolean }) => {
    print(await up(name, apiOnly));
  });

program
  .command('down')
  .description('stop a sandbox and remove all of it')
  .option('--name <name>', 'name of the sandbox', 'default')
  .action(async ({ name }: { name: string }) => {
    print(await down(name));
  });

program
  .command('status')
  .description('say which sandboxes run')
  .option('--name <name>', 'name of one sandbox (default: all)')
  .action(async ({ name }: { name?: string }) => {
    print(await status(name));
  });

program
  .command('kubeconfig')
  .description('print the path of a kubeconfig')
  .argument('[user]', 'admin or operator', 'admin')
  .option('--name <name>', 'name of the sandbox', 'default')
  .action(async (user: string, { name }: { name: string }) => {
    print(await kubeconfig(name, user));
  });

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
