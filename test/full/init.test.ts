import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
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
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { dockerfileProblems, notCopied } from './image/dockerfile-problems.js';
import { folderWith } from '../synth/fixtures.js';

const root = repoFolder();
const command = join(root, 'lib/cli/main.js');
const tsc = join(root, 'node_modules/typescript/bin/tsc');
const SOURCE = 'https://example.com/cdk8s-reconstruct-0.1.0.tgz';

/** Sets of children, each in a project that is named after its kind; `edited` clashes with a name in `test/sweep.ts`. */
const SETS = {
  plain: 'Deployment',
  web: 'Deployment,Service,ConfigMap',
  store: 'StatefulSet,Service,ConfigMap,PodDisruptionBudget,Job',
  agent: 'DaemonSet,ServiceAccount,NetworkPolicy',
  edited: 'CronJob,ConfigMap',
  keeper: 'Deployment,PersistentVolumeClaim,Service,Ingress',
  account: 'ServiceAccount',
  all: 'Deployment,Service,Ingress,HorizontalPodAutoscaler,PodDisruptionBudget,NetworkPolicy,ServiceAccount,ConfigMap,CronJob,Job',
};
const names = Object.keys(SETS) as (keyof typeof SETS)[];

interface Manifest {
  readonly engines: object;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Holds the projects, and what they are installed with. */
let top: string;

const read = (...path: string[]): string => readFileSync(join(top, ...path), 'utf8');
const manifestOf = (text: string): Manifest => JSON.parse(text) as Manifest;

/** @returns standard output, also of what fails */
async function node(...args: string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, args, { cwd: top });
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  return stdout;
}

function init(cwd: string, ...args: string[]): { readonly status: number | null; readonly stderr: string } {
  return spawnSync(process.execPath, [command, 'init', ...args], { cwd, encoding: 'utf8' });
}

beforeAll(async () => {
  top = mkdtempSync(join(tmpdir(), 'init-'));
  const installed = ['cdk8s', 'constructs', 'undici-types', '@types/node'].map(
    (name) => `node_modules/${name}`,
  );
  for (const [path, target] of [
    ['node_modules/cdk8s-reconstruct', ''],
    ...installed.map((each) => [each, each]),
  ] as const) {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    symlinkSync(join(root, target), join(top, path));
  }
  const common = ['--group', 'web.example.com', '--package', SOURCE];
  await Promise.all(names.map((name) => node(command, 'init', name, '--children', SETS[name], ...common)));
}, 120_000);

afterAll(() => {
  rmSync(top, { recursive: true });
});

describe('the projects', () => {
  test('have no type errors by their own tsconfig, nor has the template itself', async () => {
    const own = JSON.parse(read('web/tsconfig.json')) as object;
    const include = names.flatMap((name) => [`${name}/src`, `${name}/test`]);
    writeFileSync(join(top, 'tsconfig.json'), JSON.stringify({ ...own, include }));
    expect(await node(tsc, '-p', top)).toBe('');
    expect(await node(tsc, '-p', join(root, 'templates/init'))).toBe('');
  }, 180_000);

  test('pass the test that needs no cluster, which fails once the construct renders something else', async () => {
    const tests = names.map((name) => `${name}/test/snapshot.test.ts`);
    expect(await node('--test', '--test-isolation=none', ...tests)).toMatch(/pass 16\n.*\n?.*fail 0\n/);

    const construct = join(top, 'plain/src/plain.ts');
    const text = readFileSync(construct, 'utf8');
    writeFileSync(construct, text.replace('runAsNonRoot: true', 'runAsNonRoot: false'));
    expect(await node('--test', tests[0]!)).toContain('fail 1\n');
    writeFileSync(construct, text);
  }, 180_000);

  test.each(names)(
    '%s: the sample leads to its children alone, and nothing of the template is left',
    (name) => {
      const made = [...read(name, `test/snapshots/${name}.yaml`).matchAll(/^kind: (\w+)$/gm)];
      expect(made.map(([, kind]) => kind).sort()).toEqual(SETS[name].split(',').sort());
      for (const file of globSync('{*,*/*}.{ts,mjs,md,yaml}', { cwd: join(top, name) }))
        expect(read(name, file)).not.toMatch(/gizmo|# if:|\/\/ if:/i);
    },
  );

  test('are rendered by the command as the snapshot has it, and know no other kinds', async () => {
    const objects = (text: string): unknown[] =>
      parseAllDocuments(text).map((each) => each.toJS() as unknown);
    const config = join(top, 'all/reconstruct.config.mjs');
    const printed = await node(command, 'synth', '--config', config, join(top, 'all/samples'));
    expect(objects(printed)).toEqual(objects(read('all/test/snapshots/all.yaml')));
    const manifests = await node(
      command,
      'install',
      '--config',
      config,
      '--image',
      'registry.example.com/all:1',
    );
    expect(manifests).toContain('--kinds=all.web.example.com\n');
  });

  test('have the versions that this package is tested with, exactly, and scripts whose files exist', () => {
    const { devDependencies: tested, engines } = manifestOf(readFileSync(join(root, 'package.json'), 'utf8'));
    const { scripts, ...manifest } = manifestOf(read('web/package.json'));
    expect(manifest).toMatchObject({
      ...{ engines, name: 'web', private: true, type: 'module' },
      dependencies: { cdk8s: tested.cdk8s, constructs: tested.constructs, 'cdk8s-reconstruct': SOURCE },
      devDependencies: { '@types/node': tested['@types/node'], typescript: tested.typescript },
    });
    const files = Object.values(scripts).flatMap((script) => script.match(/\S+\.ts\b/g) ?? []);
    expect(files).toContain('test/sweep.ts');
    for (const file of files) expect(globSync(file, { cwd: join(top, 'web') })).not.toEqual([]);
  });

  test('have an image as that of this package: base images, flags, environment, user', () => {
    const [own, written] = [readFileSync(join(root, 'Dockerfile'), 'utf8'), read('web/Dockerfile')];
    expect(dockerfileProblems(written)).toEqual([]);
    expect(notCopied(written, read('web/.dockerignore'))).toEqual([]);
    for (const pattern of [/node:[\w.-]+/, /gcr\.io\S+/, /^ENV .*$/m, /^USER .*$/m, /^CMD .*$/m])
      expect(pattern.exec(written)?.[0]).toBe(pattern.exec(own)?.[0]);
    const flags = (text: string): string[] => text.match(/"--[\w=-]+"/g) ?? [];
    expect(flags(written)).toEqual(flags(own));
    expect(flags(own)).not.toEqual([]);
  });
});

describe('the folder', () => {
  const FRESH = JSON.stringify({
    ...{
      name: 'shop',
      version: '1.0.0',
      description: '',
      main: 'index.js',
      keywords: [],
      author: 'A. Person',
    },
    scripts: { test: 'echo "Error: no test specified" && exit 1' },
    ...{
      license: 'ISC',
      dependencies: { 'cdk8s-reconstruct': 'file:../cdk8s-reconstruct-0.1.0.tgz', left: '1.0.0' },
    },
  });
  const account = ['--children', 'ServiceAccount', '--package'];

  test('that npm has begun is filled, and its manifest taken over; a packed file becomes part of the project', () => {
    const folder = folderWith({ 'package.json': FRESH, 'package-lock.json': '{}', 'packed.tgz': 'packed' });
    mkdirSync(join(folder, 'shop'));
    for (const name of ['package.json', 'package-lock.json'])
      writeFileSync(join(folder, 'shop', name), readFileSync(join(folder, name)));
    expect(init(join(folder, 'shop'), '.', ...account, '../packed.tgz')).toMatchObject({ status: 0 });

    expect(readdirSync(join(folder, 'shop'))).toEqual(
      expect.arrayContaining(['.gitignore', 'package-lock.json', 'src']),
    );
    expect(readdirSync(join(folder, 'shop')).filter((name) => name.startsWith('.shop'))).toEqual([]);
    const text = (file: string): string => readFileSync(join(folder, 'shop', file), 'utf8');
    expect(manifestOf(text('package.json'))).toMatchObject({
      ...{ name: 'shop', version: '1.0.0', author: 'A. Person', license: 'ISC', type: 'module' },
      dependencies: { left: '1.0.0', 'cdk8s-reconstruct': 'file:vendor/packed.tgz' },
    });
    expect(text('package.json')).not.toMatch(/no test specified|keywords|main/);
    expect(text('vendor/packed.tgz')).toBe('packed');
    expect(dockerfileProblems(text('Dockerfile'))).toEqual([]);
    expect(notCopied(text('Dockerfile'), text('.dockerignore'))).toEqual([]);
  });

  test.each<[what: string, files: Record<string, string>, message: string]>([
    [
      'other files',
      { 'README.md': '', 'index.ts': '' },
      'in the way, and nothing is overwritten: README.md, index.ts',
    ],
    [
      'a manifest with more in it',
      { 'package.json': '{"scripts":{"start":"node ."}}' },
      'package.json (more than "npm init -y" writes)',
    ],
    ["a manifest that can't be read", { 'package.json': '{' }, 'correct or remove it'],
  ])('with %s is refused, and stays as it is', (_, files, message) => {
    const folder = folderWith({});
    mkdirSync(join(folder, 'shop'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'shop', name), text);
    const { status, stderr } = init(folder, 'shop', ...account, SOURCE);
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(readdirSync(folder)).toEqual(['shop']);
    expect(readdirSync(join(folder, 'shop')).sort()).toEqual(Object.keys(files).sort());
  });

  test('stays empty, and so does the temporary one, on Ctrl-C while the snapshot is recorded', async () => {
    const folder = folderWith();
    const child = spawn(process.execPath, [command, 'init', 'shop', ...account, SOURCE], { cwd: folder });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = once(child, 'close');
    await vi.waitFor(
      () => {
        const [staging = 'none'] = readdirSync(folder);
        expect(existsSync(join(folder, staging, 'project/node_modules/constructs'))).toBe(true);
      },
      { timeout: 50_000, interval: 5 },
    );
    child.kill('SIGINT');

    expect(await ended).toEqual([2, null]);
    expect(stderr).toBe('Interrupted; nothing was written\n');
    expect(readdirSync(folder)).toEqual([]);
  }, 60_000);
});
