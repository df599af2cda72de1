import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { asMarkdown } from './markdown.js';
import { registeredMetrics } from './registered-metrics.js';

const REFERENCE = join(repoFolder(), 'docs/reference/metrics.md');

/** One line for each. */
async function table(): Promise<string> {
  const rows = (await registeredMetrics())
    .map(({ name, type, labels, help }) => [
      `\`${name}\``,
      type,
      labels.map((label) => `\`${label}\``).join(', '),
      help.replace(/<\w+>/g, '`$&`'),
    ])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  return asMarkdown([['name', 'type', 'labels', 'meaning'], ...rows]);
}

/** `-u` after the name of this file brings the reference up to date. */
it('is in the reference, each metric with its labels and its meaning', async () => {
  const reference = readFileSync(REFERENCE, 'utf8');
  const made = await table();
  await expect(reference.replace(/(?:^\|.*\n)+/m, () => made)).toMatchFileSnapshot(REFERENCE);
});
