import { expect, test, vi } from 'vitest';
import { BuildEstimate } from '../../sandbox/estimate.js';
import { BottomLine, heldLog } from '../../sandbox/progress.js';

/** Returns the lines of a terminal after what was written to it, as far as the escape sequences of progress are concerned. */
function screenOf(written: string): string[] {
  const lines = [''];
  for (const [piece] of written.matchAll(/\r\x1b\[2K|\n|[^\r\n]+/g)) {
    if (piece === '\n') lines.push('');
    else lines[lines.length - 1] = piece.startsWith('\r') ? '' : `${lines.at(-1) ?? ''}${piece}`;
  }
  return lines;
}

test('the bottom line stays below all that is written, to either stream, and goes in the end', () => {
  let written = '';
  const terminal = { columns: 20, write: (text: string) => (written += text) };
  const line = new BottomLine(terminal);

  line.writeAbove('before\n');
  line.show('12 %, about 3 min left');
  line.writeAbove('a\nb\n', { write: terminal.write });
  line.show('13 %');
  line.writeAbove('c\n');

  expect(screenOf(written)).toEqual(['before', 'a', 'b', 'c', '13 %']);
  line.show('14 %, about 3 min left');
  expect(screenOf(written).at(-1)).toBe('14 %, about 3 min l');
  line.show('');
  expect(screenOf(written)).toEqual(['before', 'a', 'b', 'c', '']);
});

test('a held log writes its lines in order once it is released', () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const { log, release } = heldLog();
    log('a');
    expect(write).not.toHaveBeenCalled();
    release();
    log('b');
    expect(write.mock.calls.map(([text]) => text)).toEqual(['a\n', 'b\n']);
  } finally {
    write.mockRestore();
  }
});

test.each([
  ['as measured', [0, 400, 800, 1200, 1600, 2000, 2400, 2799], 400],
  ['with more packages than are known', [0, 2000, 4000, 6000], 100],
  ['of compiled packages, which links only', [0, 0, 1], 100],
])('a build %s comes closer to its end with each look, and never to it', (_, counts, seconds) => {
  const estimate = new BuildEstimate();
  const shares = counts.flatMap((packages, index) => {
    if (packages > 0) estimate.add(packages, index * 60_000);
    return [0, 20, 40, seconds].map((more) => estimate.share(index * 60_000 + more * 1_000));
  });

  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect(shares[0]).toBe(0);
  expect(shares.at(-1)).toBeGreaterThan(0);
  expect(shares.at(-1)).toBeLessThan(1);
});

test('the state of a build names percent and time left, of which the first seconds know nothing', () => {
  const estimate = new BuildEstimate();
  expect(estimate.describe(10_000)).toBe('0 %, some minutes left');
  estimate.add(2_799, 300_000);
  expect(estimate.describe(300_000)).toMatch(/^[89]\d %, about \d+ (s|min) left$/);
});
