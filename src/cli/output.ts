import { styleText } from 'node:util';

/** Writes to standard output. A reader may stop early, as `head` does; that is no failure. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    const finish = (error?: Error | null): void => {
      if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') fail(error);
      else done();
    };
    process.stdout.once('error', finish);
    process.stdout.write(text, finish);
  });
}

/** Writes a line to standard error, with controls made visible. */
export function printError(line: string): void {
  process.stderr.write(`${plain(line)}\n`);
}

export function warn(line: string): void {
  printError(`warning: ${line}`);
}

export type Color = 'bold' | 'green' | 'red' | 'yellow' | 'dim';

/** Puts a text in a colour, or leaves it as it is. */
export type Paint = (color: Color, text: string) => string;

/** Paints for standard output: in colour on a terminal, unless NO_COLOR says otherwise. */
export const paint: Paint = (color, text) => styleText(color, text, { stream: process.stdout });

/** C0 and C1 controls and DEL, but for tab and newline: a terminal takes them for commands. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Makes the controls of a text visible, as `\x1b`, so that it can be printed to a terminal. */
export function plain(text: string): string {
  return text.replace(CONTROLS, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** Returns data with all of its texts plain. */
export function plainAll<T>(data: T): T {
  return plained(data) as T;
}

function plained(data: unknown): unknown {
  if (typeof data === 'string') return plain(data);
  if (Array.isArray(data)) return data.map(plained);
  if (typeof data !== 'object' || data === null) return data;
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [plain(name), plained(value)]));
}
