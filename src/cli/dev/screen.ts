/** What is written to, as far as its form counts. */
export interface Terminal {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** The other screen of the terminal, so that what was there before comes back; the cursor hides. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[H\u001b[2J';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const CLEAR = '\u001b[H\u001b[2J';
const CLEAR_REST_OF_LINE = '\u001b[K';
/** Colours, which take no room. */
const SGR = /^\u001b\[[0-9;]*m/;

/**
 * Lines on a terminal. Only those that have become others are written, so that nothing flickers and a resting view writes
 * nothing.
 */
export class Screen {
  private shown: readonly string[] = [];
  private isOpen = false;
  private size = '';

  constructor(private readonly terminal: Terminal) {}

  get width(): number {
    return this.terminal.columns ?? 80;
  }

  get height(): number {
    return this.terminal.rows ?? 24;
  }

  /** Shows these lines in place of those before. What has no room is cut, and its end says how much that is. */
  draw(lines: readonly string[]): void {
    const { width, height } = this;
    const isNew = !this.isOpen || this.size !== `${width}x${height}`;
    const fitting = fit(lines, width, height);
    const before = isNew ? [] : this.shown;
    let text = isNew ? (this.isOpen ? CLEAR : ENTER) : '';
    for (let row = 0; row < Math.max(fitting.length, before.length); row++) {
      const line = fitting[row] ?? '';
      if (line !== (before[row] ?? '')) text += `${cursorTo(row)}${line}${CLEAR_REST_OF_LINE}`;
    }
    if (text !== '') this.terminal.write(text);
    this.shown = fitting;
    this.size = `${width}x${height}`;
    this.isOpen = true;
  }

  /** Something else may have been written over it: everything is drawn anew the next time. */
  forget(): void {
    this.size = '';
  }

  /** What was on the terminal before is back. Can be called more than once. */
  close(): void {
    if (this.isOpen) this.terminal.write(LEAVE);
    this.isOpen = false;
  }
}

function cursorTo(row: number): string {
  return `\u001b[${row + 1};1H`;
}

function fit(lines: readonly string[], width: number, height: number): string[] {
  const cut = lines.map((line) => cutTo(line, width));
  if (cut.length <= height) return cut;
  const more = cut.length - height + 1;
  return [...cut.slice(0, height - 1), cutTo(`... ${more} more lines: make the window higher`, width)];
}

/** The beginning of a line, by what is seen of it. */
export function cutTo(line: string, width: number): string {
  let seen = 0;
  let out = '';
  for (let rest = line; rest !== '';) {
    const color = SGR.exec(rest)?.[0];
    if (color !== undefined) {
      out += color;
      rest = rest.slice(color.length);
      continue;
    }
    const char = String.fromCodePoint(rest.codePointAt(0) ?? 0);
    if (seen < width) out += char;
    seen += 1;
    rest = rest.slice(char.length);
  }
  return out;
}
