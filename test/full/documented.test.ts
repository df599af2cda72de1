import { globSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { eventually } from '../support/cluster.js';
import { commandPath } from '../support/commands.js';
import { commandsOf, filesIn, local, operatingPages, Terminal } from '../support/pages.js';
import type { CommandStep } from '../support/pages.js';
import { ownControlPlane } from '../support/test-clusters.js';

interface Page {
  /** Makes what the commands find in their folder. */
  readonly prepare: (folder: string) => Promise<void>;
  /** Not tried: they run the project's own scripts, as was done before this test, or prepare the folder. */
  readonly setUp: readonly string[];
}

const root = repoFolder();

/** The pages that have commands, in the order in which they are tried. */
const pages: Readonly<Record<string, Page>> = {
  'README.md': {
    prepare: asCloned,
    // test/full/readme.test.ts makes that project, and test/scenarios/own-kind.test.ts one as it is packed and installed.
    setUp: commandsOf('README.md').map(({ text }) => text),
  },
  'docs/built-in-kinds.md': { prepare: asCloned, setUp: ['npm ci'] },
  'docs/in-a-chart.md': { prepare: asShown('docs/in-a-chart.md'), setUp: [] },
  'docs/recipes.md': {
    prepare: (folder) => asInRepository(folder, join(root, 'examples/team')),
    setUp: [],
  },
  'docs/reference/appservice.md': { prepare: asCloned, setUp: [] },
  'docs/reference/policy.md': { prepare: asCloned, setUp: [] },
  'docs/reference/jobwatcher.md': { prepare: asCloned, setUp: [] },
  'docs/reference/streamingress.md': { prepare: asCloned, setUp: [] },
  'docs/reference/install.md': { prepare: asCloned, setUp: [] },
  ...Object.fromEntries(
    ['composition', 'scheduled-task', 'port-rule', 'event-bus', 'tenant'].map((name) => [
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
      'kubectl -n argocd patch configmap argocd-cm --patch-file argo-health.yaml',
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
    setUp: ['npm run sandbox -- up', 'export KUBECONFIG="$(npm run --silent sandbox -- kubeconfig)"'],
  },
  'docs/upgrades.md': {
    prepare: asCloned,
    // scripts/record.mjs runs all commands of that page, and test/full/readme.test.ts its outputs.
    setUp: commandsOf('docs/upgrades.md').map(({ text }) => text),
  },
  'docs/on-call.md': { prepare: asCloned, setUp: [] },
  'docs/coming-from.md': { prepare: asShown('docs/coming-from.md'), setUp: [] },
  'bench/README.md': {
    prepare: asCloned,
    setUp: ['npm run bench', 'npm run bench -- --only cold-0 --scale 200'],
  },
};

/** Names scripts of this project, of which some take hours and others write to it. */
const SCRIPTS = 'CONTRIBUTING.md';
/** Begins with a packed package and an empty folder, and is tried so among the scenarios. */
const OWN_KIND = 'docs/your-own-kind.md';
/** Is tried with an operator that goes on beside it, and with others that are played. */
const COMPOSITION = 'docs/composition.md';
/** Has a command of that page, for the same folder. */
const DEV = 'docs/dev.md';

const own = ownControlPlane();
let home: string;
const left = new AsyncDisposableStack();

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'documented-'));
  left.defer(() => rm(home, { recursive: true }));
});
afterAll(() => left.disposeAsync());

/** Opens a terminal in a folder of its own for one page. */
async function terminalFor(page: string, prepare: Page['prepare']): Promise<Terminal> {
  const folder = join(home, page.replaceAll('/', '-'));
  await mkdir(folder);
  await prepare(folder);
  const kubeconfig = join(home, 'kubeconfig');
  await writeFile(kubeconfig, await readFile(own.sandbox.adminKubeconfig, 'utf8'));
  const terminal = await Terminal.open(folder, {
    ...process.env,
    KUBECONFIG: kubeconfig,
    KUBECACHEDIR: join(home, 'kubectl-cache'),
    PATH: [commandPath(own.sandbox.kubectlPath), process.env.PATH].join(delimiter),
    // So that a test of Node's own doesn't believe to be a part of this one.
    ...{ NODE_OPTIONS: '', NODE_TEST_CONTEXT: undefined },
  });
  return left.use(terminal);
}

async function typed(
  terminal: Terminal,
  { text, exitCode }: Pick<CommandStep, 'text' | 'exitCode'>,
): Promise<void> {
  const command = local(text);
  const isController = /(?:reconstruct(?:\.mjs)?|main\.js) run\b/.test(command);
  const { code, output } = await (isController ? terminal.startController(command) : terminal.type(command));

  expect(code, output).toBe(exitCode);
}

test('every page with commands is tried', () => {
  const texts = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'examples/**/*.md'], { cwd: root });

  expect(texts.filter((page) => commandsOf(page).length > 0).sort()).toEqual(
    [...Object.keys(pages), ...operatingPages(), SCRIPTS, OWN_KIND, COMPOSITION, DEV].sort(),
  );
  const tried = commandsOf(OWN_KIND).map(({ text }) => text);
  expect(tried).toEqual(expect.arrayContaining(commandsOf(DEV).map(({ text }) => text)));
});

test.for(commandsOf(SCRIPTS))('$text is a script of the package', async ({ text }) => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const [, name = ''] = /^npm (?:run )?(\S+)/.exec(text) ?? [];
  expect(Object.keys(scripts)).toContain(name);
});

/** Installs all CRDs as the pages say. By its short name, a kind is then one resource. */
async function installCrds(terminal: Terminal): Promise<void> {
  await typed(terminal, { text: 'kubectl apply -f crds', exitCode: 0 });
  for (const kind of ['appservice', 'jobwatcher', 'streamingress'])
    await eventually(() => typed(terminal, { text: `kubectl get ${kind} -A`, exitCode: 0 }));
}

// The pages are tried on this cluster then, the README first.
test('kubectl apply -f crds installs what the operator serves by default, and nothing else', async () => {
  const terminal = await terminalFor('crds', asCloned);
  await installCrds(terminal);

  const { output } = await terminal.type('kubectl get crds -o name');
  expect(output.match(/(?<=\/).+$/gm)?.sort()).toEqual(
    builtInKinds.map(({ crd }) => crd.metadata.name).sort(),
  );
});

describe.each(Object.entries(pages))('%s', (page, { prepare, setUp }) => {
  const commands = commandsOf(page);
  let terminal: Terminal;

  beforeAll(async () => {
    terminal = await terminalFor(page, prepare);
  });

  test('has what is not tried, as it stands here', () => {
    expect(commands.map(({ text }) => text)).toEqual(expect.arrayContaining([...setUp]));
  });

  test.for(commands.filter(({ text }) => !setUp.includes(text)))('$text', (step) => typed(terminal, step));

  test('what goes on ends in order', async () => {
    for (const { end, output } of await terminal.interruptAll()) expect(end, output).toBe(0);
  });
});

/** Commands that only read, and need neither pods that run nor a name that the reader fills in. */
const READS = /^(?:kubectl (?:get|describe)|reconstruct status)\b(?!.*\b[A-Z]{3,})/;

/** Not tried: what they read is there only once an operator is installed and runs, or with what others install. */
const ABSENT: readonly string[] = [
  'kubectl get configmap reconstruct-policy -n reconstruct-system -o yaml',
  'kubectl get lease reconstruct -n reconstruct-system -o yaml',
  'kubectl get servicemonitors -n reconstruct-system',
];

test('the pages for those who watch over an operator read what can be read', async () => {
  const terminal = await terminalFor('operating', asCloned);
  await installCrds(terminal);
  const texts = operatingPages()
    .flatMap(commandsOf)
    .map(({ text }) => text);
  expect(texts).toEqual(expect.arrayContaining([...ABSENT]));
  // Where nothing is wrong, what is searched for isn't there.
  const reading = texts
    .map((text) => text.replace(/ \| (?:grep|tail).*/, ''))
    .filter((text) => READS.test(text));
  const commands = new Set(reading.filter((text) => !ABSENT.includes(text)));
  expect(commands.size).toBeGreaterThan(10);

  for (const text of commands) await typed(terminal, { text, exitCode: 0 });
});

/** The repository as it is cloned and built; commands may leave files. */
async function asCloned(folder: string): Promise<void> {
  for (const name of await readdir(root))
    if (name !== 'dist' && name !== 'crds' && !name.startsWith('.'))
      await symlink(join(root, name), join(folder, name));
  // kubectl follows no link to a folder.
  await cp(join(root, 'crds'), join(folder, 'crds'), { recursive: true });
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

/** The files that a page shows, beside the packages that they need. */
function asShown(page: string): Page['prepare'] {
  return async (folder) => {
    const text = await readFile(join(root, page), 'utf8');
    for (const [name, content] of filesIn(text)) await writeFile(join(folder, name), content);
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await mkdir(join(folder, 'node_modules'));
    await symlink(root, join(folder, 'node_modules/cdk8s-reconstruct'));
    for (const name of ['cdk8s', 'constructs'])
      await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  };
}
