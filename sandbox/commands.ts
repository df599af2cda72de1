import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startSandbox } from './control-plane.js';
import { tryLock } from './lock.js';
import { repoFolder } from './paths.js';
import type { SandboxHandle } from './client.js';
import { checkName, listStates, readState, removeState, type SandboxState, writeState } from './state.js';

/** The user of an operator under development, beside `admin`. */
const operatorUser = 'operator';

/** Starts a sandbox that runs on in the background, unless it runs already; returns how to use it. */
export async function up(name: string, apiOnly: boolean): Promise<string> {
  return locked(name, async (dir) => {
    const state = await readState(dir);
    if (state.kind === 'running')
      return `The sandbox ${name} is already running.\n${usage(state.record.handle)}`;
    if (state.kind === 'broken') throw new Error(describe(name, state));
    await removeState(dir, state);
    const sandbox = await startSandbox({ dataDir: dir, users: [operatorUser], apiOnly });
    try {
      // Recorded first, let go afterwards: at no time does one run that is neither watched nor known.
      await writeState({ handle: sandbox.handle, processes: sandbox.processes });
      await sandbox.detach();
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
    return `The sandbox ${name} is running at ${sandbox.url}.\n${usage(sandbox.handle)}`;
  });
}

/** Stops a sandbox and removes all of it. */
export async function down(name: string): Promise<string> {
  return locked(name, async (dir) => {
    const state = await readState(dir);
    await removeState(dir, state);
    return state.kind === 'absent'
      ? `There is no sandbox ${name}.`
      : `The sandbox ${name} is stopped and removed.`;
  });
}

/** Says of one sandbox, or of all, what runs. */
export async function status(name?: string): Promise<string> {
  const names = name === undefined ? await listStates(root()) : [checkName(name)];
  if (names.length === 0) return 'There is no sandbox. Start one with: npm run sandbox -- up';
  const lines = names.map(async (each) => describe(each, await readState(join(root(), each))));
  return (await Promise.all(lines)).join('\n');
}

/** The path of a user's kubeconfig. */
export async function kubeconfig(name: string, user: string): Promise<string> {
  const state = await readState(join(root(), checkName(name)));
  if (state.kind !== 'running') throw new Error(describe(name, state));
  const { kubeconfigs } = state.record.handle;
  const path = kubeconfigs[user];
  if (path !== undefined) return path;
  throw new Error(`The sandbox has no user "${user}"; it has ${Object.keys(kubeconfigs).join(' and ')}.`);
}

function describe(name: string, state: SandboxState): string {
  const option = name === 'default' ? '' : ` --name ${name}`;
  const restart = `npm run sandbox -- down${option}, then up${option}`;
  switch (state.kind) {
    case 'absent':
      return `There is no sandbox ${name}. Start one with: npm run sandbox -- up${option}`;
    case 'stale':
      return `The sandbox ${name} is not running, only its files are left. Remove them and start anew with: ${restart}`;
    case 'broken':
      return `The sandbox ${name} has lost ${state.ended.join(', ')}. Start it anew with: ${restart}`;
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

function usage(handle: SandboxHandle): string {
  return [
    'Use it with:',
    `  export KUBECONFIG=${handle.adminKubeconfig}`,
    `  ${handle.kubectlPath} get nodes`,
    `An operator under development, without rights until you bind a role to the user "${operatorUser}":`,
    `  export KUBECONFIG=${handle.kubeconfigs[operatorUser] ?? ''}`,
  ].join('\n');
}

function root(): string {
  return join(repoFolder(), '.sandbox');
}

/** Runs `action` while no other command changes the same sandbox. */
async function locked(name: string, action: (dir: string) => Promise<string>): Promise<string> {
  const dir = join(root(), checkName(name));
  await mkdir(root(), { recursive: true });
  const lock = await tryLock(`${dir}.lock`);
  if ('pid' in lock)
    throw new Error(`Process ${lock.pid} is starting or stopping the sandbox ${name}; wait for it.`);
  try {
    return await action(dir);
  } finally {
    await lock.release();
  }
}
