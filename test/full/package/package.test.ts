import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { V1Deployment } from '@kubernetes/client-node';
import type { Option } from 'commander';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { program } from '../../../src/cli/commands.js';
import { installManifests } from '../../../src/install/manifests.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { CONSUMER } from './consumer.js';

interface Manifest {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly bundleDependencies: readonly string[];
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const root = repoFolder();
/** An image as a release pushes it. */
const RELEASED = `ghcr.io/example/reconstruct:0.1.0@sha256:${'0123456789abcdef'.repeat(4)}`;
const BUNDLED = 'node_modules/undici/';
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
  const { dependencies, optionalDependencies, peerDependencies, bundleDependencies } = manifest;
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
    if (!bundleDependencies.includes(name)) provide(name);
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
      ...['bin', 'bundleDependencies', 'dependencies', 'description', 'exports', 'files', 'imports'],
      ...[
        'license',
        'name',
        'optionalDependencies',
        ...['peerDependencies', 'peerDependenciesMeta'],
        'publishConfig',
        'repository',
        'type',
        'version',
      ],
    ].sort(),
  );
  expect(manifest).toMatchObject({
    name: 'cdk8s-reconstruct',
    repository: { type: 'git', url: 'git+https://github.com/example/reconstruct.git' },
  });
});

describe('on an older Node', () => {
  const aged = (version: string): string =>
    `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '${version}' })`;

  test.each(['18.20.8', '22.18.0'])('%s, the command prints one line with the remedy', (version) => {
    const args = ['--import', aged(version), join(folder, manifest.bin.reconstruct!), 'init', 'shop'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' });
    expect([status, stdout, stderr]).toEqual([
      2,
      '',
      `Node 22.19 or newer is needed, this is ${version}: install Node 24 from https://nodejs.org\n`,
    ]);
  });

  test('it loads nothing before, which could lack what a module imports', () => {
    const text = readFileSync(join(folder, manifest.bin.reconstruct!), 'utf8');
    expect(text.match(/\bimport\b[^("']*["'][^"']+/g)).toEqual([
      "import { createRequire as __createRequire } from 'node:module",
    ]);
  });

  test('npm prints no warning: whatever it has to install runs on Node 20', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dependencies?: object; engines?: { node?: string } }>;
    };
    const needed = new Map<string, string>();
    const need = (name: string, from: string): void => {
      const at = [`${from}/node_modules/${name}`, `node_modules/${name}`].find((path) => path in packages)!;
      if (needed.has(at)) return;
      needed.set(at, packages[at]!.engines?.node ?? '');
      for (const dependency of Object.keys(packages[at]!.dependencies ?? {})) need(dependency, at);
    };
    const { '@kubernetes/client-node': ofTypes, ...peers } = manifest.peerDependencies;
    expect([ofTypes, manifest.peerDependenciesMeta]).toEqual([
      expect.any(String),
      { '@kubernetes/client-node': { optional: true } },
    ]);
    for (const name of Object.keys({ ...manifest.dependencies, ...peers })) need(name, '');
    const engines = [...needed];
    expect(engines).toContainEqual(['node_modules/cdk8s', expect.stringContaining('16')]);
    expect(engines.filter(([, node]) => /^\W*2[1-9]/.test(node))).toEqual([]);
  });
});

test('npm would publish it, under its name', () => {
  const told = execFileSync(
    'npm',
    ['publish', folder, '--dry-run', '--ignore-scripts', '--loglevel=notice'],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
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
    ...globSync('templates/init/{*,*/*,*/*/*}.*', { cwd: root }),
    ...['Dockerfile', 'dockerignore', 'gitignore'].map((file) => `templates/init/${file}`),
  ];
  expect(packed).toEqual(expect.arrayContaining(wanted));
  const others = packed.filter((file) => !wanted.includes(file) && !file.startsWith(BUNDLED));
  expect(others.filter((file) => !/^lib\/(?!bundle|cli|image).*\.(js|d\.ts)$/.test(file))).toEqual([]);
});

test('undici comes within it, whole but for its documentation', () => {
  const archive = join(dirname(folder), `cdk8s-reconstruct-${manifest.version}.tgz`);
  const packed = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).split('\n');
  const source = join(root, BUNDLED);
  const files = filesBelow(source).filter((file) => !file.startsWith('docs/'));
  expect(files).toContain('LICENSE');
  expect(packed).toEqual(expect.arrayContaining(files.map((file) => `package/${BUNDLED}${file}`)));
  expect(packed.filter((file) => file.includes('/docs/'))).toEqual([]);
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
  expect(bytes / 2 ** 20).toBeLessThan(7);
});

test('its types and its code work in a project in TypeScript', () => {
  for (const name of ['@types/node', 'undici-types']) provide(name);
  expect(compiled(CONSUMER)).toBe('');
  const printed = execFileSync(process.execPath, ['out/main.js'], { cwd: project, encoding: 'utf8' });
  const note = {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    ...{ metadata: { name: 'hello', namespace: 'default' }, data: { text: 'world' } },
  };
  expect(JSON.parse(printed)).toMatchObject([note, note]);
}, 120_000);

test('where the types of Kubernetes are not installed, the compiler names the remedy', () => {
  const types = join(project, 'node_modules/@kubernetes/client-node');
  rmSync(types);
  onTestFinished(() => {
    provide('@kubernetes/client-node');
  });
  const printed = compiled(`
import type { KubernetesManifest, PodSpec, PodTemplate } from 'cdk8s-reconstruct';
export const map = { apiVersion: 'v1', kind: 'ConfigMap', dta: {} } satisfies KubernetesManifest;
export const spec = { containers: [] } satisfies PodSpec;
export const template: PodTemplate = { spec };
`);
  const remedy = /The types of Kubernetes are missing: run npm install --save-dev @kubernetes\/client-node/;
  const errors = printed.split('\n').filter((line) => line.startsWith('main.ts'));
  expect(errors).toEqual(
    [3, 4, 5].map((line) => expect.stringMatching(`^main.ts\\(${line}.*${remedy.source}`) as string),
  );
}, 120_000);

/** Compiles main.ts of the project. @returns what the compiler prints */
function compiled(source: string): string {
  writeFileSync(join(project, 'main.ts'), source);
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2023', strict: true, skipLibCheck: true },
    ...{ types: ['node'], outDir: 'out' },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
  const args = [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false'];
  return outputOf(() => execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' }));
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
  const { dependencies: own, devDependencies: tested } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Manifest;
  expect({ ...made.dependencies, ...made.devDependencies }).toEqual({
    ...{ 'cdk8s-reconstruct': manifest.version, cdk8s: tested!.cdk8s, constructs: tested!.constructs },
    ...{ '@types/node': tested!['@types/node'], typescript: tested!.typescript },
    '@kubernetes/client-node': own['@kubernetes/client-node'],
  });
  expect(readFileSync(join(project, 'shop/src/shop/kind.ts'), 'utf8')).toContain("from 'cdk8s-reconstruct';");
  expect(readFileSync(join(project, 'shop/Dockerfile'), 'utf8')).toContain(
    '/app/node_modules/cdk8s-reconstruct/lib/bundle/reconstruct.mjs',
  );
});

/** Values of the options that take one, for one command or for all. */
const VALUES: Readonly<Record<string, string>> = {
  ...{
    '--config': 'empty.config.mjs',
    '--kinds': 'appservice',
    '--policy': 'policy.yaml',
    '--settings': 'policy.yaml',
  },
  ...{ '--references': 'web.yaml', '--drift': 'warn' },
  ...{ '--filename': 'web.yaml', '--namespace': 'shop', '--output-dir': 'rendered', '--timeout': '1s' },
  ...{ '--kubeconfig': 'kubeconfig', '--context': 'x', '--as': 'jane', '--as-group': 'a' },
  ...{ '--request-timeout': '5s', '--watch-namespace': 'shop', '--operator-namespace': 'ops' },
  ...{
    '--workers': '2',
    '--leader-election-namespace': 'ops',
    '--log-level': 'debug',
    '--log-format': 'pretty',
  },
  ...{ '--metrics-bind-address': '0', '--health-bind-address': '0', '--image': 'example.com/web:1' },
  ...{
    '--replicas': '1',
    '--monitoring-labels': 'a=b',
    '--runbooks': 'https://example.com',
    '--output': 'json',
  },
  ...{ '--metrics-cert-path': 'certs', '--metrics-cert-name': 'a.crt', '--metrics-cert-key': 'a.key' },
  '--since': '.',
  ...{ '--metrics-cert-secret': 'certs', '--selector': 'app=web', '--details': '2' },
  '--watch-namespace-selector': 'team=shop',
  ...{ '--group': 'web.example.com', '--kind': 'Page', '--children': 'ConfigMap', '--package': '0.1.0' },
  ...{
    '--ingress-namespace': 'edge',
    '--ingress-service': 'proxy',
    '--ingress-controller': 'Deployment/proxy',
  },
  ...{ '--tcp-services-configmap': 'tcp', '--udp-services-configmap': 'udp' },
  ...{ '--jobwatcher-admin-namespaces': 'ops', '--jobwatcher-protected-namespaces': 'kube-*' },
  ...{ '--jobwatcher-deletes-per-second': '5', '--on-upgrade': 'hold', '--ready-within': '60' },
  ...{ 'synth --output': 'rendered', 'dev --config': 'none.mjs' },
};

/** What an option needs beside it. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  '--as-group': ['--as', 'jane'],
  ...{ 'run --selector': ['--kinds', 'appservice'], '--watch-namespace-selector': ['--kinds', 'appservice'] },
  ...{ '--monitoring-labels': ['--monitoring'], '--runbooks': ['--monitoring'] },
  ...{ '--replace': ['--apply'], '--accept-data-loss': ['--apply'], 'install --dry-run': ['--apply'] },
  '--metrics-cert-secret': ['--metrics-secure'],
};

const CLUSTER = ['--kubeconfig', 'kubeconfig'];
const UNSERVED = ['--metrics-bind-address', '0', '--health-bind-address', '0'];

/** Arguments with which a command ends by itself; `run` is ended. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  ...{ init: ['page', '--package', '0.1.0'], synth: ['web.yaml'], fn: [], dev: [], completion: ['bash'] },
  ...{ diff: ['web.yaml', ...CLUSTER], apply: ['web.yaml', ...CLUSTER], status: CLUSTER, version: CLUSTER },
  ...{ run: [...CLUSTER, ...UNSERVED], install: CLUSTER, uninstall: ['--yes', ...CLUSTER] },
  ...{ adopt: ['web.yaml', '--yes', ...CLUSTER], release: ['appservice', ...CLUSTER] },
};

/** Options of `diff` that exclude files. */
const OF_LIVE: readonly string[] = ['--all', '--all-namespaces', '--selector', '--details'];

/** Runs the command in a folder of its own, where no cluster is in reach. */
async function ended(args: readonly string[], server = 'http://127.0.0.1:1', env: NodeJS.ProcessEnv = {}) {
  const cwd = mkdtempSync(join(project, 'run-'));
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', users: [{ name: 'u', user: {} }] },
    clusters: [{ name: 'c', cluster: { server } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  };
  writeFileSync(join(cwd, 'kubeconfig'), JSON.stringify(config));
  writeFileSync(join(cwd, 'empty.config.mjs'), 'export default { kinds: [] };');
  writeFileSync(join(cwd, 'policy.yaml'), '{}');
  cpSync(join(root, 'examples/appservice-sample.yaml'), join(cwd, 'web.yaml'));
  const child = spawn(process.execPath, [join(project, 'node_modules/.bin/reconstruct'), ...args], {
    ...{ cwd, stdio: 'pipe' },
    env: { ...process.env, KUBECONFIG: '', ...env },
  });
  child.stdin.end('apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n');
  if (args[0] === 'run')
    child.stderr.on('data', (lines: Buffer) => {
      if (lines.includes('starting')) child.kill('SIGTERM');
    });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

describe('options', () => {
  test.each(Object.keys(ARGUMENTS))(
    'every option does what it says, or ends where there is no cluster: %s',
    async (name) => {
      const { options } = program().commands.find((each) => each.name() === name)!;
      // With the others dev starts a control plane; see test/full/dev.test.ts.
      const tried = options.filter(({ long }) => name !== 'dev' || long === '--config');
      const tryOne = async ({ long, required }: Option): Promise<void> => {
        const value = VALUES[`${name} ${long}`] ?? VALUES[long!];
        if (required) expect(value, `${long} has a value to try in this test`).toBeDefined();
        const own = [long!, ...(required && value !== undefined ? [value] : [])];
        const beside = BESIDE[`${name} ${long}`] ?? BESIDE[long!] ?? [];
        const isOfLive = name === 'diff' && OF_LIVE.includes(long!);
        const usual = isOfLive ? [...CLUSTER, '--all'] : ARGUMENTS[name]!;
        const { code, stderr } = await ended([name, ...usual, ...own, ...beside]);
        const expected = name === 'dev' ? [2] : [0, 3];
        expect(expected, `${name} ${own.join(' ')} ended with ${code}: ${stderr}`).toContain(code);
        expect(stderr).not.toMatch(/^\s+at /m);
      };
      while (tried.length > 0) await Promise.all(tried.splice(0, 4).map(tryOne));
    },
    300_000,
  );

  test('each option of run may come from the environment of the Deployment that install writes', async () => {
    const items = installManifests({
      ...{ namespace: 'ops', image: 'example.com/web:1', replicas: 1, kinds: [appService] },
    });
    const { spec } = items.find(({ kind }) => kind === 'Deployment') as unknown as V1Deployment;
    const { args = [] } = spec!.template.spec!.containers[0]!;
    const { options } = program().commands.find((each) => each.name() === 'run')!;
    const tried = options.filter(({ envVar }) => envVar !== undefined);
    expect(tried.map(({ long }) => long)).toContain('--observe-only');
    const tryOne = async ({ long, envVar, required }: Option): Promise<void> => {
      const value = required ? VALUES[long!]! : 'true';
      const { code, stderr } = await ended([...args, ...CLUSTER, ...UNSERVED], undefined, {
        // The options with which a folder of certificates is of use are given by `install`.
        ...(long !== '--metrics-cert-path' && { [envVar!]: value }),
      });
      expect(code, `${envVar!}=${value} ended with ${code}: ${stderr}`).toBe(0);
      if (long === '--observe-only') expect(stderr).toContain('"observeOnly":true');
    };
    while (tried.length > 0) await Promise.all(tried.splice(0, 4).map(tryOne));
  }, 300_000);

  test('a command is tried, unless it is hidden', () => {
    const visible = program().createHelp().visibleCommands(program());
    expect(visible.map((each) => each.name()).sort()).toEqual([...Object.keys(ARGUMENTS), 'help'].sort());
  });
});

describe('a command ends with', () => {
  /** An API server that has nothing, and takes everything. */
  async function anyServer(): Promise<string> {
    const server = createServer((request, response) => {
      const isRead = request.method === 'GET';
      const body =
        request.url === '/version'
          ? { major: '1', minor: '36' }
          : {
              kind: 'Status',
              reason: 'NotFound',
              message: 'web not found',
              code: 404,
              items: [],
              metadata: { resourceVersion: '1' },
            };
      // Lists are asked for in pages.
      const isFound = request.url === '/version' || request.url?.includes('limit=') === true;
      if (isRead) response.writeHead(isFound ? 200 : 404).end(JSON.stringify(body));
      else
        void text(request).then((sent) => {
          response.writeHead(201).end(sent);
        });
    });
    // A connection that is idle for five seconds, as on a busy machine, would be closed under the next request.
    server.keepAliveTimeout = 0;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const bug = `data:text/javascript,${encodeURIComponent('process.stdout.write = () => { throw new Error("a bug"); };')}`;

  test.each<[code: number, what: string, args: readonly string[], says: RegExp, env?: NodeJS.ProcessEnv]>([
    [0, 'is done', ['synth', 'web.yaml'], /^$/],
    [1, 'is a difference', ['diff', 'web.yaml', ...CLUSTER], /can't be seen|^$/],
    [2, 'is bad input', ['synth', 'none.yaml'], /^none\.yaml: can't be read: there is no such file/],
    [3, 'is no cluster', ['status', ...CLUSTER], /^The cluster at 127\.0\.0\.1:1 doesn't answer: /],
    [70, 'is a bug', ['synth', 'web.yaml'], /^Error: a bug\n +at /, { NODE_OPTIONS: `--import ${bug}` }],
  ])('the exit code of the table: %i %s', async (code, _, args, says, env) => {
    const server = code === 1 ? await anyServer() : undefined;
    const told = await ended(args, server, env);
    expect(told, told.stderr).toMatchObject({ code, stderr: expect.stringMatching(says) as string });
    const [, table = ''] = readFileSync(join(root, 'docs/reference/cli.md'), 'utf8').split('| exit code ', 2);
    expect(table.split('\n\n', 1)[0]).toContain(`\n| ${code} `);
  });
});
