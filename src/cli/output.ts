import { styleText } from 'node:util';
import { isMap } from '../contract/object.js';

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

export function printError(line: string): void {
  process.stderr.write(`${plain(line)}\n`);
}

export function warn(line: string): void {
  printError(`warning: ${line}`);
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
