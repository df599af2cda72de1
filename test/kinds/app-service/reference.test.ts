import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { sectionsIn } from '../../../src/cli/sections.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { examples, examplesOf, page, specFields, specNames, WITHOUT_EXAMPLE } from './reference.js';
import { render } from './render.js';

const pathOf = (file: string): string => fileURLToPath(new URL(`../../../${file}`, import.meta.url));

/** `npm run reference` updates the page. */
test('docs/reference/appservice-fields.md is what the CRD says', async () => {
  const file = pathOf('docs/reference/appservice-fields.md');
  const options = { ...(await resolveConfig(file)), parser: 'markdown' };

  await expect(await format(page(), options)).toMatchFileSnapshot(file);
});

test.each(examples)(
  'examples/appservice/$file makes the objects that it is about',
  ({ file, resource: { metadata, spec } }) => {
    const wanted = {
      Deployment: true,
      Service: spec.ports,
      HorizontalPodAutoscaler: spec.autoscaling,
      PodDisruptionBudget: spec.disruption,
      HTTPRoute: spec.route,
    };
    expect(`${metadata.name}.yaml`).toBe(file);
    expect(render(spec, metadata).objects.map(({ kind }) => kind)).toEqual(
      Object.entries(wanted).flatMap(([kind, given]) => (given ? kind : [])),
    );
  },
);

test.each(specNames)('every field of %s has an example, or a reason why not', (name) => {
  const fields = specFields(name);
  const found = examplesOf(name, fields);
  const isExempt = (path: string): boolean =>
    Object.keys(WITHOUT_EXAMPLE).some((start) => path === start || path.startsWith(`${start}.`));

  const paths = fields.map(({ path }) => path);
  expect(paths.filter((path) => found.get(path)!.length === 0)).toEqual(paths.filter(isExempt));
});

test('the example of a policy is one', () => {
  const file = pathOf('examples/policy/policy.yaml');

  expect(Object.keys(sectionsIn('policy', file, readFileSync(file, 'utf8'), [appService]))).toEqual([
    'appservice',
  ]);
});
