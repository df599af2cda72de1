import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parsePolicy } from '../../../src/cli/policy.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { examples, examplesOf } from './reference/examples.js';
import { specFields, specNames, WITHOUT_EXAMPLE } from './reference/pages.js';
import { render } from './render.js';

test.each(examples.map((example) => [example.file, example] as const))(
  'examples/appservice/%s is rendered',
  async (file, { resource: { metadata, spec } }) => {
    expect(`${metadata.name}.yaml`).toBe(file);
    await expect(render(spec, metadata).yaml).toMatchFileSnapshot(`__snapshots__/examples/${file}`);
  },
);

/** Without an example, as the page says, or below such a field. */
function isExempt(path: string): boolean {
  return Object.keys(WITHOUT_EXAMPLE).some((start) => path === start || path.startsWith(`${start}.`));
}

test.each(specNames)('every field of %s has an example, or a reason why not', (name) => {
  const fields = specFields(name);
  const found = examplesOf(name, fields);

  const without = fields.map(({ path }) => path).filter((path) => found.get(path)!.length === 0);
  expect(without).toEqual(fields.map(({ path }) => path).filter(isExempt));
});

test('the example of a policy is one', () => {
  const file = fileURLToPath(new URL('../../../examples/policy/policy.yaml', import.meta.url));

  expect(Object.keys(parsePolicy(file, readFileSync(file, 'utf8'), [appService]))).toEqual(['appservice']);
});
