import { configModule, constructModule, crdModule, kindModule } from './code.js';
import type { Plan } from './code.js';
import { VENDOR } from './dependency.js';
import type { Dependency } from './dependency.js';
import { dockerfile, dockerignore } from './image.js';
import { packageManifest } from './manifest.js';
import type { PackageManifest } from './manifest.js';
import { readme } from './readme.js';
import { sampleText } from './sample.js';
import { operatorTest, SNAPSHOT_TEST, snapshotTest, sweepProgram } from './tests.js';

/** Files by their paths below the project. */
export type Files = Readonly<Record<string, string | Buffer>>;

/** All files of a project but its snapshot, which is recorded with them. */
export function projectFiles(plan: Plan, { spec, tarball }: Dependency, earlier?: PackageManifest): Files {
  const { file } = plan.names;
  const vendored = tarball && VENDOR;
  return {
    '.dockerignore': dockerignore(vendored),
    '.gitignore': 'node_modules/\ndist/\n',
    Dockerfile: dockerfile(plan, vendored),
    'README.md': readme(plan, tarball !== undefined),
    'package.json': json(packageManifest(plan, spec, earlier)),
    'reconstruct.config.mjs': configModule(plan),
    'tsconfig.json': json(TSCONFIG),
    [`samples/${file}.yaml`]: sampleText(plan),
    'src/crd.ts': crdModule(plan),
    [`src/${file}.ts`]: constructModule(plan),
    'src/kind.ts': kindModule(plan),
    [SNAPSHOT_TEST]: snapshotTest(plan),
    'test/operator.test.ts': operatorTest(plan),
    'test/sweep.ts': sweepProgram(plan),
    ...(tarball && { [`${VENDOR}/${tarball.name}`]: tarball.content }),
  };
}

/** For sources that Node runs as they are, by leaving out the types. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
  include: ['src', 'test'],
};

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
