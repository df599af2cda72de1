import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { CliError } from '../../src/cli/output.js';
import { loadKinds } from '../../src/cli/config.js';
import { folderWith, widgetKind } from '../synth/fixtures.js';

const WIDGET = widgetKind();
const OTHER = widgetKind({ group: 'other.example.com' });
const GLOBE = widgetKind({ kind: 'Globe', scope: 'Cluster' });

const KIND_BY_HAND = `{
  name: 'thing', type: { apiVersion: 'demo.example.com/v1', kind: 'Thing', plural: 'things', namespaced: true },
  crd: { spec: { group: 'demo.example.com' } }, rendering: { each: {} }, controllers() {},
}`;

const workingDirectory = process.cwd();
afterEach(() => {
  process.chdir(workingDirectory);
});

async function messageOf(action: Promise<unknown>): Promise<string> {
  const error: unknown = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(CliError);
  expect((error as CliError).exitCode).toBe(2);
  return (error as CliError).message;
}

test('the configuration of the working directory adds its kinds', async () => {
  process.chdir(folderWith({ 'reconstruct.config.mjs': `export default { kinds: [${KIND_BY_HAND}] };` }));
  const kinds = await loadKinds({ builtIn: [WIDGET] });
  expect(kinds.map(({ name }) => name)).toEqual(['widget', 'thing']);
});

test('a configuration may do without the built-in kinds', async () => {
  const text = `export default { builtIn: false, kinds: [${KIND_BY_HAND}] };`;
  process.chdir(folderWith({ 'reconstruct.config.mjs': text }));
  const names = async (kinds?: string[]): Promise<string[]> =>
    (await loadKinds({ builtIn: [WIDGET], ...(kinds && { kinds }) })).map(({ name }) => name);
  expect(await names()).toEqual(['thing']);
  expect(await messageOf(names(['widget']))).toContain(
    'there is no kind widget; the kinds are thing.demo.example.com, appservice.app.example.com',
  );
});

test.each<[text: string, expected: string | RegExp]>([
  [
    'export const kinds = [];',
    'its default export is undefined; write `export default { kinds: [defineKind({ ... })] }`',
  ],
  ['export default 1;', 'its default export is 1; write'],
  ['export default null;', 'its default export is null; write'],
  [
    'export default { builtin: false };',
    'its default export has a member builtin; it takes kinds, controllers and builtIn',
  ],
  ['export default { builtIn: 0 };', 'builtIn is 0; write true or false'],
  ['export default { kinds: {} };', 'kinds is {}, not a list; write'],
  [
    `export default { kinds: [${KIND_BY_HAND}, { crd: 'a.yaml', construct: class {} }] };`,
    "kinds[1] is { crd: 'a.yaml', construct: [class construct] }, not a kind; make it with defineKind",
  ],
  [
    'export default { kinds: [class Thing {}] };',
    'kinds[0] is [class Thing], not a kind; make it with defineKind({ crd, construct: Thing, children: [...] })',
  ],
  ['export default { kinds: [null] };', 'kinds[0] is null, not a kind'],
  [
    `export default { kinds: [${KIND_BY_HAND}, ${KIND_BY_HAND}] };`,
    'kind Thing.demo.example.com is there twice; list it once',
  ],
  ["throw new Error('broken');", /can't be loaded: broken \(at .*c\.mjs:1:7\)$/],
  ["throw new SyntaxError('}');", /can't be loaded: SyntaxError: } \(at .*c\.mjs:1:7\)$/],
])('the configuration %j is refused', async (text, expected) => {
  const config = join(folderWith({ 'c.mjs': text }), 'c.mjs');
  const message = await messageOf(loadKinds({ builtIn: [WIDGET], config }));
  expect(message.startsWith(`${config}: `)).toBe(true);
  expect(message).toMatch(expected);
});

test('a definition that cannot work is reported with its line', async () => {
  const defineCrd = pathToFileURL(join(import.meta.dirname, '../../src/author/define-crd.ts')).href;
  const text = `import { defineCrd } from '${defineCrd}';\n\nexport default defineCrd({ group: 'web' });`;
  const config = join(folderWith({ 'c.mjs': text }), 'c.mjs');
  expect(await messageOf(loadKinds({ builtIn: [], config }))).toMatch(
    /can't be loaded: defineCrd: takes .*; kind is missing \(at .*c\.mjs:3:\d+\)$/,
  );
});

test('a module of TypeScript that is imported under another name is reported with its own name', async () => {
  // As Node throws it, which has no say over modules in this test.
  const missing =
    "const url = new URL('./kind.js', import.meta.url).href; throw Object.assign(new Error(url), { url, code: 'ERR_MODULE_NOT_FOUND' });";
  const folder = folderWith({ 'c.mjs': missing, 'kind.ts': 'export const kind = 1;' });
  expect(await messageOf(loadKinds({ builtIn: [], config: join(folder, 'c.mjs') }))).toMatch(
    /; there is kind\.ts: import it by that name$/,
  );
});

test('a configuration that is named and missing is an error', async () => {
  expect(await messageOf(loadKinds({ builtIn: [], config: 'no/such.mjs' }))).toBe(
    'no/such.mjs: there is no such file; check the path given to --config',
  );
});

test('a kind that is built in may not be listed again', async () => {
  const fixtures = pathToFileURL(join(import.meta.dirname, '../synth/fixtures.ts')).href;
  const config = join(
    folderWith({
      'c.mjs': `import { widgetKind } from '${fixtures}'; export default { kinds: [widgetKind()] };`,
    }),
    'c.mjs',
  );
  expect(await messageOf(loadKinds({ builtIn: [WIDGET], config }))).toContain(
    'kind Widget.demo.example.com is there twice; built-in kinds need not be listed, remove it',
  );
});

test.each<[names: string[], expected: object[]]>([
  [['widget'], [WIDGET, OTHER]],
  [['Widget.other.example.com'], [OTHER]],
  [
    ['globe', 'widget.demo.example.com'],
    [WIDGET, GLOBE],
  ],
])('%j are chosen', async (names, expected) => {
  process.chdir(folderWith());
  expect(await loadKinds({ builtIn: [WIDGET, OTHER, GLOBE], kinds: names })).toEqual(expected);
});

test('an unknown name lists what there is', async () => {
  process.chdir(folderWith());
  expect(await messageOf(loadKinds({ builtIn: [WIDGET, GLOBE], kinds: ['widgit'] }))).toBe(
    '--kinds: there is no kind widgit; the kinds are widget.demo.example.com, globe.demo.example.com, appservice.app.example.com; did you mean widget?',
  );
});

test('a kind on request is there only when it is named with its group, beside the bare name of another', async () => {
  process.chdir(folderWith());
  const load = async (...kinds: string[]) =>
    (await loadKinds(kinds.length > 0 ? { kinds } : {})).map(({ type }) => type.apiVersion);
  const [own, onRequest] = ['kosmos.io/v1', 'app.example.com/v1'];
  expect(await load()).not.toContain(onRequest);
  expect(await load('appservice')).toEqual([own]);
  expect(await load('AppService.App.example.com')).toEqual([onRequest]);
  expect(await load('appservice', 'appservice.app.example.com')).toEqual([own, onRequest]);
});
