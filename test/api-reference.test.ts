import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';
import { firstSentence, NO_DOCSTRING } from './api-reference/docstring.js';
import { page } from './api-reference/page.js';
import { api, pages } from './api-reference/pages.js';

const folder = join(repoFolder(), 'docs/reference');
const all = Object.values(api).flat();

/** `npm run reference` brings the pages up to date. */
test.each([...pages()])('docs/reference/%s is what the docstrings say', async (file, text) => {
  const options = { ...(await resolveConfig(folder)), parser: 'markdown' };

  await expect(await format(text, options)).toMatchFileSnapshot(join(folder, file));
});

test.each([...pages()])('no two headings of docs/reference/%s have one link', (_, text) => {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!.toLowerCase());

  expect(headings.filter((heading, index) => headings.indexOf(heading) !== index)).toEqual([]);
});

/** Types that the API mentions, isn't the place to tell of, and gives under another name. */
const UNDER_ANOTHER_NAME: Readonly<Record<string, string>> = {
  AppServiceSpec: `AppServiceProps['spec']; its fields are in docs/reference/appservice/`,
  FromStatus: 'StatusOf<typeof crd>',
};

test('every type of ours that the API mentions is exported too', () => {
  const exported = new Set([...all.map(({ name }) => name), ...Object.keys(UNDER_ANOTHER_NAME)]);

  const missing = all.flatMap(({ name, mentions }) =>
    mentions.filter((type) => !exported.has(type)).map((type) => `${name} mentions ${type}`),
  );
  expect(missing).toEqual([]);
});

test('everything that is exported says what it is', () => {
  expect(all.filter(({ docs }) => docs.text === '').map(({ name, file }) => `${file}: ${name}`)).toEqual([]);
});

test('what is exported and has no place on the page is an error', () => {
  const [one] = api['index.ts'];
  const props = { title: 'API', intro: 'All of it.', groups: [], exports: [one!] };

  expect(() => page(props)).toThrow(`${one!.name} of src/${one!.file}.ts is in no group`);
});

test('the first sentence of a docstring ends with it, and not with an abbreviation', () => {
  const text = 'A label, e.g. `app`: what\nselects. What it selects\nis told elsewhere.\n\nMore.';

  expect(firstSentence({ ...NO_DOCSTRING, text })).toBe('A label, e.g. `app`: what selects.');
});
