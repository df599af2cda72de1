import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { writeYaml } from '../../src/values/yaml.js';
import { parseDocuments, readSources } from '../../src/validate/document.js';
import { scalars } from '../synth/support/scalars.js';
import { withFolder } from '../support/commands.js';

const sandbox = openSandbox(inject('sandbox'));

interface Read {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly value?: unknown;
}

const refused = 'refused';

/** What a text after `value:` becomes, or that it is refused. */
type Verdicts = ReadonlyMap<string, unknown>;

function objectText(name: number, value: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n${name}\n${value}`;
}

/** Has kubectl read each text as a file of its own, in one run: it goes on after a file that it refuses. */
async function kubectlReads(texts: readonly string[]): Promise<Verdicts> {
  return withFolder(async (folder) => {
    const files = join(folder, 'files');
    await mkdir(files);
    await Promise.all(
      texts.map((text, name) => writeFile(join(files, `${name}.yaml`), objectText(name, text))),
    );
    const { stdout, stderr } = await sandbox.kubectl(
      ['create', '--dry-run=client', '--validate=false', '-o', 'json', '-f', files],
      { allowFailure: true },
    );
    const printed = stdout.split(/(?<=^\}\n)/m).map((text) => JSON.parse(text) as Read & { items?: Read[] });
    const objects = new Map(
      printed.flatMap((each) => each.items ?? [each]).map((each) => [each.metadata.name, each]),
    );
    expect(objects.size, stderr.slice(0, 1000)).toBeGreaterThan(texts.length / 3);
    return new Map(texts.map((text, name) => [text, verdictOf(objects.get(`n${name}`))]));
  });
}

function synthReads(texts: readonly string[]): Verdicts {
  return new Map(
    texts.map((text, name) => {
      const problems: string[] = [];
      const source = { name: 'a.yaml', text: objectText(name, text) };
      const [document] = parseDocuments(source, (problem) => problems.push(problem));
      return [text, problems.length > 0 ? refused : verdictOf(document?.value as Read)];
    }),
  );
}

/** Maps are compared as lists of members, since a key may be any text. JSON knows no -0. */
function verdictOf(object: Read | undefined): unknown {
  if (!object) return refused;
  return JSON.parse(
    JSON.stringify(object.value ?? null, (_, member: unknown) =>
      typeof member === 'object' && member !== null && !Array.isArray(member)
        ? Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))
        : member,
    ),
  );
}

function differences(texts: readonly string[], ours: Verdicts, theirs: Verdicts): unknown[] {
  return texts
    .filter((text) => JSON.stringify(ours.get(text)) !== JSON.stringify(theirs.get(text)))
    .map((text) => ({ text, ours: ours.get(text), kubectl: theirs.get(text) }));
}

test('synth reads every scalar as kubectl does, as a value and as a key; a key that is a float may be refused', async () => {
  const all = scalars(22, 600);
  const texts = all.flatMap((scalar) => [`value: ${scalar}\n`, `value:\n  ${scalar}: x\n`]);
  const theirs = await kubectlReads(texts);
  const ours = synthReads(texts);
  // What one hardly means: as a key, kubectl makes another text of it; and tags that are no more than a detour.
  const mayBeRefused =
    /^value:\n {2}(?:!!float )?[-+\d._]+(?:e[-+]?[\d_]+|inf|nan)?: x|!!(?:float|binary|merge) /i;
  const isRefusal = (text: string): boolean => ours.get(text) === refused && mayBeRefused.test(text);

  expect(
    differences(
      texts.filter((text) => !isRefusal(text)),
      ours,
      theirs,
    ),
  ).toEqual([]);
});

test('synth reads anchors, merge keys, tags and several documents as kubectl does', async () => {
  const texts = [
    'value: {a: &a {b: 1}, c: *a, d: {<<: *a, b: 2}, e: {b: 2, <<: *a}}\n',
    'value: {a: &a {b: 1, c: 1}, d: &d {b: 2}, e: {<<: [*a, *d]}}\n',
    'value: {<<: {a: 1}, "<<": b}\n',
    'value: {<<: 1}\n',
    'value: {<<: [1]}\n',
    'value: {a: &x 1, b: {a: &x 2}, c: *x}\n',
    'value: {a: &a [&b 1], c: &b 2, d: *a, e: *b}\n',
    'value: &a [*a]\n',
    'value: *missing\n',
    'value: {? [a] : b}\n',
    'value: !!set {a, b}\n',
    'value: !!omap [a: 1]\n',
    'value: !local {a: !local [1]}\n',
    'value: |\n  yes\n',
    'value: >-\n  1\n  2\n',
    'value: 1\n  2\n',
    'value:\n',
    'value:\n---\n# nothing\n',
    'value: 1\n--- # end\n',
  ];
  expect(differences(texts, synthReads(texts), await kubectlReads(texts))).toEqual([]);
});

test('kubectl reads any text that is written as YAML as that text, as a value and as a key', async () => {
  const odd = [
    'a\u2028b',
    'a\u0085b',
    '\ufeff',
    '\u007f',
    ' x\n\n y ',
    '\ud83d\ude00',
    '\uffff',
    '\t',
    'a\r\nb',
    '- a',
    'a: b',
  ];
  const all = [...scalars(23, 500), ...scalars(23, 100).map((text) => ` ${text}`), ...odd];
  const texts = all.map((text) => writeYaml({ value: { list: [text, [text]], map: { [text]: text } } }));
  const meant = new Map(
    texts.map((text, at) => {
      const value = { list: [all[at], [all[at]]], map: { [all[at] ?? '']: all[at] } };
      return [text, verdictOf({ apiVersion: '', kind: '', metadata: { name: '' }, value })];
    }),
  );
  expect(differences(texts, meant, await kubectlReads(texts))).toEqual([]);
});

/** Texts of files by what is in them, of objects with these names. */
const SHAPES: Readonly<Record<string, (a: string, b: string) => string>> = {
  ...{ 'one document': (a) => yamlOf(a), 'a mark at the begin': (a) => `---\n${yamlOf(a)}` },
  'a mark at the end': (a) => `${yamlOf(a)}---\n`,
  'a mark at the end, without a newline': (a) => `${yamlOf(a)}---`,
  'marks at both ends, and comments': (a) => `---\n---\n# c\n${yamlOf(a)}---\n# only\n---\n`,
  'a comment before the mark': (a) => `# c\n---\n${yamlOf(a)}`,
  'empty documents between': (a, b) => `${yamlOf(a)}---\n\n---\n  \n---\n${yamlOf(b)}`,
  'a comment at the mark': (a, b) => `${yamlOf(a)}--- # c\n${yamlOf(b)}`,
  'blanks at the mark': (a, b) => `${yamlOf(a)}---  \t\n${yamlOf(b)}`,
  ...{ 'an end': (a) => `${yamlOf(a)}...\n` },
  ...{ 'empty lines before': (a) => `\n\n${yamlOf(a)}`, 'no newline at the end': (a) => yamlOf(a).trimEnd() },
  ...{ nothing: () => '', 'a comment': () => '# c\n', blanks: () => ' \n\t\n', null: () => 'null\n' },
  ...{
    'one in JSON': (a) => jsonOf(a),
    'one in indented JSON': (a) => JSON.stringify(objectOf(a), null, '\t'),
  },
  ...{
    'JSON in a row': (a, b) => jsonOf(a) + jsonOf(b),
    'lines of JSON': (a, b) => `${jsonOf(a)}\n${jsonOf(b)}\n`,
  },
  'JSON and empty lines': (a, b) => `\n ${jsonOf(a)}\n\n  ${jsonOf(b)}\n\n`,
  'JSON with braces in text': (a, b) =>
    JSON.stringify({ ...objectOf(a), data: { x: '}{ "' } }) +
    JSON.stringify({ ...objectOf(b), data: { y: '\\' } }),
  'JSON and marks': (a, b) => `${jsonOf(a)}\n---\n${jsonOf(b)}\n---\n`,
  'JSON, then YAML': (a, b) => `${jsonOf(a)}\n---\n${yamlOf(b)}`,
  'YAML, then JSON': (a, b) => `${yamlOf(a)}---\n${jsonOf(b)}`,
  'half of JSON': (a, b) => `${jsonOf(a)}{"apiVersion":"v1","kind":"${b}"`,
  'a list': (a, b) => `apiVersion: v1\nkind: List\nitems:\n- ${jsonOf(a)}\n- ${jsonOf(b)}\n`,
  'a list in JSON': (a, b) => JSON.stringify({ ...LIST, items: [objectOf(a), objectOf(b)] }),
  'a list of one type': (a, b) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMapList',
      items: [objectOf(a), { metadata: { name: b } }],
    }),
  'a list in a list': (a, b) =>
    JSON.stringify({ ...LIST, items: [objectOf(a), { ...LIST, items: [objectOf(b)] }] }),
  ...{ 'an empty list': () => JSON.stringify({ ...LIST, items: [] }) },
  'an empty list and more': (a) => `${JSON.stringify({ ...LIST, items: [] })}\n---\n${yamlOf(a)}`,
  'text beyond ASCII': (a) => `${yamlOf(a)}data: { x: "é ü 😀 \u00a0" }\n`,
};

const LIST = { apiVersion: 'v1', kind: 'List' };

function objectOf(name: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
}

function yamlOf(name: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`;
}

function jsonOf(name: string): string {
  return JSON.stringify(objectOf(name));
}

const ENCODINGS: Readonly<Record<string, (text: string) => Buffer>> = {
  'UTF-8': (text) => Buffer.from(text),
  'UTF-8 with a byte order mark': (text) => Buffer.from(`\ufeff${text}`),
  'UTF-16, little end first': (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
  'UTF-16, big end first': (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
};

test('the same objects are in a file for synth as for kubectl, however editors and tools have left it', async () => {
  const files = Object.entries(SHAPES).flatMap(([shape, textOf], index) =>
    Object.entries(ENCODINGS).flatMap(([encoding, encode], which) =>
      ['\n', '\r\n'].map((newline) => {
        const name = `n${index}-${which}-${newline.length}`;
        const text = textOf(`${name}-a`, `${name}-b`).replaceAll('\n', newline);
        return { name, what: `${shape}, ${encoding}, ${JSON.stringify(newline)}`, bytes: encode(text) };
      }),
    ),
  );
  await withFolder(async (folder) => {
    await Promise.all(files.map(({ name, bytes }) => writeFile(join(folder, `${name}.yaml`), bytes)));
    const { stdout } = await sandbox.kubectl(
      ['create', '--dry-run=client', '--validate=false', '-o', 'name', '-f', folder],
      { allowFailure: true },
    );
    const theirs = new Set(stdout.split('\n'));
    const differing = await Promise.all(
      files.map(async ({ name, what }) => {
        const wanted = ['a', 'b'].filter((which) => theirs.has(`configmap/${name}-${which}`)).join();
        const problems: string[] = [];
        const [source] = await readSources({ sources: [join(folder, `${name}.yaml`)] });
        const documents = parseDocuments(source!, (problem) => problems.push(problem));
        // A list in a list is no custom resource, and the whole file is refused for it.
        const found = documents.map(({ value }) =>
          (value as Partial<Read>).metadata?.name.slice(name.length + 1),
        );
        const names = found.includes(undefined) ? '' : found.join();
        return names === wanted ? [] : [`${what}: kubectl has ${wanted}, here ${names} ${problems.join()}`];
      }),
    );
    expect(theirs.size).toBeGreaterThan(files.length / 2);
    expect(differing.flat()).toEqual([]);
  });
});
