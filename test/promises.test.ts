import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';

const rows = [
  ...readFileSync(join(repoFolder(), 'docs/promises.md'), 'utf8').matchAll(/^\| (.+?) +\| (.+?) +\|$/gm),
]
  .map(([, promise, title]) => ({ promise: promise!, title: title! }))
  .filter(({ promise }) => promise !== 'promise' && !promise.startsWith('-'));
const files = globSync('test/**/*.test.ts', { cwd: repoFolder() });
const sources = files.map((file) => readFileSync(join(repoFolder(), file), 'utf8'));

test('the page has rows', () => {
  expect(rows.length).toBeGreaterThan(60);
});

test.each(rows)('$promise: one test holds it', ({ title }) => {
  const quoted = ["'", '"', '`'].map((quote) => quote + title + quote);
  const holding = files.filter((_, index) => quoted.some((text) => sources[index]!.includes(text)));

  expect(holding).toHaveLength(1);
});
