/** A line of a table of three columns: what, how old, how it fares; and what is to be said of it below. */
export interface Row {
  /** The branches of the tree before it. */
  readonly branch: string;
  readonly name: string;
  readonly age: string;
  readonly state: string;
  /** In whole sentences, below. @default - none */
  readonly details?: readonly string[];
  /** Before the details: the tree goes on there. @default - as wide as `branch`, and empty */
  readonly below?: string;
}

const AGE_WIDTH = 5;
/** What the first column leaves to the last one, at least: `0/1 CrashLoopBackOff` fits. */
const STATE_WIDTH = 22;

/** How wide the first column of these rows is, in lines of this width. A name that is longer fills it alone. */
export function nameWidth(rows: readonly Row[], width: number): number {
  const widest = width - AGE_WIDTH - STATE_WIDTH - 3;
  const widths = rows.map(({ branch, name }) => branch.length + name.length);
  return Math.max(...widths.filter((each) => each <= widest), 12);
}

/** The lines of one row. */
export function rowLines(
  { branch, name, age, state, details = [], below }: Row,
  first: number,
  width: number,
): string[] {
  const label = branch + name;
  const under = below ?? ' '.repeat(branch.length);
  const rest = `${age.padStart(AGE_WIDTH)}  `;
  const states = wrap(state, width - first - rest.length - 1);
  const fits = label.length <= first;
  const lead = fits ? label.padEnd(first) : under.padEnd(first);
  const lines = states.map((text, index) =>
    index === 0 ? `${lead} ${rest}${text}` : `${under.padEnd(first)} ${' '.repeat(rest.length)}${text}`,
  );
  const told = details.flatMap((detail) => wrap(detail, width - under.length - 2));
  return [...(fits ? [] : [label]), ...lines, ...told.map((text) => `${under}  ${text}`)];
}

/** Breaks a text at spaces; a word that is longer than a line stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/** How long something is ago, as `45s`, `3m`, `2h` or `4d`. Empty where it isn't known. */
export function age(time: string | undefined, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(time ?? '')) / 1000));
  if (Number.isNaN(seconds)) return '';
  for (const [unit, size] of UNITS) if (seconds >= 2 * size) return `${Math.floor(seconds / size)}${unit}`;
  return `${seconds}s`;
}
