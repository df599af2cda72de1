import { testedVersion } from '../version.js';
import type { Plan } from './code.js';
import { SNAPSHOT_TEST } from './tests.js';

export type PackageManifest = Readonly<Record<string, unknown>>;

const RELEASE = '$npm_package_name:$npm_package_version';

/** `package.json`; what an earlier one says beside it, such as an author or a licence, stays. */
export function packageManifest(
  { names, library }: Plan,
  dependency: string,
  earlier: PackageManifest = {},
): PackageManifest {
  const { dependencies = {}, devDependencies = {}, ...others } = earlier;
  const kept = Object.entries(others).filter(
    ([key, value]) =>
      !['name', 'version', 'main', 'type', 'scripts', 'private'].includes(key) && !isEmpty(value),
  );
  return {
    name: names.project,
    version: others.version ?? '0.1.0',
    private: true,
    ...Object.fromEntries(kept),
    type: 'module',
    engines: { node: '>=22.19' },
    scripts: {
      test: 'node --test test/*.test.ts',
      snapshots: `node --test --test-update-snapshots ${SNAPSHOT_TEST}`,
      typecheck: 'tsc',
      sweep: 'node test/sweep.ts',
      dev: 'reconstruct dev',
      synth: 'reconstruct synth samples',
      image: `docker build -t \${IMAGE:-${RELEASE}} .`,
      manifests: `reconstruct install --image \${IMAGE:-${RELEASE}} -o dist`,
    },
    dependencies: sorted({
      ...(dependencies as object),
      [library]: dependency,
      cdk8s: testedVersion('cdk8s'),
      constructs: testedVersion('constructs'),
    }),
    devDependencies: sorted({
      ...(devDependencies as object),
      '@types/node': testedVersion('@types/node'),
      typescript: testedVersion('typescript'),
    }),
  };
}

/** As npm fills in what it doesn't know. */
function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0);
}

function sorted(members: object): object {
  return Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether there is nothing in it but what `npm init -y` writes, and what was installed since. */
export function isFreshManifest(manifest: PackageManifest): boolean {
  const { scripts = {}, main = 'index.js' } = manifest as { scripts?: Record<string, string>; main?: string };
  const told = Object.entries(scripts).filter(
    ([name, script]) => name !== 'test' || !script.includes('no test specified'),
  );
  return main === 'index.js' && told.length === 0 && Object.keys(manifest).every((key) => FRESH.has(key));
}

const FRESH = new Set([
  ...[
    'name',
    'version',
    'description',
    'main',
    'type',
    'scripts',
    'keywords',
    'author',
    'license',
    'private',
  ],
  ...['repository', 'bugs', 'homepage', 'dependencies', 'devDependencies'],
]);
