import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { describeThrown, markedOrigin, originOf, thrownReading } from '../../src/values/origin.js';
import { folderWith } from '../synth/fixtures.js';

function withStack(...frames: string[]): Error {
  const error = new Error('no ports');
  error.stack = ['Error: no ports', ...frames.map((frame) => `    at ${frame}`)].join('\n');
  return error;
}

const own = new URL('../../src/render/render.ts', import.meta.url).href;

test.each([
  ['a constructor', ['new Widget (file:///kinds/kind.mjs:12:5)'], '/kinds/kind.mjs:12:5'],
  ['no name', ['file:///kinds/kind.mjs:12:5'], '/kinds/kind.mjs:12:5'],
  ['a path', ['Object.status (/kinds/kind.cjs:1:2)'], '/kinds/kind.cjs:1:2'],
  ['an async function', ['async file:///kinds/kind.mjs:12:5'], '/kinds/kind.mjs:12:5'],
  ['a name with brackets', ['Widget.<anonymous> (file:///a%20b/kind.mjs:3:4)'], '/a b/kind.mjs:3:4'],
  ['a query', ['f (file:///kinds/kind.mjs?t=17:12:5)'], '/kinds/kind.mjs:12:5'],
  [
    'packages and Node before it',
    ['f (file:///p/node_modules/cdk8s/lib/a.js:1:1)', 'node:internal/x:1:1', 'new W (file:///p/w.mjs:2:3)'],
    '/p/w.mjs:2:3',
  ],
  ['this project, which somebody calls', [`render (${own}:1:1)`, 'f (file:///p/w.mjs:2:3)'], undefined],
  ['nothing else', [`render (${own}:1:1)`, 'Array.map (<anonymous>)', 'node:internal/x:1:1'], undefined],
])('an error from %s', (_, frames, place) => {
  expect(originOf(withStack(...frames))).toBe(place);
});

test.each([
  ['/p/kind.ts:2\nconst b = ;\n          ^\n\nSyntaxError: Expression expected', '/p/kind.ts:2:11'],
  ['file:///p/a%20b.ts:2\nconst a = 1;\nconst b = ;\n          ^\n\nSyntaxError: no', '/p/a b.ts:2:11'],
  ['Warning: Detected unsettled top-level await at file:///p/c.mjs:7\nawait never;\n^\n', '/p/c.mjs:7:1'],
  ['file:///p/node_modules/x/a.js:1\n=\n^\n\nSyntaxError: no', undefined],
  ['Error: /p/x.yaml:3\n    at f (node:internal/x:1:1)', undefined],
])('a place that Node marks: %j', (stack, place) => {
  expect(markedOrigin(stack)).toBe(place);
  expect(originOf(Object.assign(new SyntaxError(), { stack }))).toBe(place);
});

test('the cause tells, where the error itself does not', () => {
  const cause = withStack('new W (file:///p/w.mjs:2:3)');
  const error = Object.assign(withStack(`render (${own}:1:1)`), { cause });
  expect(originOf(error)).toBe('/p/w.mjs:2:3');
});

test('a cause that leads back to the error ends the search', () => {
  const error = withStack(`render (${own}:1:1)`);
  error.cause = Object.assign(withStack(`render (${own}:2:1)`), { cause: error });
  expect(originOf(error)).toBeUndefined();
  expect(String(thrownReading([{ kind: 'Secret', data: {} }], error))).toContain('whose text is not shown');
});

test('a real error is placed, below the working directory by its relative path', async () => {
  const folder = folderWith({
    'thrower.mjs': '\n\nexport const run = () => {\n  throw new Error("no");\n};\n',
  });
  const { run } = (await import(pathToFileURL(join(folder, 'thrower.mjs')).href)) as { run: () => void };

  expect(describeThrown(thrownBy(run))).toBe(`no (at ${join(folder, 'thrower.mjs')}:4:9)`);
  const here = /^no \(at test\/contract\/origin\.test\.ts:\d+:\d+\)$/;
  expect(describeThrown(new Error('no'))).toMatch(here);
});

function thrownBy(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return error;
  }
}
