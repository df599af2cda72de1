const KEPT = 25;
const lines: string[] = [];

/** What the controllers of this test file have logged lately, oldest first; not what is for debugging. */
export function recentLog(): readonly string[] {
  return lines;
}

export function noteLog({ level }: { readonly level: string }, line: string): void {
  if (level === 'debug' || level === 'trace') return;
  lines.push(line);
  if (lines.length > KEPT) lines.shift();
}
