import { wrap } from './text.js';

/** Where the demo is told. */
export interface ShowProps {
  write(text: string): void;
  /** Whether escape sequences for bold, dim and colour may be written. */
  readonly styled: boolean;
  /** Characters in a line, for prose; output of commands is left as it is. */
  readonly width: number;
}

type Style = 'bold' | 'dim' | 'green' | 'red';
const codes: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  red: [31, 39],
};

/** Tells the demo, for people. */
export class Show {
  constructor(private readonly props: ShowProps) {}

  /** On standard output: styled on a terminal, unless NO_COLOR is set. */
  static onStandardOutput(env: NodeJS.ProcessEnv = process.env): Show {
    return new Show({
      write: (text) => process.stdout.write(text),
      styled: process.stdout.isTTY && !env.NO_COLOR,
      width: Math.max(40, Math.min((process.stdout.isTTY && process.stdout.columns) || 100, 100)),
    });
  }

  heading(text: string): void {
    this.#line(`\n${this.#style('bold', text)}`);
  }

  /** A paragraph that says what is about to be shown. */
  say(text: string): void {
    this.#line('');
    for (const line of wrap(text, this.props.width)) this.#line(line);
  }

  /** A command as the user would type it. */
  command(text: string): void {
    this.#line('');
    this.#line(`  ${this.#style('dim', '$')} ${this.#style('bold', text)}`);
  }

  /** What a command has printed, or lines of a file. */
  output(text: string): void {
    for (const line of text.trimEnd().split('\n')) this.#line(this.#style('dim', `    ${line}`.trimEnd()));
  }

  /** Something that was waited for and was seen. */
  seen(text: string): void {
    this.#marked('green', '✓', text);
  }

  /** Something that was waited for in vain. */
  missed(text: string): void {
    this.#marked('red', '✗', text);
  }

  /** A line as it is, with its mark in colour if it has one. */
  plain(text: string): void {
    this.#line(text.replace('✓', this.#style('green', '✓')).replace('✗', this.#style('red', '✗')));
  }

  #marked(style: Style, mark: string, text: string): void {
    this.#line('');
    const [first = '', ...rest] = wrap(text, this.props.width - 4);
    this.#line(`  ${this.#style(style, mark)} ${first}`);
    for (const line of rest) this.#line(`    ${line}`);
  }

  #style(style: Style, text: string): string {
    if (!this.props.styled || text === '') return text;
    const [on, off] = codes[style];
    return `\x1b[${on}m${text}\x1b[${off}m`;
  }

  #line(text: string): void {
    this.props.write(`${text}\n`);
  }
}
