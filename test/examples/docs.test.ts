import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const example = new URL('../../examples/scheduled-task/', import.meta.url);
const page = readFileSync(new URL('../../docs/your-own-kind.md', import.meta.url), 'utf8');

/** The files that the page builds, by name. */
const files = new Map(
  readdirSync(example)
    .filter((name) => /\.(mjs|yaml)$/.test(name))
    .map((name) => [name, readFileSync(new URL(name, example), 'utf8')]),
);
const blocks = [...page.matchAll(/^```(?:js|yaml)\n([^]*?)^```$/gm)].map(([, text]) => text!);

test.each([...files.keys()])('the page shows %s as it is', (name) => {
  expect(blocks).toContain(files.get(name));
  expect(page).toContain(`\`${name}\``);
});

test('the page shows no other code', () => {
  expect(blocks).toHaveLength(files.size);
});
