import { formatTime } from './text.js';

/** How a step went. */
export interface StepResult {
  readonly title: string;
  readonly outcome: 'seen' | 'missed' | 'skipped';
  /** How long it took, unless it was skipped. */
  readonly milliseconds: number;
}

const marks = { seen: '✓', missed: '✗', skipped: '-' } as const;

/** One line for each step, and one for all of them. */
export function summaryLines(results: readonly StepResult[]): string[] {
  const rows = results.map(({ title, outcome, milliseconds }, index) => ({
    text: `${marks[outcome]} ${index + 1}. ${title}`,
    time: outcome === 'skipped' ? 'skipped' : formatTime(milliseconds),
  }));
  const total = results.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  rows.push({ text: '  All steps', time: formatTime(total) });
  const text = Math.max(...rows.map((row) => row.text.length));
  const time = Math.max(...rows.map((row) => row.time.length));
  return rows.map((row) => `  ${row.text.padEnd(text)}   ${row.time.padStart(time)}`);
}
