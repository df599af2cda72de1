import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repoFolder } from '../../../sandbox/paths.js';
import { startWatchdog } from '../../../sandbox/watchdog.js';
import { eventually } from './eventually.js';

export interface ShellProps {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
}

/** A terminal in which somebody tries what a page says, and a second one for what goes on. */
export class Shell {
  private controller: { readonly child: ChildProcess; log: string } | undefined;

  constructor(private readonly props: ShellProps) {}

  /** Runs a command to its end; returns its exit code and what it printed. `reconstruct run` goes on behind it. */
  async type(command: string): Promise<{ code: number; output: string }> {
    if (/(reconstruct|main\.js) run\b/.test(command)) return this.startController(command);
    const { folder: cwd, env } = this.props;
    try {
      const { stdout, stderr } = await promisify(execFile)('sh', ['-c', local(command)], { cwd, env });
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
      if (typeof code !== 'number') throw error;
      return { code, output: stdout + stderr };
    }
  }

  /** Ends the controller as a user would. Returns its exit code; none if there is no controller. */
  async endController(): Promise<number | null | undefined> {
    const { child } = this.controller ?? {};
    this.controller = undefined;
    if (!child) return undefined;
    const exited = once(child, 'exit') as Promise<[number | null]>;
    child.kill('SIGTERM');
    return (await exited)[0];
  }

  private async startController(command: string): Promise<{ code: number; output: string }> {
    await this.endController();
    const addresses = '--metrics-bind-address 0 --health-bind-address 0';
    const { folder: cwd, env } = this.props;
    const guard = await startWatchdog();
    const child = spawn('sh', ['-c', `exec ${local(command)} ${addresses}`], { cwd, env, detached: true });
    guard.watch(child.pid!);
    child.once('exit', () => {
      guard.forget(child.pid!);
    });
    const controller = { child, log: '' };
    this.controller = controller;
    child.stderr.on('data', (chunk) => (controller.log += String(chunk)));
    return eventually(() => {
      if (child.exitCode !== null) return { code: child.exitCode, output: controller.log };
      if (!controller.log.includes('"Controller started"')) throw new Error(controller.log);
      return { code: 0, output: controller.log };
    });
  }
}

/** npx would install the package that it is called in once more, and doesn't pass signals on. */
function local(command: string): string {
  return command
    .replace('npx reconstruct', `${process.execPath} ${join(repoFolder(), 'lib/bundle/reconstruct.mjs')}`)
    .replace('npx ', '');
}
