import { writeLines } from '../progress.js';

/** Output of the demo. */
export interface ShowProps {
  write(text: string): void;
  /** Whether escape sequences for bold, dim and colour may be written. */
  readonly styled: boolean;
  /** Characters in a line, for prose; output of commands is left as it is. */
  readonly width: number;
}

const styles = { bold: [1, 22], dim: [2, 22], green: [32, 39], red: [31, 39] } as const;

/** Output of the demo, for people. */
export class Show {
  constructor(private readonly props: ShowProps) {}

  /** Writes to standard output: styled on a terminal, unless NO_COLOR is set. */
  static onStandardOutput(env: NodeJS.ProcessEnv = process.env): Show {
    return new Show({
      write: (text) => {
        writeLines(process.stdout, text);
      },
      styled: process.stdout.isTTY && !env.NO_COLOR,
      width: Math.max(40, Math.min((process.stdout.isTTY && process.stdout.columns) || 100, 100)),
    });
  }

  heading(text: string): void {
    this.#line(`\n${this.#style('bold', text)}`);
  }

  /** A paragraph that explains what follows. */
  say(text: string): void {
    this.#line(`\n${wrap(text, this.props.width).join('\n')}`);
  }

  /** A command as the user would type it. */
  command(text: string): void {
    this.#line(`\n  ${this.#style('dim', '$')} ${this.#style('bold', text)}`);
  }

  /** Prints the output of a command, or lines of a file. */
  output(text: string): void {
    for (const line of text.trimEnd().split('\n')) this.#line(this.#style('dim', `    ${line}`.trimEnd()));
  }

  /** A difference or a part of one, with lines that begin with `-` and `+` in colour. */
  difference(text: string): void {
    const colored = text
      .trimEnd()
      .split('\n')
      .map((line) => {
        const style = line.startsWith('-') ? 'red' : line.startsWith('+') ? 'green' : 'dim';
        return this.#style(style, `    ${line}`.trimEnd());
      });
    this.#line(colored.join('\n'));
  }

  /** Something that was waited for and was seen. */
  seen(text: string): void {
    this.#marked('green', '✓', text);
  }

  /** Shows a condition that didn't come in time. */
  missed(text: string): void {
    this.#marked('red', '✗', text);
  }

  /** A line as it is, with its mark in colour if it has one. */
  plain(text: string): void {
    this.#line(text.replace('✓', this.#style('green', '✓')).replace('✗', this.#style('red', '✗')));
  }

  #marked(style: 'green' | 'red', mark: string, text: string): void {
    const lines = wrap(text, this.props.width - 4).join('\n    ');
    this.#line(`\n  ${this.#style(style, mark)} ${lines}`);
  }

  #style(style: keyof typeof styles, text: string): string {
    if (!this.props.styled || text === '') return text;
    const [on, off] = styles[style];
    return `\x1b[${on}m${text}\x1b[${off}m`;
  }

  #line(text: string): void {
    this.props.write(`${text}\n`);
  }
}

/** Milliseconds as `less than 1 ms`, `340 ms`, `5.2 s` or `2 min 5 s`. */
export function formatTime(milliseconds: number): string {
  if (milliseconds < 0.5) return 'less than 1 ms';
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A command as one types it into a shell: words that a shell would interpret are in quotes. */
export function shellCommand(words: readonly string[]): string {
  const quoted = (word: string): string =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
  return words.map(quoted).join(' ');
}

/** Lines of at most `width` characters, unless a word alone is longer. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Columns as wide as their longest cell, three spaces apart, as kubectl prints them. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = (column: number): number => Math.max(...rows.map((row) => (row[column] ?? '').length)) + 3;
  return rows
    .map((row) =>
      row
        .map((cell, n) => cell.padEnd(width(n)))
        .join('')
        .trimEnd(),
    )
    .join('\n');
}

/** Fields of a log line that add to its message, in the order in which they are shown. */
const fields = ['kinds', 'resource', 'controller', 'name', 'reason', 'error'] as const;

/** A line of the controller's JSON log for people; any other line as it is. */
export function readableLogLine(line: string): string {
  let entry: Readonly<Record<string, unknown>> | null;
  try {
    entry = JSON.parse(line) as typeof entry;
  } catch {
    return line;
  }
  if (typeof entry !== 'object' || entry === null || !('msg' in entry)) return line;
  const { time, level, msg } = entry;
  const details = fields.flatMap((name) => {
    const value = entry[name];
    return value === undefined ? [] : `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`;
  });
  const start = `${String(time).replace(/^[^T]*T([^Z]*)Z$/, '$1')} ${String(level)} ${String(msg)}`;
  return details.length === 0 ? start : `${start} (${details.join(', ')})`;
}
