import { execFileSync } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { CONSUMER } from './consumer.js';

interface Manifest {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const root = repoFolder();
/** An image as a release pushes it. */
const RELEASED = `ghcr.io/example/reconstruct:0.1.0@sha256:${'0123456789abcdef'.repeat(4)}`;
const DEV_STAND = 'lib/testing/dev-stand';
/** Somebody's project: the package as it is published, what it declares to need, and nothing else. */
let project: string;
let folder: string;
let manifest: Manifest;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'package-'));
  folder = join(project, 'node_modules/cdk8s-reconstruct');
  execFileSync(process.execPath, [
    ...[join(root, 'scripts/package.mjs'), '--out', folder],
    ...['--repository', 'https://github.com/example/reconstruct', '--image', RELEASED],
  ]);
  manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) provide(name);
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  for (const [name, file] of Object.entries(manifest.bin)) {
    link(join(folder, file), join(project, 'node_modules/.bin', name));
  }
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
    name: 'cdk8s-reconstruct',
    repository: { type: 'git', url: 'git+https://github.com/example/reconstruct.git' },
  });
});

test('npm would publish it, under its name', () => {
  const told = execFileSync('npm', ['publish', folder, '--dry-run', '--ignore-scripts'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  expect(told).toBe(`+ cdk8s-reconstruct@${manifest.version}\n`);
});

test('it holds what can be reached from its entries, the CRDs, what the sandbox is built of, the template of a project, and nothing of the command', () => {
  const packed = filesBelow(folder).map(withoutHash);
  const meta = JSON.parse(readFileSync(join(root, 'lib/bundle/meta.json'), 'utf8')) as { outputs: object };
  const bundled = Object.keys(meta.outputs).filter((file) => !file.endsWith('.map'));
  const wanted = [
    ...['package.json', 'README.md', 'LICENSE'],
    ...modulesFrom(entries()).flatMap((module) => [`${module}.js`, `${module}.d.ts`]),
    ...bundled.map(withoutHash),
    ...globSync('crds/{,optional/}*.yaml', { cwd: root }),
    ...['sandbox/go.mod', 'sandbox/go.sum', 'sandbox/watchdog.mjs'],
    ...globSync('sandbox/stages/*', { cwd: root }),
    ...globSync('templates/init/{*,*/*}.*', { cwd: root }),
    ...['Dockerfile', 'dockerignore', 'gitignore'].map((file) => `templates/init/${file}`),
  ];
  expect(packed).toEqual(expect.arrayContaining(wanted));
  const others = packed.filter((file) => !wanted.includes(file));
  expect(others.filter((file) => !/^lib\/(?!bundle|cli|image).*\.(js|d\.ts)$/.test(file))).toEqual([]);
});

test('what is internal to the testing kit is in none of its types', () => {
  const types = readFileSync(join(folder, 'lib/testing/operator.d.ts'), 'utf8');

  expect(types).toContain('class Operator');
  expect(types).not.toMatch(/\bwire\b|prepare/i);
});

/** A chunk is named after its content, in which a release has its image. */
function withoutHash(file: string): string {
  return file.replace(/-[0-9A-Z]{8}\.mjs/, '.mjs');
}

/** The modules that users may import, and the one that the bundle loads from beside it. */
function entries(): string[] {
  const exported = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [] : target.default.replace(/^\.\/(.*)\.js$/, '$1'),
  );
  return [...exported, DEV_STAND];
}

/** Modules and all that their code and their types import of the package. */
function modulesFrom(modules: readonly string[]): string[] {
  const found = new Set(modules);
  for (const module of found) {
    for (const extension of ['js', 'd.ts']) {
      const text = readFileSync(join(folder, `${module}.${extension}`), 'utf8');
      for (const [, path] of text.matchAll(/(?:from|import)[ (]*'(\.[^']+)\.js'/g))
        found.add(join(dirname(module), path!));
      for (const [, path] of text.matchAll(
        /(?:from|import)[ (]*'#((?:contract|sandbox|telemetry)\/[^']+)\.js'/g,
      ))
        found.add(join('lib', path!));
    }
  }
  return [...found];
}

test('it is small', () => {
  const bytes = filesBelow(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  expect(bytes / 2 ** 20).toBeLessThan(6);
});

test('its types and its code work in a project in TypeScript', () => {
  for (const name of ['@types/node', 'undici-types']) provide(name);
  writeFileSync(join(project, 'main.ts'), CONSUMER);
  writeFileSync(join(project, 'readme.ts'), kindOfReadme());
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'out',
  };
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['main.ts', 'readme.ts'] }),
  );

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

test('the kind that the README shows is a whole one', () => {
  const printed = execFileSync(process.execPath, ['out/readme.js'], { cwd: project, encoding: 'utf8' });

  const selector = { matchLabels: { 'web.example.com/guestbook': 'hello' } };
  expect(JSON.parse(printed)).toMatchObject([
    { kind: 'Deployment', metadata: { name: 'hello' }, spec: { replicas: 1, selector } },
  ]);
});

/** A module that renders a custom resource of the kind that the README shows. */
function kindOfReadme(): string {
  const [, shown] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(root, 'README.md'), 'utf8'))!;
  return `
import { renderStored } from 'cdk8s-reconstruct';
${shown!}
const hello = { apiVersion: 'web.example.com/v1', kind: 'Guestbook', metadata: { name: 'hello' }, spec: { image: 'nginx:1.27', replicas: 1 } };
console.log(JSON.stringify(renderStored(guestbook, hello)));
`;
}

/** What a program prints, however it ends. */
function outputOf(program: () => string): string {
  try {
    return program();
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test('its command finds the sandbox that dev starts', () => {
  const loaded = `import(${JSON.stringify(join(folder, `${DEV_STAND}.js`))}).then((all) => console.log(Object.keys(all).join()))`;
  const names = execFileSync(process.execPath, ['--eval', loaded], { cwd: project, encoding: 'utf8' });
  expect(names).toBe('startEmpty,startGuard,startStand\n');
  const bundle = readdirSync(join(folder, 'lib/bundle')).map((file) =>
    readFileSync(join(folder, 'lib/bundle', file), 'utf8'),
  );
  expect(bundle.filter((text) => text.includes('"../../testing/dev-stand.js"'))).toHaveLength(1);
});

test.each(['cdk8s-reconstruct', 'kubectl-reconstruct', 'reconstruct'])(
  'npx runs the command as %s, of that version',
  (name) => {
    const told = execFileSync('npx', ['--no', '--', name, '--version'], {
      cwd: project,
      encoding: 'utf8',
    });
    expect(told).toBe(`${manifest.version}\n`);
    expect(command('--version')).toBe(told);
  },
);

test('the command installs the image of its release, though the charts are no dependency', () => {
  const all = ['--kinds', 'appservice,jobwatcher,streamingress'];
  const expected = execFileSync(
    process.execPath,
    [join(root, 'lib/bundle/reconstruct.mjs'), 'install', '--image', RELEASED, ...all],
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

test('the command makes projects that have the package by its name, and what it was tested with', () => {
  command('init', 'shop', '--children', 'ConfigMap', '--package', manifest.version);

  const made = JSON.parse(readFileSync(join(project, 'shop/package.json'), 'utf8')) as Manifest;
  const { devDependencies: tested } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Manifest;
  expect({ ...made.dependencies, ...made.devDependencies }).toEqual({
    ...{ 'cdk8s-reconstruct': manifest.version, cdk8s: tested!.cdk8s, constructs: tested!.constructs },
    ...{ '@types/node': tested!['@types/node'], typescript: tested!.typescript },
  });
  expect(readFileSync(join(project, 'shop/src/shop/kind.ts'), 'utf8')).toContain("from 'cdk8s-reconstruct';");
  expect(readFileSync(join(project, 'shop/Dockerfile'), 'utf8')).toContain(
    '/app/node_modules/cdk8s-reconstruct/lib/bundle/reconstruct.mjs',
  );
});
