import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { repoFolder } from '../../sandbox/paths.js';
import { startWatchdog } from '../../sandbox/watchdog.js';
import type { Watchdog } from '../../sandbox/watchdog.js';
import { eventually } from '../../src/testing/eventually.js';
import { bundle } from './operator.js';

/** A command that a page has its readers type. */
export interface CommandStep {
  readonly do: 'command';
  /** Without its comment. */
  readonly text: string;
  /** Of the comment, as in `# exit code 2`. @default 0 */
  readonly exitCode: number;
  /** Lines that the page shows of its output. */
  readonly shown: readonly string[];
}

/** One thing that a page has its reader do. */
export type Step =
  | CommandStep
  /** Change a file, by hunks of a diff. */
  | { readonly do: 'edit'; readonly file: string; readonly hunks: readonly Hunk[] }
  /** Look at a file as it is then. */
  | { readonly do: 'compare'; readonly file: string; readonly text: string }
  /** Wait for lines of the program that was started last and goes on. */
  | { readonly do: 'await'; readonly lines: readonly string[] }
  /** Press Ctrl-C in the terminal of the program that was started last. */
  | { readonly do: 'interrupt' };

/** Lines that stand together in a file, and what is to stand there instead. */
export interface Hunk {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Those that the reader writes. */
  readonly added: readonly string[];
}

/** Returns the commands in a page's blocks of `sh` and `console`, in their order. */
export function commandsOf(page: string): CommandStep[] {
  const text = readFileSync(join(repoFolder(), page), 'utf8');
  return [...text.matchAll(/^```(?:sh|console)\n(.*?)^```/gms)].flatMap(([, block = '']) => {
    // Where nothing is prompted, every line is a command.
    const language = /^\$ /m.test(block) ? 'console' : 'sh';
    return stepsOfBlock(language, block.trimEnd().split('\n')) as CommandStep[];
  });
}

/** Returns the files that a page shows: blocks whose first line is a comment with the name alone. */
export function filesIn(text: string): Map<string, string> {
  const blocks = text.matchAll(/^```(?:ts|js|yaml)\n((?:\/\/|#) ([\w.-]+\.\w+)\n.*?)^```$/gms);
  return new Map([...blocks].map(([, content, name]) => [name!, content!]));
}

/** Pages for those who watch over an operator: which commands they need depends on what is wrong. */
export function operatingPages(): string[] {
  const globs = ['docs/troubleshooting.md', 'docs/monitoring/*.md', 'docs/runbooks/*.md'];
  return globSync(globs, { cwd: repoFolder() })
    .filter((page) => commandsOf(page).length > 0)
    .sort();
}

/**
 * Returns the steps of a page. Blocks of `sh` are commands, a line each, and a comment may name an exit code other than 0; in
 * blocks of `console` what isn't prompted with `$` is the output of the command before it, with `...` for what is left out. Blocks
 * of `diff` name a file in `@@ file @@`; blocks of `ts`, `js`, `yaml` and `json` name it in a comment in the first line, and show it
 * as it is. Blocks of `text` show what a program prints that goes on, and `**Ctrl-C**` ends it.
 * @throws Error on a block that is none of these
 */
export function stepsOf(page: string): Step[] {
  const parts = page.matchAll(/^```(\w*)\n(.*?)^```$|\*\*Ctrl-C\*\*/gms);
  return [...parts].flatMap(([, language, block]) => {
    if (language === undefined || block === undefined) return [{ do: 'interrupt' } as const];
    return stepsOfBlock(language, block.trimEnd().split('\n'));
  });
}

function stepsOfBlock(language: string, lines: readonly string[]): Step[] {
  switch (language) {
    case 'sh':
      return lines.filter((line) => /^[^#]/.test(line)).map((line) => commandStep(line, []));
    case 'console': {
      const starts = lines.flatMap((line, index) => (line.startsWith('$ ') ? [index] : []));
      if (starts[0] !== 0) throw new Error(`No command precedes this:\n${lines.join('\n')}`);
      return starts.map((start, index) =>
        commandStep(lines[start]!.slice(2), lines.slice(start + 1, starts[index + 1])),
      );
    }
    case 'diff':
      return edits(lines);
    case 'text':
      return [{ do: 'await', lines }];
    case 'ts':
    case 'js':
    case 'yaml':
    case 'json':
      return [shownFile(lines)];
    default:
      throw new Error(`A block of ${language || 'no language'} can't be tried:\n${lines.join('\n')}`);
  }
}

function commandStep(line: string, shown: readonly string[]): CommandStep {
  const [, text, comment = ''] = /^(.*?)(?:\s+#(.*))?$/.exec(line)!;
  return {
    ...{ do: 'command', text: text!.trim(), shown },
    exitCode: Number(/exit code (\d)/.exec(comment)?.[1] ?? 0),
  };
}

function edits(lines: readonly string[]): Step[] {
  const found: { file: string; hunks: string[][] }[] = [];
  for (const line of lines) {
    const header = /^@@(?: (\S+) @@)?$/.exec(line);
    if (header?.[1] !== undefined) found.push({ file: header[1], hunks: [[]] });
    else if (header) found.at(-1)?.hunks.push([]);
    else if (!/^[ +-]|^$/.test(line) || found.length === 0) throw new Error(`Not a line of a diff: ${line}`);
    else found.at(-1)!.hunks.at(-1)!.push(line);
  }
  return found.map(({ file, hunks }) => ({ do: 'edit', file, hunks: hunks.map(hunkOf) }));
}

function hunkOf(lines: readonly string[]): Hunk {
  const marked = (marks: string): string[] =>
    lines.filter((line) => marks.includes(line[0] ?? ' ')).map((line) => line.slice(1));
  const added = marked('+').filter((line) => line.trim() !== '');
  return { before: marked(' -'), after: marked(' +'), added };
}

function shownFile([first = '', ...rest]: readonly string[]): Step {
  const file = /^(?:\/\/|#) (\S+)$/.exec(first)?.[1];
  if (file === undefined) throw new Error(`The first line doesn't name the file: ${first}`);
  return { do: 'compare', file, text: `${rest.join('\n')}\n` };
}

/** Returns a text after a change. @throws Error where the lines to be changed aren't there, or more than once */
export function edited(text: string, hunks: readonly Hunk[]): string {
  return hunks.reduce((lines, hunk) => replaced(lines, hunk), text.split('\n')).join('\n');
}

function replaced(lines: readonly string[], { before, after }: Hunk): string[] {
  const places = lines.flatMap((_, start) =>
    before.every((line, index) => lines[start + index] === line) ? [start] : [],
  );
  const [start] = places;
  if (start === undefined || places.length > 1 || before.length === 0)
    throw new Error(`Found ${places.length} times:\n${before.join('\n')}\nin\n${lines.join('\n')}`);
  return lines.toSpliced(start, before.length, ...after);
}

/**
 * Returns the lines that a page shows and a program didn't print, in their order; none where all is as shown. `...` stands for any
 * lines, and at the end of one for the rest of it. Spaces, and what differs from run to run, don't count.
 */
export function missingLines(shown: readonly string[], printed: string): string[] {
  let left = printed.split('\n').map(withoutChance);
  const missing: string[] = [];
  for (const line of shown.filter((each) => each.trim() !== '' && each.trim() !== '...')) {
    const wanted = withoutChance(line);
    const place = left.findIndex((each) =>
      wanted.endsWith('...') ? each.startsWith(wanted.slice(0, -3).trimEnd()) : each === wanted,
    );
    if (place === -1) missing.push(line);
    else left = left.slice(place + 1);
  }
  return missing;
}

/** Leaves out times, hashes in the names of pods, and the seeds of chance. */
function withoutChance(line: string): string {
  return line
    .replace(/^\d{4}-\d{2}-\d{2}T[\d:]+Z /, '')
    .replaceAll(/\b\d+(?:\.\d+)? ?(?:ms|s|m)(?: ?\d+s)?\b/g, '<time>')
    .replaceAll(/\bseed \d+/g, 'seed <number>')
    .replaceAll(/-[0-9a-f]{7,10}-[a-z0-9]{5}\b/g, '-<pod>')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** A program that goes on, in a terminal of its own. */
interface Running {
  readonly command: string;
  readonly child: ChildProcess;
  output: string;
  /** Length of the output that has been looked at. */
  read: number;
}

/** Terminals of a reader: one for commands that end, and one more for each program that goes on. */
export class Terminal implements AsyncDisposable {
  /** Kubeconfigs of all clusters that there were. */
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

  /** Folder to which `cd` has led. */
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

  /** Starts a controller that goes on, instead of the one before, and waits until it works or ends. */
  async startController(command: string): Promise<{ code: number | null; output: string }> {
    await this.interruptAll();
    // Others may have the ports on this machine.
    this.goOn(`${command} --metrics-bind-address 0 --health-bind-address 0`);
    const running = this.last();
    await eventually(() => {
      const works = running.output.includes('"controller started"') || running.child.exitCode !== null;
      if (!works) throw new Error(running.output);
    });
    return { code: running.child.exitCode ?? 0, output: running.output };
  }

  /** Waits for lines, in any order, of the program that was started last, after those that were waited for before. */
  async printed(lines: readonly string[]): Promise<void> {
    const running = this.last();
    await eventually(
      () => {
        const output = running.output.slice(running.read);
        const missing = lines.flatMap((line) => missingLines([line], output));
        if (missing.length === 0) return;
        const { exitCode } = running.child;
        const ended = exitCode === null ? '' : ` before it ended with ${exitCode}`;
        throw new Error(
          `${running.command} didn't print${ended}:\n${missing.join('\n')}\nand has printed:\n${output}`,
        );
      },
      { deadlineMilliseconds: 120_000 },
    );
    running.read = running.output.length;
    this.pasteExports(running.output);
  }

  /** Presses Ctrl-C in the terminal of the program that was started last. Returns how it has ended, and its output. */
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

  /** Presses Ctrl-C in all terminals of programs that go on. */
  async interruptAll(): Promise<Awaited<ReturnType<Terminal['interrupt']>>[]> {
    const ended = [];
    while (this.running.length > 0) ended.push(await this.interrupt());
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.interruptAll();
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

  /** Sets what a program asks to be typed in the other terminal: `export NAME=VALUE`, where `$PATH` is that of before. */
  private pasteExports(output: string): void {
    for (const [, name = '', text = ''] of output.matchAll(/(?:^|\s)export (\w+)=(\S+)$/gm)) {
      const value = text.replace('$PATH', this.env.PATH ?? '');
      this.env = { ...this.env, [name]: value };
      if (name === 'KUBECONFIG') this.kubeconfigs.push(value);
    }
  }
}

/** Returns a command without npx, which would install the package that it is called in once more, and passes no signals on. */
export function local(command: string): string {
  return command.replace('npx reconstruct', `${process.execPath} ${bundle}`).replace('npx ', '');
}
