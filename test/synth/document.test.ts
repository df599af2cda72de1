import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadCrd } from '../../src/author/load-crd.js';
import { decodeText, readYaml } from '../../src/values/yaml.js';
import { parseDocuments } from '../../src/validate/document.js';
import type { Document } from '../../src/validate/document.js';
import { folderWith, widgetCrd } from './fixtures.js';

function parse(text: string): { documents: Document[]; problems: string[] } {
  const problems: string[] = [];
  const documents = parseDocuments({ name: 'a.yaml', text }, (problem) => problems.push(problem));
  return { documents, problems };
}

function valuesOf(text: string): unknown[] {
  const { documents, problems } = parse(text);
  expect(problems).toEqual([]);
  return documents.map(({ value }) => value);
}

test('documents that hold nothing are left out and not counted', () => {
  const { documents } = parse('---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n');
  expect(documents.map(({ index, value }) => [index, value])).toEqual([
    [1, { a: 1 }],
    [2, { b: 2 }],
  ]);
});

test('a byte order mark and Windows line ends are taken', () => {
  expect(valuesOf('\uFEFFa: 1\r\nb:\r\n  - c\r\n---\r\nd: 2\r\n')).toEqual([{ a: 1, b: ['c'] }, { d: 2 }]);
});

test('the items of a List are objects of their own, with their own lines', () => {
  const { documents } = parse(
    'apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n  spec:\n    c: 1\n',
  );
  expect(documents.map(({ path, value }) => [path, value])).toEqual([
    [['items', 0], { kind: 'A' }],
    [['items', 1], { kind: 'B', spec: { c: 1 } }],
  ]);
  expect(documents[1]?.lineOf(['spec', 'c'])).toBe(7);
});

test('lines are found in any document, through lists, and for what is missing at its parent', () => {
  const { documents } = parse(
    '# top\na: 1\n---\n# comment\nspec:\n  ports:\n  - port: 1\n  - name: x\n    port: 2\n',
  );
  const [first, second] = documents;
  expect(first?.lineOf(['a'])).toBe(2);
  expect(second?.lineOf(['spec', 'ports', 1, 'port'])).toBe(9);
  expect(second?.lineOf(['spec', 'ports', 1])).toBe(8);
  expect(second?.lineOf(['spec', 'image'])).toBe(5);
  expect(second?.lineOf([])).toBe(5);
});

test.each([
  ['a: 1\na: 2\n', 'a.yaml: document 1, line 2: the key a is given twice; keep one of them'],
  [
    'ok: 1\n---\na: [1\nb: 2\n',
    /^a\.yaml: document 2, line \d: this is not YAML: .*; correct it, or put quotes/,
  ],
  ['a: b: c\n', /^a\.yaml: document 1, line 1: this is not YAML: Nested mappings are not allowed/],
  ['a: &x [*x]\n', /line 1: its anchors can't be resolved/],
  ['a: *nothing\n', /line 1: its anchors can't be resolved: nothing is not set before it is used; write/],
  [`a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`, /line 1: it is nested too deeply; make it flatter$/],
  ['a: 1\nb: {yes: 1, true: 2}\n', /line 2: the key true is given twice/],
  ['a: 1\n? [b]\n: c\n', /line 2: this can't be a key; put quotes around it/],
  ['a: 1\nb: .inf\n', /line 2: JSON has no number \.inf; put quotes around it$/],
  ['a: !!int x\n', /line 1: x is no int, as its tag has it; remove the tag$/],
])('%j is refused', (text, expected) => {
  const { problems } = parse(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(expected);
});

test('a document that aliases make too large is refused', () => {
  const rows = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i += 1)
    rows.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    );
  const { documents, problems } = parse(rows.join('\n'));
  expect(documents).toEqual([]);
  expect(problems[0]).toContain('makes it too large');
});

test('documents in JSON stand in a row, with lines of their own', () => {
  const { documents, problems } = parse('{"a": "}{"}\n{"b": 1}{\n  "c": {"d": "\\""}\n}\n---\ne: 1\n---\n');
  expect(problems).toEqual([]);
  expect(documents.map(({ index, value }) => [index, value])).toEqual([
    [1, { a: '}{' }],
    [2, { b: 1 }],
    [3, { c: { d: '"' } }],
    [4, { e: 1 }],
  ]);
  expect(documents[2]?.lineOf(['c', 'd'])).toBe(3);
  expect(documents[3]?.lineOf(['e'])).toBe(6);
  expect(parse('{"a": 1}\n{b: [}\n').problems).toEqual([
    expect.stringMatching(/^a.yaml: document 2, line 2: /),
  ]);
});

test.each([
  ['---\n---\n# c\n---\n', '---\n'],
  ['\ufeff', '---\n# c\n'],
])('a CRD is read from a file with %j before it and %j behind', (before, behind) => {
  const folder = folderWith({ 'crd.yaml': `${before}${JSON.stringify(widgetCrd())}\n${behind}` });
  expect(loadCrd(join(folder, 'crd.yaml'))).toEqual(widgetCrd());
  const twice = folderWith({ 'crd.yaml': JSON.stringify(widgetCrd()).repeat(2) });
  expect(() => loadCrd(join(twice, 'crd.yaml'))).toThrow(
    'holds several documents; put the CRD into a file of its own',
  );
});

test('of a kubeconfig of several documents, the first one counts', () => {
  expect(readYaml('---\na: 1\n---\nb: [\n')).toEqual({ a: 1 });
  expect(readYaml(decodeText(Buffer.from('\ufeffa: é\r\n', 'utf16le')))).toEqual({ a: 'é' });
});

test('the items of a list of one type have that type', () => {
  const text =
    '{"apiVersion": "a/v1", "kind": "WebList", "items": [{"metadata": {}}, {"kind": "X", "apiVersion": "v1"}]}';
  expect(valuesOf(text)).toEqual([
    { apiVersion: 'a/v1', kind: 'Web', metadata: {} },
    { kind: 'X', apiVersion: 'v1' },
  ]);
});
