import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { eventually } from '../../../../src/testing/eventually.js';
import { startWatchdog } from '../../../../sandbox/watchdog.js';
import type { Watchdog } from '../../../../sandbox/watchdog.js';
import { missingLines } from './shown.js';

/** A program that goes on, in a terminal of its own. */
interface Running {
  readonly command: string;
  readonly child: ChildProcess;
  output: string;
  /** How much of the output has been looked at. */
  read: number;
}

/** Whoever follows a page: one terminal for commands that end, and one more for each program that goes on. */
export class Terminal implements AsyncDisposable {
  /** The kubeconfigs of all clusters that there were. */
  readonly kubeconfigs: string[] = [];
  private readonly running: Running[] = [];

  private constructor(
    private folder: string,
    private env: NodeJS.ProcessEnv,
    private readonly guard: Watchdog,
  ) {}

  static async open(folder: string, env: NodeJS.ProcessEnv): Promise<Terminal> {
    return new Terminal(folder, env, await startWatchdog());
  }

  /** Where `cd` has led. */
  get currentFolder(): string {
    return this.folder;
  }

  /** Runs a command to its end. What it changes of folder and environment holds for those that follow. */
  async type(command: string): Promise<{ code: number | null; output: string }> {
    const started = this.start(`trap 'printf "%s\\0" "$PWD" >&3; env -0 >&3' EXIT\n${command}`);
    let left = '';
    (started.child.stdio[3] as Readable).on('data', (chunk) => (left += String(chunk)));
    const [code] = (await once(started.child, 'close')) as [number | null];
    const [folder, ...variables] = left.split('\0').slice(0, -1);
    this.folder = folder ?? this.folder;
    this.env = Object.fromEntries(
      variables.map((each) => each.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    return { code, output: started.output };
  }

  /** Starts a program that goes on. */
  goOn(command: string): void {
    this.running.push(this.start(`exec ${command}`));
  }

  /** Waits for lines, in any order, of the program that was started last, after those that were waited for before. */
  async printed(lines: readonly string[]): Promise<void> {
    const running = this.last();
    await eventually(
      () => {
        const output = running.output.slice(running.read);
        const missing = lines.flatMap((line) => missingLines([line], output));
        if (missing.length === 0) return;
        const ended =
          running.child.exitCode === null ? '' : ` before it ended with ${running.child.exitCode}`;
        throw new Error(
          `${running.command} didn't print${ended}:\n${missing.join('\n')}\nand has printed:\n${output}`,
        );
      },
      { deadlineMilliseconds: 120_000 },
    );
    running.read = running.output.length;
    this.pasteExports(running.output);
  }

  /** Presses Ctrl-C in the terminal of the program that was started last. Returns how all of it has ended, and its output. */
  async interrupt(): Promise<{ command: string; end: number | NodeJS.Signals | null; output: string }> {
    const running = this.last();
    const { command, child } = running;
    this.running.pop();
    if (child.exitCode === null) {
      const closed = once(child, 'close');
      // A terminal sends it to all that run in it.
      process.kill(-child.pid!, 'SIGINT');
      await closed;
    }
    return { command, end: child.exitCode ?? child.signalCode, output: running.output };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.running.length > 0) await this.interrupt();
    await this.guard.release();
  }

  private start(command: string): Running {
    const { folder: cwd, env, guard } = this;
    const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', 'pipe'];
    const child = spawn('sh', ['-c', command], { cwd, env, detached: true, stdio });
    guard.watch(child.pid!);
    child.once('exit', () => {
      guard.forget(child.pid!);
    });
    const running: Running = { command, child, output: '', read: 0 };
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => (running.output += String(chunk)));
    return running;
  }

  private last(): Running {
    const running = this.running.at(-1);
    if (!running) throw new Error('No program goes on');
    return running;
  }

  /** What a program asks to be typed in the other terminal: `export NAME=VALUE`, where `$PATH` is that of before. */
  private pasteExports(output: string): void {
    for (const [, name = '', text = ''] of output.matchAll(/(?:^|\s)export (\w+)=(\S+)$/gm)) {
      const value = text.replace('$PATH', this.env.PATH ?? '');
      this.env = { ...this.env, [name]: value };
      if (name === 'KUBECONFIG') this.kubeconfigs.push(value);
    }
  }
}
