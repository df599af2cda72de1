import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { CONSUMER } from './consumer.js';

interface Manifest {
  readonly version: string;
  readonly bin: { readonly reconstruct: string };
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const root = repoFolder();
/** An image as a release pushes it. */
const RELEASED = `ghcr.io/example/reconstruct:0.1.0@sha256:${'0123456789abcdef'.repeat(4)}`;
/** Somebody's project: the package as it is published, what it declares to need, and nothing else. */
let project: string;
let folder: string;
let manifest: Manifest;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'package-'));
  folder = join(project, 'node_modules/reconstruct');
  execFileSync(process.execPath, [
    ...[join(root, 'scripts/package.mjs'), '--out', folder],
    ...['--name', '@example/reconstruct', '--repository', 'https://github.com/example/reconstruct'],
    ...['--image', RELEASED],
  ]);
  manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) provide(name);
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  link(join(folder, manifest.bin.reconstruct), join(project, 'node_modules/.bin/reconstruct'));
}, 120_000);

afterAll(() => {
  rmSync(project, { recursive: true });
});

function provide(name: string): void {
  link(join(root, 'node_modules', name), join(project, 'node_modules', name));
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

function command(...args: string[]): string {
  return execFileSync(process.execPath, [join(project, 'node_modules/.bin/reconstruct'), ...args], {
    cwd: project,
    encoding: 'utf8',
  });
}

function filesBelow(top: string): string[] {
  return globSync('**', { cwd: top }).filter((file) => statSync(join(top, file)).isFile());
}

test('the manifest has what users need, and nothing that only the repository needs', () => {
  expect(Object.keys(manifest).sort()).toEqual(
    [
      ...['bin', 'dependencies', 'description', 'engines', 'exports', 'files', 'imports', 'license', 'name'],
      ...['peerDependencies', 'publishConfig', 'repository', 'type', 'version'],
    ].sort(),
  );
  expect(manifest).toMatchObject({
    name: '@example/reconstruct',
    repository: { type: 'git', url: 'git+https://github.com/example/reconstruct.git' },
  });
});

test('without a release, nothing can be published', () => {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  expect(own.private).toBe(true);
});

test('it holds what can be reached from its entries, the CRDs, what the sandbox is built of, and nothing else', () => {
  const meta = JSON.parse(readFileSync(join(root, 'lib/bundle/meta.json'), 'utf8')) as { outputs: object };
  const bundled = Object.keys(meta.outputs).filter((file) => !file.endsWith('.map'));
  const wanted = [
    ...['package.json', 'README.md', 'LICENSE'],
    ...modulesFrom(entries()).flatMap((module) => [`${module}.js`, `${module}.d.ts`]),
    ...bundled,
    ...globSync('crds/*.yaml', { cwd: root }),
    ...[
      'sandbox/go.mod',
      'sandbox/go.sum',
      'sandbox/watchdog.mjs',
      ...globSync('sandbox/stages/*', { cwd: root }),
    ],
  ];
  expect(filesBelow(folder).filter(isOfThisBuild).map(withoutHash).sort()).toEqual(
    wanted.map(withoutHash).sort(),
  );
});

/** A chunk is named after its content, in which a release has its image. */
function withoutHash(file: string): string {
  return file.replace(/-[0-9A-Z]{8}\.mjs/, '.mjs');
}

/** The modules that users may import. */
function entries(): string[] {
  return Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [] : target.default.replace(/^\.\/(.*)\.js$/, '$1'),
  );
}

/** Modules and all that their code and their types import of the package. */
function modulesFrom(modules: readonly string[]): string[] {
  const found = new Set(modules);
  for (const module of found) {
    for (const extension of ['js', 'd.ts']) {
      const text = readFileSync(join(folder, `${module}.${extension}`), 'utf8');
      for (const [, path] of text.matchAll(/(?:from|import)[ (]*'(\.[^']+)\.js'/g))
        found.add(join(dirname(module), path!));
      for (const [, path] of text.matchAll(/(?:from|import)[ (]*'#sandbox\/([^']+)\.js'/g))
        found.add(join('lib/sandbox', path!));
    }
  }
  return [...found];
}

/** An older build may have left files in `lib` whose source is gone; where a release is made, there was none. */
function isOfThisBuild(file: string): boolean {
  const source = /^lib\/(?!bundle\/)(.*?)(?:\.d\.ts|\.js)$/.exec(file)?.[1];
  if (source === undefined) return true;
  return existsSync(join(root, source.startsWith('sandbox/') ? '' : 'src', `${source}.ts`));
}

test('it is small', () => {
  const bytes = filesBelow(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  expect(bytes / 2 ** 20).toBeLessThan(6);
});

test('its types and its code work in a project in TypeScript', () => {
  for (const name of ['@types/node', 'undici-types']) provide(name);
  writeFileSync(join(project, 'main.ts'), CONSUMER);
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'out',
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));

  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const told = outputOf(() => execFileSync(process.execPath, [tsc], { cwd: project, encoding: 'utf8' }));
  expect(told).toBe('');
  const printed = execFileSync(process.execPath, ['out/main.js'], { cwd: project, encoding: 'utf8' });
  const note = {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    ...{ metadata: { name: 'hello', namespace: 'default' }, data: { text: 'world' } },
  };
  expect(JSON.parse(printed)).toMatchObject([note, note]);
}, 120_000);

/** What a program prints, however it ends. */
function outputOf(program: () => string): string {
  try {
    return program();
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test('npx runs the command, of that version', () => {
  const told = execFileSync('npx', ['--no', '--', 'reconstruct', '--version'], {
    cwd: project,
    encoding: 'utf8',
  });
  expect(told).toBe(`${manifest.version}\n`);
  expect(command('--version')).toBe(told);
});

test('the command installs the image of its release, though the charts are no dependency', () => {
  const all = ['--kinds', 'appservice,jobwatcher,streamingress'];
  const expected = execFileSync(
    process.execPath,
    [join(root, 'lib/cli/main.js'), 'install', '--image', RELEASED, ...all],
    { encoding: 'utf8' },
  );
  expect(expected).toContain(`image: ${RELEASED}\n`);
  expect(command('install', '--print', ...all)).toBe(expected);
});

test('the command installs and renders a kind of the project', () => {
  for (const name of [
    'kind.mjs',
    'scheduled-task.mjs',
    'scheduledtasks.tasks.example.com.yaml',
    'sample.yaml',
  ])
    cpSync(join(root, 'examples/scheduled-task', name), join(project, name));
  cpSync(join(root, 'examples/scheduled-task/reconstruct.config.mjs'), join(project, 'own.config.mjs'));

  const manifests = command('install', '--config', 'own.config.mjs', '--kinds', 'scheduledtask');
  expect(manifests).toContain('name: scheduledtasks.tasks.example.com');
  expect(manifests).toContain('--kinds=scheduledtask.tasks.example.com');
  expect(command('synth', '--config', 'own.config.mjs', 'sample.yaml')).toContain('kind: CronJob');
});
