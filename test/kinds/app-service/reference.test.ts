import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { page, specFields, specNames } from './reference/pages.js';
import type { Rule } from './reference/words.js';

const file = fileURLToPath(new URL('../../../docs/reference/appservice-fields.md', import.meta.url));
const text = page();

/** `npm run reference` updates the page. */
test('docs/reference/appservice-fields.md is what the CRD says', async () => {
  const options = { ...(await resolveConfig(file)), parser: 'markdown' };

  await expect(await format(text, options)).toMatchFileSnapshot(file);
});

test('every field says what it means', () => {
  const fields = specNames.flatMap(specFields);

  expect(fields.filter(({ schema }) => !schema.description).map(({ path }) => path)).toEqual([]);
});

test('the page has every rule of the CRD', () => {
  const { openAPIV3Schema } = storedVersion(appService.crd).schema;

  const rules = rulesIn(openAPIV3Schema);
  expect(rules.length).toBeGreaterThan(30);
  expect(rules.filter((rule) => !text.includes(`\`${rule}\``))).toEqual([]);
});

/** The expressions of all rules, wherever they stand. */
function rulesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'x-kubernetes-validations' ? (inner as Rule[]).map(({ rule }) => rule) : rulesIn(inner),
  );
}
