import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { manifestText } from '../../src/validate/output.js';
import { InputError } from '../../src/validate/problem.js';
import { synth } from '../../src/cli/synth/synth.js';
import type { SynthOptions } from '../../src/cli/synth/synth.js';
import { render as renderForTest } from '../../src/testing/render.js';
import { loadKind } from '../support/bundle.js';
import { folderWith, widgetCrd, widgetKind } from './fixtures.js';

const KINDS: readonly OwnedKind[] = [widgetKind(), widgetKind({ kind: 'Globe', scope: 'Cluster' })];

const WEB = `apiVersion: demo.example.com/v1
kind: Widget
metadata:
  name: web
  namespace: shop
spec:
  image: nginx
  ports:
    - port: 80
`;

/** Renders one text given on standard input. */
async function synthText(text: string, options: Partial<SynthOptions> = {}) {
  return synth({ kinds: KINDS, sources: ['-'], stdin: () => Promise.resolve(Buffer.from(text)), ...options });
}

async function problemsOf(action: Promise<unknown>): Promise<readonly string[]> {
  const error: unknown = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(InputError);
  return (error as InputError).lines;
}

test('a custom resource becomes one file, with the defaults of the schema', async () => {
  const files = await synthText(WEB);
  expect(files).toEqual([
    {
      name: 'shop.widget.demo.example.com.web.yaml',
      text: `---
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    app: web
    app.kubernetes.io/managed-by: reconstruct
    app.kubernetes.io/name: web
    demo.example.com/widget: web
  name: web
  namespace: shop
data:
  image: nginx
  size: "1"
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app: web
    app.kubernetes.io/managed-by: reconstruct
    app.kubernetes.io/name: web
    demo.example.com/widget: web
  name: web
  namespace: shop
spec:
  ports:
    - port: 80
      protocol: TCP
`,
    },
  ]);
});

test('the namespace: as given, else of the option, else none', async () => {
  const without = WEB.replace('  namespace: shop\n', '');
  expect((await synthText(without))[0]).toMatchObject({
    name: 'default.widget.demo.example.com.web.yaml',
    text: expect.not.stringContaining('namespace:') as string,
  });
  expect((await synthText(without, { namespace: 'lab' }))[0]?.name).toBe(
    'lab.widget.demo.example.com.web.yaml',
  );
  expect((await synthText(WEB, { namespace: 'lab' }))[0]?.name).toBe('shop.widget.demo.example.com.web.yaml');
});

test('a version that a webhook converts is refused', async () => {
  const crd = widgetCrd();
  const spec = { ...crd.spec, conversion: { strategy: 'Webhook' } };
  const kinds = [{ ...widgetKind(), crd: { ...crd, spec } }];
  expect(await synthText(WEB, { kinds })).toHaveLength(1);
  expect(await problemsOf(synthText(WEB.replace('/v1\n', '/v1beta1\n'), { kinds }))).toEqual([
    '<stdin>: document 1, line 1: apiVersion: demo.example.com/v1beta1 is converted by a webhook, which is not asked here; write demo.example.com/v1',
  ]);
});

test('files, folders and order change nothing', async () => {
  const api = WEB.replace('name: web', 'name: api');
  const folder = folderWith({ 'b.yaml': WEB, 'a.yml': api, 'notes.txt': 'not: [read' });
  const json = folderWith({
    'c.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [yaml(WEB), yaml(api)] }),
  });

  const files = await synth({ kinds: KINDS, sources: [folder] });

  expect(files.map(({ name }) => name)).toEqual([
    'shop.widget.demo.example.com.api.yaml',
    'shop.widget.demo.example.com.web.yaml',
  ]);
  expect(await synthText(`${WEB}---\n${api}`)).toEqual(files);
  expect(await synth({ kinds: KINDS, sources: [json] })).toEqual(files);
  expect(await synth({ kinds: KINDS, sources: [join(folder, 'b.yaml'), folder] })).toEqual(files);
});

function yaml(text: string): unknown {
  return parseAllDocuments(text)[0]?.toJS();
}

test('subfolders are read only when asked for', async () => {
  const folder = folderWith({ 'a.yaml': WEB });
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'sub', 'b.yaml'), WEB.replace('name: web', 'name: api'));
  expect(await synth({ kinds: KINDS, sources: [folder] })).toHaveLength(1);
  expect(await synth({ kinds: KINDS, sources: [folder], recursive: true })).toHaveLength(2);
});

const UNNAMED = WEB.replace('  name: web\n', '');
const NOWHERE = WEB.replace('  namespace: shop\n', '');
const LIST = `apiVersion: v1\nkind: List\nitems:\n- ${WEB.trimEnd().replaceAll('\n', '\n  ')}\n`;

test.each<[text: string, ...expected: string[]]>([
  [
    WEB.replace('80', '99999'),
    '1, line 9: spec.ports[0].port: 99999 is more than 65535; give a number between',
  ],
  [WEB.replace('image', 'imge'), '1, line 7: spec.imge: unknown field; did you mean'],
  [
    `${WEB}---\n${WEB.replace('name: web', 'name: Web!')}`,
    '2, line 14: metadata.name: "Web!" is not a DNS sub',
  ],
  [UNNAMED, '<stdin>: document 1, line 3: metadata.name: is missing; add it'],
  [
    WEB.replace('name: web', 'generateName: web-'),
    '1, line 4: metadata.generateName: the name would be made up',
  ],
  [
    WEB.replace('shop', 'my.shop'),
    '1, line 5: metadata.namespace: "my.shop" is not a DNS label; use up to 63',
  ],
  [
    WEB.replace('demo.example.com/v1', 'demos.example.com/v1'),
    'apiVersion: Widget of demos.example.com/v1 is not a kind that is rendered here; did you mean demo.example.com/v1',
  ],
  [
    WEB.replace(/spec:[^]*/, 'spec:\n  # image: nginx\n'),
    'spec: is null, which counts as missing; give it a value',
  ],
  ['apiVersion: apps/v1\nkind: Deployment\n', '1, line 2: kind: Deployment of apps/v1 is not a kind that is'],
  [
    WEB.replace('/v1\n', '/v1alpha1\n'),
    'in which Widget is served; write demo.example.com/v1 or demo.example.com',
  ],
  [
    'apiVersion: v1\n',
    '1, line 1: kind: is missing; add it; the kinds are Widget (demo.example.com/v1), Globe',
  ],
  ['hello world\n', '<stdin>: document 1, line 1: "hello world" is not a Kubernetes object; give a map'],
  [
    `${WEB}---\n${WEB}`,
    '2, line 14: metadata.name: Widget "web" is there already: <stdin>, document 1, line 4; rem',
  ],
  [
    `${WEB.replace('shop', 'default')}---\n${NOWHERE}`,
    'without one it would be written to default.widget.demo.',
  ],
  ['# nothing\n', '-: there is no document in it; give at least one custom resource'],
  [LIST.replace('80', 'x'), '1, line 12: items[0].spec.ports[0].port: "x" is a string, not an integer'],
  [
    WEB.replace('  ports:', '  settings: {__proto__: x}\n  ports:'),
    'line 1: spec.settings has a key named __proto__',
  ],
])('%j is refused: %s', async (text, ...expected) => {
  const problems = await problemsOf(synthText(text));

  expect(problems).toHaveLength(expected.length);
  for (const [index, part] of expected.entries()) expect(problems[index]).toContain(part);
});

test('kinds of others are refused, with the kinds that are known once, and one that is misspelt with what was meant', async () => {
  const foreign = 'apiVersion: apps/v1\nkind: Deployment\n';
  const problems = await problemsOf(
    synthText([foreign, foreign, WEB.replace('Widget', 'Widgt')].join('---\n')),
  );
  expect(problems.map((line) => line.replace(/^.*rendered here; /, ''))).toEqual([
    expect.stringMatching(/^remove it; the kinds are Widget \(demo\.example\.com\/v1\), /),
    'remove it',
    'did you mean Widget?',
  ]);
});

test('problems with sources name the source and the remedy', async () => {
  const empty = folderWith({ 'readme.md': '' });
  const binary = join(folderWith(), 'x.yaml');
  writeFileSync(binary, Buffer.from([0xff, 0xfe, 0xfa]));
  expect(await problemsOf(synth({ kinds: KINDS, sources: ['no/such.yaml', empty, binary] }))).toEqual([
    "no/such.yaml: can't be read: there is no such file or folder; check the path",
    `${empty}: holds no .yaml, .yml, .json file; name another folder`,
    `${binary}: can't be read: it is not UTF-8 text; give YAML or JSON, saved as UTF-8`,
  ]);
});

test('a namespace given that is none is refused', async () => {
  expect(await problemsOf(synthText(WEB, { namespace: 'A B' }))).toEqual([
    '--namespace "A B" is not a DNS label; give the name of a namespace',
  ]);
});

test('many problems are shown in part and counted', async () => {
  const text = Array.from({ length: 30 }, (_, i) =>
    WEB.replace('name: web', `name: w${i}`).replace('80', '0'),
  ).join('---\n');
  const lines = await problemsOf(synthText(text));
  expect(lines).toHaveLength(21);
  expect(lines[20]).toBe('... and 10 more problems');
});

test('whatever JSON is written, YAML parsers of both versions read it back', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      'yes',
      'n',
      '0644',
      '12:30',
      '1e3',
      '.5',
      '~',
      'null',
      '2001-01-01',
      '---',
      '<<',
      '=',
      ' x\n\n y ',
      '#',
    ),
  );
  const value = fc.object({
    key: text.filter((key) => key !== '__proto__'),
    values: [text, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()],
    ...{ maxDepth: 2, maxKeys: 4 },
  });
  fc.assert(
    fc.property(value, (data) => {
      const written = manifestText([{ apiVersion: 'v1', kind: 'A', metadata: { name: 'a' }, data }]);
      for (const version of ['1.1', '1.2'] as const) {
        const documents = parseAllDocuments(`${written}${written}`, { version });
        const read = documents.map((document) => plain((document.toJS() as { data: unknown }).data));
        expect(read).toEqual([plain(data), plain(data)]);
      }
    }),
    { numRuns: 40 },
  );
});

/** As JSON has it, which knows no -0. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

test('a kind that observes its children is rendered without them, which is said once', async () => {
  const { kind } = await loadKind('test/support/kinds/gate.config.mjs');
  const cr = (name: string): AnyObject => ({
    ...{ apiVersion: 'test.example.com/v1', kind: 'Gate', metadata: { name, namespace: 'shop' }, spec: {} },
  });
  const notes: string[] = [];
  const sources = [folderWith({ 'a.json': JSON.stringify(cr('a')), 'b.json': JSON.stringify(cr('b')) })];
  const [first] = await synth({ kinds: [kind], sources, note: (line) => notes.push(line) });
  expect(first!.text).toContain('address: pending');
  expect(notes).toEqual([
    'Gate: what depends on the status of its children is pending; it is rendered as if there were none yet',
  ]);
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
  const observed = [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, status }];
  const [, config] = renderForTest(kind, cr('a'), { observed });
  expect(config).toMatchObject({ data: { address: '192.0.2.1' } });
});

test('fields of objects of others are left out of the manifests, with a note', async () => {
  const { kind } = await loadKind('examples/nap/reconstruct.config.mjs');
  const notes: string[] = [];
  const sources = ['examples/nap/sample.yaml'];
  expect(await synth({ kinds: [kind], sources, note: (line) => notes.push(line) })).toEqual([]);
  expect(notes).toEqual([
    "examples/nap/sample.yaml: document 1, line 1: Deployment web isn't rendered: it belongs to others, and the operator sets fields of it",
  ]);
});

test('an object that two custom resources make is refused, as the operator would stall one of them', async () => {
  const globe = WEB.replace('kind: Widget', 'kind: Globe').replace('  namespace: shop\n', '');
  const widget = WEB.replace('  namespace: shop\n', '');

  const problems = await problemsOf(synthText(`${widget}---\n${globe}`));

  expect(problems).toEqual([
    '<stdin>: document 2, line 10: Globe web makes ConfigMap web, and so does Widget web: give one of them another name',
  ]);
});
