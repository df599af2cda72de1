import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import type { FolderChanges } from './synth/folder.js';
import { isMap } from '../values/json.js';

/** Writes to standard output. A reader may stop early, as `head` does; that is no failure. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    const finish = (error?: Error | null): void => {
      // The event of an error comes after its callback, and has to find a listener.
      if (!error) process.stdout.off('error', finish);
      if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') fail(error);
      else done();
    };
    process.stdout.once('error', finish);
    process.stdout.write(text, finish);
  });
}

export function printError(line: string): void {
  process.stderr.write(`${plain(line)}\n`);
}

/** Ends a command: its lines go to stderr. */
export class CliError extends Error {
  readonly lines: readonly string[];

  /** @param exitCode 2: bad input or usage; 3: the cluster is unreachable or refused */
  constructor(
    lines: string | readonly string[],
    readonly exitCode: 2 | 3 = 2,
  ) {
    const all = [lines].flat();
    super(all.join('\n'));
    this.name = 'CliError';
    this.lines = all;
  }
}

const warnings = new Set<string>();

/** Prints each warning once. */
export function warn(line: string): void {
  if (!warnings.has(line)) printError(`warning: ${line}`);
  warnings.add(line);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Says what was written into a folder, beside the results on standard output. */
export function printWritten(folder: string, { written, unchanged, removed }: FolderChanges): void {
  const files = `${counted(written, 'file')} written to ${folder}`;
  const others = Object.entries({ unchanged, removed }).filter(([, count]) => count > 0);
  printError([files, ...others.map(([what, count]) => `${count} ${what}`)].join(', '));
}

/** Asks at the terminal; whatever isn't yes is no, as are Ctrl-C and Ctrl-D. */
export async function confirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<string>((resolve) => {
    terminal.question(`${question} [y/N] `, resolve);
    terminal.once('close', () => {
      resolve('');
    });
  });
  terminal.close();
  return /^y(?:es)?$/i.test(answer.trim());
}

export type Color = 'bold' | 'green' | 'red' | 'yellow' | 'dim';

export type Paint = (color: Color, text: string) => string;

/** Paints for standard output: in colour on a terminal, unless NO_COLOR says otherwise. */
export const paint: Paint = (color, text) => styleText(color, text, { stream: process.stdout });

/** C0 and C1 controls and DEL, but for tab and newline: a terminal takes them for commands. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Makes the controls of a text visible, as `\x1b`, so that it can be printed to a terminal. */
export function plain(text: string): string {
  return text.replace(CONTROLS, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

export function plainAll<T>(data: T): T {
  const plained = (value: unknown): unknown => {
    if (typeof value === 'string') return plain(value);
    if (Array.isArray(value)) return value.map(plained);
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [plain(name), plained(each)]));
  };
  return plained(data) as T;
}

const PROGRESS_AFTER_MILLISECONDS = 2_000;
const PROGRESS_EVERY_MILLISECONDS = 500;

/** Shows on a terminal how far long work is, in a line on stderr that goes once it is done. */
export function showProgress(
  stream: { readonly isTTY: boolean; write(text: string): unknown } = process.stderr,
  now = () => performance.now(),
) {
  let next = now() + PROGRESS_AFTER_MILLISECONDS;
  let isShown = false;
  return {
    update: (done: number, total: number | undefined): void => {
      if (!stream.isTTY || now() < next) return;
      next = now() + PROGRESS_EVERY_MILLISECONDS;
      isShown = true;
      const of = total === undefined ? '' : ` of ${total.toLocaleString('en')}`;
      stream.write(`\r${done.toLocaleString('en')}${of} compared\u001b[K`);
    },
    end: (): void => {
      if (isShown) stream.write('\r\u001b[K');
    },
  };
}

/** Words for the files of the admin in messages. */
export const WORDS = {
  policy: {
    example: 'write e.g. "appservice: { maxSize: 10 }"',
    ...{ empty: 'no rules', members: 'what is allowed of them', whole: 'a policy', another: 'one' },
    ...{ is: 'is', it: 'it', previous: 'that one', kept: 'one', assumed: 'that it forbids nothing' },
  },
  settings: {
    example: 'write e.g. "widget: { domain: example.com }"',
    ...{ empty: 'the defaults', members: 'their settings', whole: 'settings', another: 'them' },
    ...{ is: 'are', it: 'them', previous: 'those', kept: 'ones', assumed: 'that it has none' },
  },
} as const;
