import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

const root = repoFolder();
const files = globSync(['docs/runbooks/*.md', 'docs/troubleshooting.md', 'src/**/*.ts'], {
  cwd: root,
}).sort();

/** The command as a remedy, in quotes of a message or a page, with what follows. Parts of a string are joined. */
function remediesIn(text: string): string[] {
  const joined = text.replaceAll(/['"`]\s*\+\s*['"`]/g, '');
  return [...joined.matchAll(/["`]reconstruct install --apply[^"`]*["`].{0,60}/g)].map(([remedy]) => remedy);
}

test('every remedy that installs again keeps the options in use', () => {
  const remedies = files.flatMap((file) =>
    remediesIn(readFileSync(join(root, file), 'utf8')).map((remedy) => `${file}: ${remedy}`),
  );
  expect(remedies.length).toBeGreaterThan(10);
  // The command that is put together of these options is whole.
  const bare = remedies.filter((remedy) => !/options (are )?in use|installed\.ts/.test(remedy));
  expect(bare).toEqual([]);
});

test('such pages lead to where it is said how to see them', () => {
  const pages = files.filter((file) => file.endsWith('.md'));
  const without = pages.filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return text.includes('options in use') && !text.includes('reference/install.md#options-in-use');
  });
  expect(without).toEqual([]);
});
