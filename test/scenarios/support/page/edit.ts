import type { Hunk } from './steps.js';

/**
 * A text after a change.
 * @throws Error where the lines to be changed aren't there, or more than once
 */
export function edited(text: string, hunks: readonly Hunk[]): string {
  return hunks.reduce((lines, hunk) => replaced(lines, hunk), text.split('\n')).join('\n');
}

function replaced(lines: readonly string[], { before, after }: Hunk): string[] {
  const places = lines.flatMap((_, start) =>
    before.every((line, index) => lines[start + index] === line) ? [start] : [],
  );
  const [start] = places;
  if (start === undefined || places.length > 1 || before.length === 0) {
    const found = places.length === 0 ? 'are not there' : `are there ${places.length} times`;
    throw new Error(`These lines ${found}:\n${before.join('\n')}\nin\n${lines.join('\n')}`);
  }
  return lines.toSpliced(start, before.length, ...after);
}
