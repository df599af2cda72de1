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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

/** A field of each child, in the construct of a project that has it, and the same misspelt. */
const TYPOS: readonly (readonly [project: keyof typeof SETS, child: string, field: string, typo: string])[] =
  [
    ['all', 'ServiceAccount', 'metadata', 'metdata'],
    ['all', 'ConfigMap', 'data', 'dta'],
    ['keeper', 'PersistentVolumeClaim', 'accessModes', 'accesModes'],
    ['all', 'Service', 'targetPort', 'targetport'],
    ['all', 'Deployment', 'matchLabels', 'matchLabel'],
    ['store', 'StatefulSet', 'volumeClaimTemplates', 'volumeClaimTemplate'],
    ['agent', 'DaemonSet', 'template', 'tempate'],
    ['all', 'Job', 'restartPolicy', 'restart'],
    ['all', 'CronJob', 'concurrencyPolicy', 'concurency'],
    ['all', 'HorizontalPodAutoscaler', 'averageUtilization', 'avgUtilization'],
    ['all', 'PodDisruptionBudget', 'maxUnavailable', 'maxUnvailable'],
    ['all', 'Ingress', 'pathType', 'pathtype'],
    ['all', 'NetworkPolicy', 'policyTypes', 'policyType'],
    // What all Pods have.
    ['all', 'const pod =', 'imagePullPolicy', 'imagePulPolicy'],
    ['all', 'const serverTemplate', 'annotations', 'annotation'],
  ];

/** Writes a copy of a construct for each typo. @returns name of the file and the typo, of each */
function plantTypos(): string[][] {
  return TYPOS.map(([project, child, field, typo]) => {
    const text = read(project, `src/${project}/construct.ts`);
    const start = text.indexOf(child.includes(' ') ? child : `new ApiObject(this, '${child}'`);
    const at = start + text.slice(start).search(new RegExp(`\\b${field}:`));
    expect(Math.min(start, at - start), `${child} of ${project} has ${field}`).not.toBe(-1);
    const name = child.replace(/\W/g, '');
    const copy = text.slice(0, at) + typo + text.slice(at + field.length);
    writeFileSync(join(top, project, `src/${project}/typo-${name}.ts`), copy);
    return [name, typo];
  });
}

describe('the projects', () => {
  test('have no type errors by their own tsconfig, nor has the template itself; a misspelt field of a child is one', async () => {
    const own = JSON.parse(read('web/tsconfig.json')) as object;
    const include = names.flatMap((name) => [`${name}/src`, `${name}/test`]);
    writeFileSync(join(top, 'tsconfig.json'), JSON.stringify({ ...own, include }));
    // In the same run, since each takes long.
    const planted = plantTypos();
    const lines = (await node(tsc, '-p', top, '--pretty', 'false'))
      .split('\n')
      .filter((line) => /^\S/.test(line));
    const found = lines.map(
      (line) => /^.*\/typo-(\S+)\.ts\(.* '(\w+)' does not exist in type/.exec(line)?.slice(1) ?? line,
    );
    expect(found.sort()).toEqual(planted.sort());
    expect(await node(tsc, '-p', join(root, 'templates/init'))).toBe('');
  }, 180_000);

  test('pass the test that needs no cluster, which fails once the construct renders something else', async () => {
    const tests = names.map((name) => `${name}/test/${name}/snapshot.test.ts`);
    expect(await node('--test', '--test-isolation=none', ...tests)).toMatch(/pass 16\n.*\n?.*fail 0\n/);

    const construct = join(top, 'plain/src/plain/construct.ts');
    const text = readFileSync(construct, 'utf8');
    writeFileSync(construct, text.replace('runAsNonRoot: true', 'runAsNonRoot: false'));
    expect(await node('--test', tests[0]!)).toContain('fail 1\n');
    writeFileSync(construct, text);
  }, 180_000);

  test.each(names)(
    '%s: the sample leads to its children alone, and nothing of the template is left',
    (name) => {
      const made = [...read(name, `test/${name}/snapshot.yaml`).matchAll(/^kind: (\w+)$/gm)];
      expect(made.map(([, kind]) => kind).sort()).toEqual(SETS[name].split(',').sort());
      for (const file of globSync('**/*.{ts,mjs,md,yaml}', { cwd: join(top, name) }))
        expect(read(name, file)).not.toMatch(/gizmo|# if:|\/\/ if:/i);
    },
  );

  test('are rendered by the command as the snapshot has it, and know no other kinds', async () => {
    const objects = (text: string): unknown[] =>
      parseAllDocuments(text).map((each) => each.toJS() as unknown);
    const config = join(top, 'all/reconstruct.config.mjs');
    const printed = await node(command, 'synth', '--config', config, join(top, 'all/samples'));
    expect(objects(printed)).toEqual(objects(read('all/test/all/snapshot.yaml')));
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
    const { devDependencies: tested } = manifestOf(readFileSync(join(root, 'package.json'), 'utf8'));
    const { scripts, ...manifest } = manifestOf(read('web/package.json'));
    expect(manifest).toMatchObject({
      ...{ name: 'web', private: true, type: 'module' },
      dependencies: { cdk8s: tested.cdk8s, constructs: tested.constructs, 'cdk8s-reconstruct': SOURCE },
      devDependencies: { '@types/node': tested['@types/node'], typescript: tested.typescript },
    });
    const files = Object.values(scripts).flatMap((script) => script.match(/[\w/*.-]+\.ts\b/g) ?? []);
    expect(files).toContain('test/web/sweep.ts');
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

describe('a project', () => {
  const ROUTES = ['--children', 'Service,Deployment'];

  test('gets a second kind, in its group, which its commands know', () => {
    const cwd = folderWith({});
    const text = (path: string): string => readFileSync(join(cwd, path), 'utf8');
    symlinkSync(join(top, 'node_modules'), join(cwd, 'node_modules'));
    const common = ['--package', SOURCE, '--children', 'ConfigMap'];
    expect(init(cwd, 'shop', '--group', 'web.example.com', ...common)).toMatchObject({ status: 0 });
    const shop = join(cwd, 'shop');
    const before = readdirSync(shop, { recursive: true, encoding: 'utf8' });

    expect(init(shop, 'price-list', ...ROUTES)).toMatchObject({ status: 0 });
    const added = readdirSync(shop, { recursive: true, encoding: 'utf8' }).filter(
      (path) => !before.includes(path),
    );
    expect(added.sort()).toEqual([
      'samples/price-list.yaml',
      ...['', '/construct.ts', '/crd.ts', '/kind.ts'].map((path) => `src/price-list${path}`),
      ...['', '/operator.test.ts', '/snapshot.test.ts', '/sweep.ts'].map((path) => `test/price-list${path}`),
    ]);
    expect(text('shop/reconstruct.config.mjs')).toBe(
      "import { kind as shopKind } from './src/shop/kind.ts';\n" +
        "import { kind as priceListKind } from './src/price-list/kind.ts';\n\n" +
        'export default { builtIn: false, kinds: [shopKind, priceListKind] };\n',
    );
    const synth = spawnSync(process.execPath, [command, 'synth', 'samples'], { cwd: shop, encoding: 'utf8' });
    expect(synth.stdout.match(/^kind: .*/gm)?.sort()).toEqual([
      'kind: ConfigMap',
      'kind: Deployment',
      'kind: Service',
    ]);
    expect(text('shop/src/price-list/crd.ts')).toContain("group: 'web.example.com'");
    expect(text('shop/samples/price-list.yaml')).toContain('apiVersion: web.example.com/v1\nkind: PriceList');
  });

  test.each<[what: string, args: string[], files: Record<string, string>, message: string]>([
    [
      'with a sample of that name',
      ['price'],
      { 'samples/price.yaml': '' },
      'samples/price.yaml: in the way, and nothing is overwritten',
    ],
    ['that is itself named', ['.'], {}, 'this folder is a project already; give the name of another kind'],
    [
      'and another package',
      ['price', '--package', SOURCE],
      {},
      '--package: a kind is added to the project here',
    ],
    [
      'whose configuration is broken',
      ['price'],
      { 'reconstruct.config.mjs': '}' },
      "can't be loaded: SyntaxError",
    ],
  ])('%s gets none, and stays as it is', (_, args, files, message) => {
    const cwd = folderWith({ 'reconstruct.config.mjs': 'export default { kinds: [] };' });
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(cwd, path)), { recursive: true });
      writeFileSync(join(cwd, path), content);
    }
    const before = readdirSync(cwd, { recursive: true, encoding: 'utf8' });
    const { status, stderr } = init(cwd, ...args);
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(readdirSync(cwd, { recursive: true, encoding: 'utf8' })).toEqual(before);
  });

  test('whose list of kinds is written another way gets the files, and the line to add is printed', () => {
    const config = 'const kinds = [];\nexport default { kinds };\n';
    const cwd = folderWith({ 'reconstruct.config.mjs': config, 'package.json': '{"type":"module"}' });
    const { status, stdout } = spawnSync(process.execPath, [command, 'init', 'price', ...ROUTES], {
      ...{ cwd, encoding: 'utf8' },
    });
    expect([status, stdout]).toEqual([
      0,
      expect.stringContaining("  import { kind as priceKind } from './src/price/kind.ts';\n"),
    ]);
    expect(readFileSync(join(cwd, 'reconstruct.config.mjs'), 'utf8')).toBe(config);
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
});
