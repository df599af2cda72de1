/** What was measured, in order: `{ phase, figure, value, unit, bar?, verdict? }`. Each is told as it comes. */
export class Figures {
  rows = [];

  /** Notes a figure. One with a bar is judged by it. */
  note(phase, figure, value, unit = '', atMost = undefined) {
    const judged = atMost === undefined ? {} : { bar: atMost, verdict: value <= atMost ? 'held' : 'MISSED' };
    this.rows.push({ phase, figure, value, unit, ...judged });
    const bar = atMost === undefined ? '' : ` (at most ${atMost}: ${judged.verdict})`;
    process.stderr.write(`  ${phase}: ${figure}: ${`${shown(value)} ${unit}`.trim()}${bar}\n`);
  }
}

/** A number with three digits or more, a list, or counts by name. */
export function shown(value) {
  if (typeof value === 'number') return String(Number(value.toPrecision(value >= 1000 ? 6 : 3)));
  if (Array.isArray(value)) return value.map(shown).join(', ');
  return Object.entries(value)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');
}
