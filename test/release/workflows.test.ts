import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { faultsOf } from './workflows.js';

const folder = join(repoFolder(), '.github/workflows');
const release = readFileSync(join(folder, 'release.yml'), 'utf8');

test.each(globSync('*.yml', { cwd: folder }))('%s has no faults', (file) => {
  expect(faultsOf(readFileSync(join(folder, file), 'utf8'))).toEqual([]);
});

test.for<[what: string, from: string | RegExp, to: string, fault: RegExp]>([
  ['an action that moves', /actions\/attest@\w+ # v\S+/, 'actions/attest@v4', /isn't pinned/],
  ['a workflow that is gone', 'workflows/ci.yml', 'workflows/test.yml', /test\.yml isn't there/],
  ['a script that is gone', 'npm run image:bundle', 'npm run bundle:image', /no script bundle:image/],
  ['a file that is gone', 'node scripts/sbom.mjs', 'node scripts/bom.mjs', /no scripts\/bom\.mjs/],
  ['an expression in a script', '"$GITHUB_REF_NAME"', '"${{ github.ref_name }}"', /an expression/],
  [
    'an output that nothing makes',
    'needs.image.outputs.digest',
    'needs.image.outputs.sha',
    /outputs\.sha isn't there/,
  ],
  ['a step that nobody is', 'steps.bases.outputs', 'steps.pins.outputs', /steps\.pins/],
  ['a job that nobody is', 'needs: version', 'needs: versions', /versions, which isn't there/],
  ['rights for all', 'permissions:\n  contents: read', 'permissions:\n  contents: write', /may write/],
])('a workflow with %s is refused', ([, from, to, fault]) => {
  const faulty = release.replace(from, to);
  expect(faulty).not.toBe(release);
  expect(faultsOf(faulty).join('\n')).toMatch(fault);
});

test('a workflow that says a thing twice is refused', () => {
  expect(() => faultsOf(`${release}\njobs: {}\n`)).toThrow('unique');
});
