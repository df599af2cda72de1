import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';

const rows = [
  ...readFileSync(join(repoFolder(), 'docs/promises.md'), 'utf8').matchAll(/^\| (.+?) +\| (.+?) +\|$/gm),
]
  .map(([, promise, title]) => ({ promise: promise!, title: title! }))
  .filter(({ promise }) => promise !== 'promise' && !promise.startsWith('-'));
const sources = globSync('test/**/*.test.ts', { cwd: repoFolder() }).map((file) =>
  readFileSync(join(repoFolder(), file), 'utf8'),
);

const CALL = /(?<![.\w])(?:describe|test|it)\b[.(]/;
/** Matches a call that makes tests, and the title after its table or condition, if it has one. */
const TITLED = new RegExp(
  `(?<![.\\w])(?:test|it)(?:\\.\\w+)*(?:(?:(?!${CALL.source})[^])*?\\))??\\(\\s*(['"\`])(.+?)(?<!\\\\)\\1`,
  'g',
);
const titles = sources.flatMap((text) => [...text.matchAll(TITLED)].map(([, , title]) => title));

test('the page has rows', () => {
  expect(rows.length).toBeGreaterThan(60);
});

test.each(rows)('$promise: one test holds it', ({ title }) => {
  expect(titles.filter((each) => each === title)).toHaveLength(1);
});
