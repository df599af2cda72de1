/**
 * Which of the lines that a page shows a program didn't print, in their order; none where all is as shown. `...` stands for any
 * lines, and at the end of one for the rest of it. Spaces, and what differs from run to run, don't count.
 */
export function missingLines(shown: readonly string[], printed: string): string[] {
  let left = printed.split('\n').map(withoutChance);
  const missing: string[] = [];
  for (const line of shown.filter((each) => each.trim() !== '' && each.trim() !== '...')) {
    const place = left.findIndex((each) => isShown(each, withoutChance(line)));
    if (place === -1) missing.push(line);
    else left = left.slice(place + 1);
  }
  return missing;
}

function isShown(printed: string, shown: string): boolean {
  return shown.endsWith('...') ? printed.startsWith(shown.slice(0, -3).trimEnd()) : printed === shown;
}

/** Times, hashes in the names of pods, and the seeds of chance. */
function withoutChance(line: string): string {
  return line
    .replace(/^\d{4}-\d{2}-\d{2}T[\d:]+Z /, '')
    .replaceAll(/\b\d+(?:\.\d+)? ?(?:ms|s|m)(?: ?\d+s)?\b/g, '<time>')
    .replaceAll(/\bseed \d+/g, 'seed <number>')
    .replaceAll(/-[0-9a-f]{7,10}-[a-z0-9]{5}\b/g, '-<pod>')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
