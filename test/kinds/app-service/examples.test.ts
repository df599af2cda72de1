import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parsePolicy } from '../../../src/cli/policy.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { examples, examplesOf } from './reference/examples.js';
import { specFields, specNames, WITHOUT_EXAMPLE } from './reference/pages.js';
import { render } from './render.js';

test.each(examples.map((example) => [example.file, example] as const))(
  'examples/appservice/%s makes the objects that it is about',
  (file, { resource: { metadata, spec } }) => {
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
