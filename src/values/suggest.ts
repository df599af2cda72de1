/**
 * The candidate that a misspelt word most likely meant, or nothing when none is near: at most two edits away,
 * and no more than a third of the word.
 */
export function suggest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.min(2, Math.max(1, Math.floor(word.length / 3)));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Infinity;
  const width = b.length + 1;
  const cost = new Array<number>((a.length + 1) * width).fill(0);
  const at = (i: number, j: number): number => cost[i * width + j] ?? Infinity;
  for (let i = 0; i <= a.length; i += 1) {
    for (let j = 0; j <= b.length; j += 1) {
      if (i === 0 || j === 0) {
        cost[i * width + j] = i + j;
        continue;
      }
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Infinity;
      cost[i * width + j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped);
    }
  }
  return at(a.length, b.length);
}

/** Returns the name that was meant, or all there are. */
export function oneOf(unknown: string, known: readonly string[]): string {
  const near = suggest(unknown, known);
  return near === undefined ? `there are ${known.join(', ')}` : `did you mean ${near}?`;
}
