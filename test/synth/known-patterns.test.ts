import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { helpWithPattern } from '../../src/synth/open-api.js';

const folder = `${repoFolder()}/crds`;
const patterns = new Set(
  readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => patternsIn(parse(readFileSync(`${folder}/${file}`, 'utf8')))),
);

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
  );
}

const known = [...patterns].flatMap((pattern) => {
  const help = helpWithPattern(pattern);
  return help ? [{ pattern, ...help }] : [];
});

test('the patterns of names, labels, percentages and quantities are told in words', () => {
  expect(new Set(known.map(({ name }) => name)).size).toBe(7);
});

test.each(known)('the examples of $name match $pattern', ({ pattern, examples }) => {
  for (const value of examples) expect(value).toMatch(new RegExp(pattern));
});

test.each(['^[a-c]+$', '^(Memory|x)?$', 'constructor'])('%s speaks for itself', (pattern) => {
  expect(helpWithPattern(pattern)).toBeUndefined();
});
