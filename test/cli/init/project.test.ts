import { execFile, spawnSync } from 'node:child_process';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { check } from 'prettier';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import { designOf } from '../../../src/cli/init/design.js';
import { withFreeNames } from '../../../src/cli/init/init.js';
import { namesOf } from '../../../src/cli/init/names.js';
import { projectFiles } from '../../../src/cli/init/project.js';
import { writeFiles } from '../../../src/cli/init/snapshot.js';
import { dockerfileProblems, notCopied } from '../../image/dockerfile-problems.js';

const root = repoFolder();
const command = join(root, 'lib/cli/main.js');
const ownManifest = manifestIn(root);

/** Sets of children, each in a project that is named after its kind. */
const SETS = {
  plain: 'Deployment',
  web: 'Deployment,Service,ConfigMap',
  store: 'StatefulSet,Service,ConfigMap,PodDisruptionBudget',
  agent: 'DaemonSet,ServiceAccount,NetworkPolicy',
  nightly: 'CronJob,ConfigMap',
  keeper: 'Deployment,PersistentVolumeClaim,Service,Ingress',
  all: 'Deployment,Service,Ingress,HorizontalPodAutoscaler,PodDisruptionBudget,NetworkPolicy,ServiceAccount,ConfigMap,CronJob,Job',
};
const names = Object.keys(SETS) as (keyof typeof SETS)[];

/** Where they say that this package is. */
const SOURCE = 'https://example.com/reconstruct-0.1.0.tgz';

/** Kinds that are called as something that is written with every project, or as a word of the language. */
const HOSTILE = [
  ...[
    'Operator',
    'Snapshot',
    'Sweep',
    'Sweeps',
    'T',
    'Manifests',
    'DefineKind',
    'DefineCrd',
    'SelectorLabels',
  ],
  ...['Edited', 'Sample', 'Samples', 'Project', 'Checks', 'Report', 'FormatReport', 'CheckName', 'Condition'],
  ...['Test', 'Assert', 'Join', 'Yaml', 'Render', 'Eventually', 'WithSandbox', 'Cluster', 'MakeNamespace'],
  ...[
    'Run',
    'Namespace',
    'Place',
    'Status',
    'Ready',
    'Type',
    'Mistaken',
    'Process',
    'Console',
    'Pod',
    'Name',
  ],
  ...['Labels', 'Server', 'Scope', 'Id', 'Spec', 'Metadata', 'Hash', 'ConfigHash', 'Container', 'Image'],
  ...['Switch', 'Package', 'Await', 'Undefined', 'Arguments', 'Module', 'Require', 'Exports', 'Async', 'As'],
  ...['Of', 'From', 'Any', 'String', 'Symbol', 'Promise', 'Array', 'Error', 'Map', 'Global', 'Let', 'Enum'],
  ...['Deployment', 'Service', 'Job', 'CrdKind', 'Config', 'TypeOf', 'Import', 'Default', 'Children', 'Crds'],
];
/** Of these the tests are run too; the others are type-checked. */
const RUN = ['Operator', 'Snapshot', 'T', 'Manifests', 'DefineKind', 'Edited', 'Switch'];
/** Of the projects below `top`. */
const folders = [...names, ...HOSTILE.map((kind) => `hostile/${kind}`)];

/** Written in this process, and without a snapshot: the test then writes it. */
function writeHostile(kind: string): void {
  const design = designOf(['Deployment', 'Service', 'ConfigMap', 'Job']);
  const plan = withFreeNames({
    ...{ design, library: 'reconstruct' },
    names: namesOf('hostile', 'web.example.com', kind),
  });
  writeFiles(join(top, 'hostile', kind), projectFiles(plan, { name: 'reconstruct', spec: SOURCE }));
}

interface Manifest {
  readonly name: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** Holds the projects, and what they are installed with. */
let top: string;

async function node(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: top });
  return stdout;
}

beforeAll(async () => {
  top = mkdtempSync(join(tmpdir(), 'init-'));
  for (const [name, target] of [
    ['reconstruct', root],
    ...['cdk8s', 'constructs', 'undici-types', '@types/node'].map((each) => [
      each,
      join(root, 'node_modules', each),
    ]),
  ] as [string, string][]) {
    const path = join(top, 'node_modules', name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  }
  await Promise.all(
    names.map((name) =>
      node(
        ...[
          command,
          'init',
          name,
          '--group',
          'web.example.com',
          '--children',
          SETS[name],
          '--package',
          SOURCE,
        ],
      ),
    ),
  );
  HOSTILE.forEach(writeHostile);
}, 120_000);

afterAll(() => {
  rmSync(top, { recursive: true });
});

test('what is written is right by its own tsconfig', async () => {
  const own = JSON.parse(readFileSync(join(top, 'web/tsconfig.json'), 'utf8')) as { compilerOptions: object };
  expect(own.compilerOptions).toMatchObject({ strict: true, erasableSyntaxOnly: true });
  const include = folders.flatMap((folder) => [`${folder}/src`, `${folder}/test`]);
  writeFileSync(join(top, 'tsconfig.json'), JSON.stringify({ ...own, include }));

  const told = await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', top).catch(
    (error: unknown) => (error as { stdout: string }).stdout,
  );
  expect(told).toBe('');
}, 180_000);

test('it passes the test that is written with it', async () => {
  const told = await node(
    '--test',
    '--test-isolation=none',
    ...names.map((name) => `${name}/test/snapshot.test.ts`),
  );
  expect(told).toContain(`pass ${2 * names.length}\n`);
  expect(told).toContain('fail 0\n');
}, 180_000);

test('what a kind is called is no matter', async () => {
  const told = await node(
    ...['--test', '--test-isolation=none', '--test-update-snapshots'],
    ...RUN.map((kind) => `hostile/${kind}/test/snapshot.test.ts`),
  );
  expect(told).toContain(`pass ${2 * RUN.length}\n`);
  expect(told).toContain('fail 0\n');
}, 180_000);

test('the snapshot that comes with it is of its own construct', async () => {
  const construct = join(top, 'plain/src/plain.ts');
  const text = readFileSync(construct, 'utf8');
  writeFileSync(construct, text.replace('runAsNonRoot: true', 'runAsNonRoot: false'));
  const outcome = await node('plain/test/snapshot.test.ts').catch((error: unknown) => (error as Error).name);
  writeFileSync(construct, text);
  expect(outcome).toBe('Error');
});

test.each(names)('the sample of %s leads to all of its children, and to no others', (name) => {
  const snapshot = readFileSync(join(top, name, `test/snapshots/${name}.yaml`), 'utf8');
  const made = [...snapshot.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind);
  expect(made.sort()).toEqual(SETS[name].split(',').sort());
});

test('the command renders the sample as the snapshot has it', async () => {
  const folder = join(top, 'all');
  const config = join(folder, 'reconstruct.config.mjs');
  const printed = await node(command, 'synth', '--config', config, join(folder, 'samples'));
  const objects = (text: string): unknown[] => parseAllDocuments(text).map((each) => each.toJS() as unknown);
  expect(objects(printed)).toEqual(objects(readFileSync(join(folder, 'test/snapshots/all.yaml'), 'utf8')));
});

test.each(names)('the files of %s are written as prettier writes them', async (name) => {
  const options = { singleQuote: true, printWidth: 100 };
  const files = globSync('**/*.{ts,mjs,md}', { cwd: join(top, name) });
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const filepath = join(top, name, file);
    const isRight = await check(readFileSync(filepath, 'utf8'), { ...options, filepath });
    expect([file, isRight]).toEqual([file, true]);
  }
});

test('the command knows the kinds of the project alone', async () => {
  const config = join(top, 'web/reconstruct.config.mjs');
  const manifests = await node(
    command,
    'install',
    '--config',
    config,
    '--image',
    'registry.example.com/web:1',
  );
  expect(manifests).toContain('--kinds=web.web.example.com\n');
});

describe('package.json', () => {
  const { devDependencies: tested, engines } = ownManifest;

  test('has the versions that this package is tested with, exactly', () => {
    const { dependencies, devDependencies, engines: own } = manifestIn(join(top, 'web'));
    expect(dependencies).toEqual({
      ...{ cdk8s: tested.cdk8s, constructs: tested.constructs, reconstruct: SOURCE },
    });
    expect(devDependencies).toEqual({ '@types/node': tested['@types/node'], typescript: tested.typescript });
    expect(own).toEqual(engines);
  });

  test('names files that are there', () => {
    const { scripts } = manifestIn(join(top, 'web'));
    const files = Object.values(scripts).flatMap((script) => script.match(/\S+\.ts\b/g) ?? []);
    expect(files).toContain('test/sweep.ts');
    for (const file of files) expect(globSync(file, { cwd: join(top, 'web') })).not.toEqual([]);
  });
});

describe('the Dockerfile', () => {
  const read = (file: string): string => readFileSync(join(top, 'web', file), 'utf8');

  test('has no faults, and is sent what it copies', () => {
    expect(dockerfileProblems(read('Dockerfile'))).toEqual([]);
    expect(notCopied(read('Dockerfile'), read('.dockerignore'))).toEqual([]);
  });

  test('starts the controller as the image of this package does, from the same images', () => {
    const own = readFileSync(join(root, 'Dockerfile'), 'utf8');
    const written = read('Dockerfile');
    for (const pattern of [/node:[\w.-]+/, /gcr\.io\S+/, /^ENV .*$/m, /^USER .*$/m, /^CMD .*$/m])
      expect(pattern.exec(written)?.[0]).toBe(pattern.exec(own)?.[0]);
    const flags = (text: string): string[] => text.match(/"--[\w=-]+"/g) ?? [];
    expect(flags(written)).toEqual(flags(own));
    expect(flags(own)).not.toEqual([]);
  });
});

test('a packed file is part of the project, and of its image', async () => {
  writeFileSync(join(top, 'reconstruct-0.1.0.tgz'), 'packed');
  await node(command, 'init', 'vendored', '--package', 'reconstruct-0.1.0.tgz');
  const folder = join(top, 'vendored');
  expect(manifestIn(folder).dependencies.reconstruct).toBe('file:vendor/reconstruct-0.1.0.tgz');
  expect(readFileSync(join(folder, 'vendor/reconstruct-0.1.0.tgz'), 'utf8')).toBe('packed');
  const dockerfile = readFileSync(join(folder, 'Dockerfile'), 'utf8');
  expect(dockerfile).toContain('COPY vendor vendor\n');
  expect(dockerfileProblems(dockerfile)).toEqual([]);
  expect(notCopied(dockerfile, readFileSync(join(folder, '.dockerignore'), 'utf8'))).toEqual([]);
});

test('a second time nothing is written, and what is in the way is named', () => {
  const before = readdirSync(top);
  const { status, stderr } = spawnSync(process.execPath, [command, 'init', 'web', '--package', SOURCE], {
    ...{ cwd: top, encoding: 'utf8' },
  });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^web: \.dockerignore, .*README\.md.* are in the way, and nothing is overwritten/);
  expect(readdirSync(top)).toEqual(before);
});
