import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliError } from '../../src/cli/exit.js';
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

test('without a configuration there are the built-in kinds', async () => {
  process.chdir(folderWith());
  expect(await loadKinds({ builtIn: [WIDGET] })).toEqual([WIDGET]);
});

test('the configuration of the working directory adds its kinds', async () => {
  process.chdir(folderWith({ 'reconstruct.config.mjs': `export default { kinds: [${KIND_BY_HAND}] };` }));
  const kinds = await loadKinds({ builtIn: [WIDGET] });
  expect(kinds.map(({ name }) => name)).toEqual(['widget', 'thing']);
});

test('a configuration may be named, and may be empty', async () => {
  const folder = folderWith({ 'mine.mjs': 'export default {};' });
  expect(await loadKinds({ builtIn: [WIDGET], config: join(folder, 'mine.mjs') })).toEqual([WIDGET]);
});

test.each<[text: string, expected: string]>([
  [
    'export const kinds = [];',
    'has no default export; write `export default { kinds: [defineKind({ ... })] }`',
  ],
  ['export default 1;', 'its default export is the number 1; write'],
  ['export default null;', 'its default export is null; write'],
  ['export default { kinds: {} };', 'kinds is an object with nothing in it, not a list; write'],
  [
    `export default { kinds: [${KIND_BY_HAND}, { crd: 'a.yaml', construct: class {} }] };`,
    'kinds[1] is an object with crd, construct, not a kind; make it with defineKind',
  ],
  ['export default { kinds: [class Thing {}] };', 'kinds[0] is the function or class Thing, not a kind'],
  ['export default { kinds: [null] };', 'kinds[0] is null, not a kind'],
  [
    `export default { kinds: [${KIND_BY_HAND}, ${KIND_BY_HAND}] };`,
    'kind Thing.demo.example.com is there twice',
  ],
  ["throw new Error('broken');", "can't be loaded: broken"],
  [
    "throw new SyntaxError('}');",
    "can't be loaded: }; `node --check` on it, and on what it imports, says where",
  ],
])('the configuration %j is refused', async (text, expected) => {
  const config = join(folderWith({ 'c.mjs': text }), 'c.mjs');
  const message = await messageOf(loadKinds({ builtIn: [WIDGET], config }));
  expect(message.startsWith(`${config}: `)).toBe(true);
  expect(message).toContain(expected);
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
    '--kinds: there is no kind widgit; did you mean widget?; the kinds are widget.demo.example.com, globe.demo.example.com',
  );
});

describe('a kind on request', () => {
  const onRequest = { 'widget.other.example.com': () => Promise.resolve(OTHER) };
  const load = (...kinds: string[]) =>
    loadKinds({ builtIn: [WIDGET], onRequest, ...(kinds.length > 0 && { kinds }) });
  beforeEach(() => {
    process.chdir(folderWith());
  });

  test('is there only when it is named with its group', async () => {
    expect(await load()).toEqual([WIDGET]);
    expect(await load('widget')).toEqual([WIDGET]);
    expect(await load('Widget.Other.example.com')).toEqual([OTHER]);
  });

  test('may be there beside the built-in ones, for which the bare name stands', async () => {
    expect(await load('widget', 'widget.other.example.com')).toEqual([WIDGET, OTHER]);
  });

  test('is among those that an unknown name is told of', async () => {
    expect(await messageOf(load('widgit'))).toContain(
      'the kinds are widget.demo.example.com, widget.other.example.com',
    );
  });
});
