import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { pages, specFields, specNames } from './reference/pages.js';
import type { Rule } from './reference/words.js';

const folder = fileURLToPath(new URL('../../../docs/reference/appservice/', import.meta.url));
const generated = pages();

/** `npm run reference` brings the pages up to date. */
test.each([...generated])('docs/reference/appservice/%s is what the CRD says', async (file, text) => {
  const options = { ...(await resolveConfig(folder)), parser: 'markdown' };

  await expect(await format(text, options)).toMatchFileSnapshot(`${folder}${file}`);
});

test('there are no other pages', () => {
  expect(readdirSync(folder).sort()).toEqual([...generated.keys()].sort());
});

test('every field says what it means', () => {
  const fields = specNames.flatMap(specFields);

  expect(fields.filter(({ schema }) => !schema.description).map(({ path }) => path)).toEqual([]);
});

test('the pages tell every rule of the CRD', () => {
  const { openAPIV3Schema } = storedVersion(appService.crd).schema;
  const text = [...generated.values()].join('');

  const rules = rulesIn(openAPIV3Schema);
  expect(rules.length).toBeGreaterThan(30);
  expect(rules.filter((rule) => !text.includes(`\n  ${rule}\n`))).toEqual([]);
});

/** The expressions of all rules, wherever they stand. */
function rulesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'x-kubernetes-validations' ? (inner as Rule[]).map(({ rule }) => rule) : rulesIn(inner),
  );
}
