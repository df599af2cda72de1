import { globSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import { repoFolder } from '../../sandbox/paths.js';
import { commandsOf, filesIn, operatingPages } from './support/documented.js';
import { Shell } from './support/shell.js';

interface Page {
  /** Makes what the commands find in their folder. */
  readonly prepare: (folder: string) => Promise<void>;
  /** Not tried: they run the project's own scripts, as whoever runs this test has just done, or prepare the folder. */
  readonly setUp: readonly string[];
}

const root = repoFolder();

/** The pages that have commands, in the order in which they are tried. */
const pages: Readonly<Record<string, Page>> = {
  'README.md': { prepare: asCloned, setUp: ['npm ci', 'npm run demo', 'npm test'] },
  'docs/reference/appservice.md': { prepare: asCloned, setUp: [] },
  'docs/reference/policy.md': { prepare: asCloned, setUp: [] },
  'docs/reference/jobwatcher.md': { prepare: asCloned, setUp: [] },
  'docs/reference/streamingress.md': { prepare: asCloned, setUp: [] },
  'docs/reference/install.md': {
    prepare: asCloned,
    // There is no Helm on the path; test/full/helm.test.ts has one.
    setUp: ['helm install reconstruct charts/reconstruct -n reconstruct-system --create-namespace'],
  },
  ...Object.fromEntries(
    ['scheduled-task', 'port-rule', 'event-bus'].map((name) => [
      `examples/${name}/README.md`,
      {
        prepare: (folder: string) => asInRepository(folder, join(root, 'examples', name)),
        setUp: ['export PATH="$PWD/node_modules/.bin:$PATH"', `cd examples/${name}`],
      },
    ]),
  ),
  'docs/gitops.md': {
    prepare: asCloned,
    // There is neither Argo CD nor a container engine.
    setUp: [
      'docker build -f gitops/argocd/Dockerfile -t registry.example.com/reconstruct-plugin:0.1.0 .',
      'kubectl -n argocd patch configmap argocd-cm --patch-file gitops/argocd/argocd-cm.yaml',
      'kubectl -n argocd create configmap reconstruct-plugin --from-file=gitops/argocd/plugin.yaml',
      'kubectl -n argocd patch deployment argocd-repo-server --patch-file gitops/argocd/repo-server-patch.yaml',
    ],
  },
  'examples/gitops/README.md': {
    prepare: asCheckedOut,
    setUp: [
      'export PATH="$PWD/node_modules/.bin:$PATH"',
      'cd examples/gitops',
      'git diff --exit-code rendered',
    ],
  },
  'docs/tutorial.md': {
    prepare: asCloned,
    setUp: [
      'npm ci',
      'npm run sandbox -- up',
      'export KUBECONFIG="$(npm run --silent sandbox -- kubeconfig)"',
    ],
  },
  'docs/coming-from.md': { prepare: asShown, setUp: [] },
  'bench/README.md': {
    prepare: asCloned,
    setUp: ['npm run bench', 'npm run bench -- --only cold-0 --scale 200'],
  },
};

/** Names scripts of this project, of which some take hours and others write to it. */
const SCRIPTS = 'CONTRIBUTING.md';
/** Begins with a packed package and an empty folder, and is tried so among the scenarios. */
const OWN_KIND = 'docs/your-own-kind.md';
/** Has a command of that page, for the same folder. */
const DEV = 'docs/dev.md';

let sandbox: Sandbox;
let home: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  sandbox = await startSandbox();
  home = await mkdtemp(join(tmpdir(), 'documented-'));
  const kubeconfig = join(home, 'kubeconfig');
  await writeFile(kubeconfig, await readFile(sandbox.adminKubeconfig, 'utf8'));
  const path = [dirname(process.execPath), join(root, 'node_modules/.bin'), dirname(sandbox.kubectlPath)];
  env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    KUBECACHEDIR: join(home, 'kubectl-cache'),
    PATH: [...path, process.env.PATH].join(delimiter),
    // So that a test of Node's own doesn't believe to be a part of this one.
    ...{ NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
  };
});

afterAll(async () => {
  await sandbox.stop();
  await rm(home, { recursive: true });
});

test('every page with commands is tried', () => {
  const texts = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'examples/**/*.md'], { cwd: root });

  expect(texts.filter((page) => commandsOf(page).length > 0).sort()).toEqual(
    [...Object.keys(pages), ...operatingPages(), SCRIPTS, OWN_KIND, DEV].sort(),
  );
  const tried = commandsOf(OWN_KIND).map(({ text }) => text);
  expect(tried).toEqual(expect.arrayContaining(commandsOf(DEV).map(({ text }) => text)));
});

test.for(commandsOf(SCRIPTS))('$text is a script of the package', async ({ text }) => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const [, name = ''] = /^npm (?:run )?(\S+)/.exec(text) ?? [];
  expect(Object.keys(scripts)).toContain(name);
});

describe.each(Object.entries(pages))('%s', (page, { prepare, setUp }) => {
  const commands = commandsOf(page);
  let shell: Shell;

  beforeAll(async () => {
    const folder = join(home, page.replaceAll('/', '-'));
    await mkdir(folder);
    await prepare(folder);
    shell = new Shell({ folder, env });
  });
  afterAll(async () => {
    expect([undefined, 0]).toContain(await shell.endController());
  });

  test('has what is not tried, as it stands here', () => {
    expect(commands.map(({ text }) => text)).toEqual(expect.arrayContaining([...setUp]));
  });

  test.for(commands.filter(({ text }) => !setUp.includes(text)))('$text', async ({ text, exitCode }) => {
    const { code, output } = await shell.type(text);

    expect(code, output).toBe(exitCode);
  });
});

/** The repository as it is cloned and built; commands may leave files. */
async function asCloned(folder: string): Promise<void> {
  for (const name of await readdir(root))
    if (name !== 'dist' && !name.startsWith('.')) await symlink(join(root, name), join(folder, name));
}

/** The example as a repository of its own, whose files its commands change. */
async function asCheckedOut(folder: string): Promise<void> {
  await cp(join(root, 'examples/gitops'), folder, { recursive: true });
}

/** An example where it is: its commands lead out of its folder. */
async function asInRepository(folder: string, where: string): Promise<void> {
  await rm(folder, { recursive: true });
  await symlink(where, folder);
}

/** The files that the page shows, beside the packages that it needs. */
async function asShown(folder: string): Promise<void> {
  const text = await readFile(join(root, 'docs/coming-from.md'), 'utf8');
  for (const [name, content] of filesIn(text)) await writeFile(join(folder, name), content);
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await mkdir(join(folder, 'node_modules'));
  await symlink(root, join(folder, 'node_modules/reconstruct'));
  for (const name of ['cdk8s', 'constructs'])
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
}
