import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import { faultsOf } from './workflows.js';

const folder = join(repoFolder(), '.github/workflows');
const release = readFileSync(join(folder, 'release.yml'), 'utf8');

test.each(globSync('*.yml', { cwd: folder }))('%s has no faults', (file) => {
  expect(faultsOf(readFileSync(join(folder, file), 'utf8'))).toEqual([]);
});

test.for<[what: string, from: string | RegExp, to: string, fault: RegExp]>([
  ['an action that moves', /actions\/attest@\w+ # v\S+/, 'actions/attest@v4', /isn't pinned/],
  ['a workflow that is gone', 'workflows/ci.yml', 'workflows/test.yml', /test\.yml isn't there/],
  ['a script that is gone', 'npm run build', 'npm run built', /no script built/],
  [
    'a file that is gone',
    'node scripts/changelog.mjs',
    'node scripts/changes.mjs',
    /no scripts\/changes\.mjs/,
  ],
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

interface ReleaseStep {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

const { jobs } = parse(release) as {
  readonly jobs: Readonly<
    Record<string, { readonly needs: string | readonly string[]; readonly steps: readonly ReleaseStep[] }>
  >;
};

test.for([
  ['image', 'subject-digest', 'release/reconstruct-image.cdx.json'],
  ['package', 'subject-path', 'release/reconstruct-package.cdx.json'],
] as const)('of the %s both are attested: where it comes from, and what is in it', ([job, subject, bill]) => {
  const attested = jobs[job]!.steps.filter(({ uses }) => uses?.startsWith('actions/attest@'));

  expect(attested.map(({ with: inputs }) => inputs?.['sbom-path'])).toEqual([undefined, bill]);
  for (const { with: inputs } of attested) expect(inputs?.[subject]).toBeTruthy();
});

test('the package names the image that was pushed, as the manifests do', () => {
  const imageOf = (job: string, command: string): string | undefined =>
    jobs[job]!.steps.find(({ run }) => run?.includes(command))?.env?.IMAGE;

  expect(jobs.package!.needs).toContain('image');
  expect(imageOf('package', 'npm run package -- --image "$IMAGE"')).toContain(
    '@${{ needs.image.outputs.digest }}',
  );
  expect(imageOf('release', 'install --image "$IMAGE"')).toBe(imageOf('package', 'npm run package'));
});

test('every scenario is run once a week', () => {
  const ci = parse(readFileSync(join(folder, 'ci.yml'), 'utf8')) as {
    readonly on: { readonly schedule: readonly object[] };
    readonly jobs: Readonly<Record<string, { readonly if?: string; readonly steps: readonly ReleaseStep[] }>>;
  };
  const weekly = Object.values(ci.jobs).filter((job) => job.if === "github.event_name == 'schedule'");

  expect(ci.on.schedule).toHaveLength(1);
  expect(weekly.flatMap(({ steps }) => steps.map(({ run }) => run))).toContain('npm run test:soak');
});

test('a workflow that says a thing twice is refused', () => {
  expect(() => faultsOf(`${release}\njobs: {}\n`)).toThrow('unique');
});
