import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { packageVersion } from '../../src/cli/package.js';
import { announced, namedIn, newestReleased } from './announced.js';
import { lastRelease } from './release.js';

const changelog = readFileSync(join(repoFolder(), 'CHANGELOG.md'), 'utf8');

test('what is kept is of the last release, or of the first one that is to be', () => {
  expect(lastRelease().version).toBe(newestReleased(changelog) ?? packageVersion());
});

test('the changelog names what upgrades change, and nothing else', () => {
  expect(namedIn(changelog, lastRelease().version).sort()).toEqual(
    announced()
      .map(({ id }) => id)
      .sort(),
  );
});
