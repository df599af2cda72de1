import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadPolicy } from '../../../src/cli/policy.js';
import type { AppServiceProps } from '../../../src/kinds/app-service/construct.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { features } from '../../../src/kinds/app-service/policy.js';
import { render } from './render.js';

const folder = new URL('../../../examples/appservice/', import.meta.url);
const files = readdirSync(folder).sort();

function example(file: string): AppServiceProps {
  return parse(readFileSync(new URL(file, folder), 'utf8'), { version: '1.1' }) as AppServiceProps;
}

test.each(files)('examples/appservice/%s is rendered', async (file) => {
  const { metadata, spec } = example(file);

  expect(`${metadata.name}.yaml`).toBe(file);
  await expect(render(spec, metadata).yaml).toMatchFileSnapshot(`__snapshots__/examples/${file}`);
});

test('every field has an example', () => {
  const used = new Set(files.flatMap((file) => Object.keys(example(file).spec)));

  expect(features.filter((feature) => !used.has(feature))).toEqual([]);
});

test('the example of a policy is one', async () => {
  const file = fileURLToPath(new URL('../../../examples/policy/policy.yaml', import.meta.url));

  expect(Object.keys(await loadPolicy(file, [appService]))).toEqual(['appservice']);
});
