/**
 * Returns the candidate that a misspelt word most likely meant, or nothing when none is near: at most two edits away,
 * and no more than a third of the word.
 */
export function suggest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.min(2, Math.max(1, Math.floor(word.length / 3)));
  const distances = candidates.map(
    (candidate) => [editDistance(word.toLowerCase(), candidate.toLowerCase()), candidate] as const,
  );
  const [nearest] = distances.filter(([distance]) => distance <= limit).sort(([a], [b]) => a - b);
  return nearest?.[1];
}

/** Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(a: string, b: string): number {
  let before: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (before[j - 2] ?? Infinity) + 1 : Infinity;
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped));
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}

/** Returns the name that was meant, or all there are. */
export function oneOf(unknown: string, known: readonly string[]): string {
  const near = suggest(unknown, known);
  return near === undefined ? `there are ${known.join(', ')}` : `did you mean ${near}?`;
}
