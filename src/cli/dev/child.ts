import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Guard } from './stand.js';

/**
 * Runs this very command in a process of its own, with other arguments. It doesn't outlive this one, and signals of the
 * terminal don't reach it.
 */
export function startCommand(args: readonly string[], stdio: StdioOptions, guard: Guard): ChildProcess {
  const [, command = ''] = process.argv;
  // Two processes can't have one debugger's port; and Node 22 warns at each start that it strips types.
  const nodeArgs = [
    ...process.execArgv.filter((arg) => !arg.startsWith('--inspect')),
    '--disable-warning=ExperimentalWarning',
  ];
  const child = spawn(process.execPath, [...nodeArgs, command, ...args], { detached: true, stdio });
  const { pid } = child;
  if (pid !== undefined) {
    guard.watch(pid);
    child.once('exit', () => {
      guard.forget(pid);
    });
  }
  return child;
}
