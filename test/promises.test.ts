import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';

const rows = [
  ...readFileSync(join(repoFolder(), 'docs/promises.md'), 'utf8').matchAll(/^\| (.+?) +\| (.+?) +\|$/gm),
]
  .map(([, promise, title]) => ({ promise: promise!, title: title! }))
  .filter(({ promise }) => promise !== 'promise' && !promise.startsWith('-'));
const titles = globSync('test/**/*.test.ts', { cwd: repoFolder() }).flatMap((file) => {
  const text = readFileSync(join(repoFolder(), file), 'utf8');
  return titlesBelow(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
});

/** Returns the titles of tests: each as it is, and after that of its group, without the case of one that runs for several. */
function titlesBelow(node: ts.Node, group = ''): string[][] {
  const [name, title] = ts.isCallExpression(node) ? calledWithTitle(node) : [];
  const own = title === undefined || name === 'describe' ? [] : [[title, `${group} ${title}`]];
  const below: string[][] = [];
  ts.forEachChild(node, (child) => {
    below.push(...titlesBelow(child, name === 'describe' ? title : group));
  });
  return [...own, ...below];
}

function calledWithTitle({
  expression,
  arguments: [first],
}: ts.CallExpression): [name?: string, title?: string] {
  let called: ts.Node = expression;
  while (ts.isPropertyAccessExpression(called) || ts.isCallExpression(called)) called = called.expression;
  if (!ts.isIdentifier(called) || !['describe', 'test', 'it'].includes(called.text)) return [];
  if (first === undefined || !(ts.isStringLiteralLike(first) || ts.isTemplateExpression(first))) return [];
  const title = ts.isStringLiteralLike(first) ? first.text : `${first.head.text}\${}`;
  return [called.text, title.replace(/: [^:]*[$%].*$/, '')];
}

test('the page has rows', () => {
  expect(rows.length).toBeGreaterThan(60);
});

test.each(rows)('$promise: one test holds it', ({ title }) => {
  expect(title).not.toMatch(/[$%][\w{]/);
  expect(titles.filter((each) => each.includes(title))).toHaveLength(1);
});
