import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { edited, missingLines, stepsOf, Terminal } from '../support/pages.js';
import type { Step } from '../support/pages.js';

const root = repoFolder();
const steps = stepsOf(await readFile(join(root, 'docs/your-own-kind.md'), 'utf8'));

/** Typed in a clone of this repository, which this one is; it is built already. */
const PACK = 'npm run package && cp dist/cdk8s-reconstruct-*.tgz ..';
/** Not tried: there is no registry to push an image to, and what builds one may not be there either. */
const WITH_A_REGISTRY: readonly string[] = ['npm run image && docker push $IMAGE'];
/** Walks the same way each time, so that what lands doesn't depend on chance; `sweep-examples.test.ts` has that. */
const SWEEP = 'npm run sweep';
/** Programs that go on until Ctrl-C. */
const GOES_ON = /^npx reconstruct (?:dev|run)\b/;

let home: string;
let terminal: Terminal;
const left = new AsyncDisposableStack();
const interrupted: string[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'own-kind-'));
  left.defer(() => rm(home, { recursive: true }));
  terminal = left.use(await Terminal.open(home, environment()));
});

afterAll(() => left.disposeAsync());

/** That of somebody who has nothing of this project, but the Node that it is tested with. */
function environment(): NodeJS.ProcessEnv {
  const ours = /^npm_(?!config_)|^npm_config_local_prefix$|^INIT_CWD$|^NODE_|^VITEST|^KUBE/;
  const inherited = Object.entries(process.env).filter(([name]) => !ours.test(name));
  const { kubectlPath } = openSandbox(inject('sandbox'));
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  return {
    ...Object.fromEntries(inherited),
    PATH: [dirname(process.execPath), dirname(kubectlPath), ...path].join(delimiter),
    ...{ npm_config_prefer_offline: 'true', npm_config_cache: npmCache() },
    // A connection that is lost is tried again after a minute, instead of five.
    ...{ npm_config_fetch_timeout: '60000', npm_config_fetch_retries: '4' },
    KUBECACHEDIR: join(home, 'kubectl-cache'),
  };
}

/** One of its own, since npx keeps there what it has installed; but nothing is fetched that was fetched before. */
function npmCache(): string {
  const folder = join(home, 'npm-cache');
  const [shared = ''] = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).split('\n');
  mkdirSync(folder);
  mkdirSync(join(shared, '_cacache'), { recursive: true });
  symlinkSync(join(shared, '_cacache'), join(folder, '_cacache'));
  return folder;
}

/** How a step is told. */
function nameOf(step: Step): string {
  switch (step.do) {
    case 'command':
      return step.text;
    case 'edit':
      return `edit ${step.file}`;
    case 'compare':
      return `look at ${step.file}`;
    case 'await':
      return `wait for "${step.lines.at(-1) ?? ''}"`;
    case 'interrupt':
      return 'Ctrl-C';
  }
}

/** What the author writes. */
const lines = steps.flatMap((step) => (step.do === 'edit' ? step.hunks.flatMap(({ added }) => added) : []));

test('the author writes at most 60 lines', () => {
  console.log(`${lines.length} lines are the author's own`);
  expect(lines.length).toBeGreaterThan(20);
  expect(lines.length).toBeLessThanOrEqual(60);
});

test('the page has what is promised of it', () => {
  const commands = steps.flatMap((step) => (step.do === 'command' ? [step.text] : []));

  expect(lines.join('\n')).toMatch(/^ +\{ apiVersion: 'v1', kind: 'Service' \},$/m);
  expect(lines.join('\n')).toMatch(/^ +title: \{$.*: spec\.title \}/ms);
  expect(commands).toEqual(expect.arrayContaining([PACK, ...WITH_A_REGISTRY]));
  for (const part of [
    ...[/reconstruct init /, /^npm test/, /^npm run typecheck/, /^npm run synth/, /reconstruct dev/],
    ...[
      /^npm run sweep$/,
      /reconstruct install .*--apply/,
      /^kubectl apply/,
      /^kubectl wait/,
      /reconstruct uninstall/,
    ],
  ])
    expect(
      commands.filter((command) => part.test(command)),
      String(part),
    ).not.toEqual([]);
});

let failed = false;

test.for(steps.map((step, index) => [`${index + 1}. ${nameOf(step)}`, step] as const))(
  '%s',
  { timeout: 1_800_000 },
  async ([, step], { skip }) => {
    skip(failed, 'a step before it has failed');
    failed = true;
    await take(step);
    failed = false;
  },
);

async function take(step: Step): Promise<void> {
  switch (step.do) {
    case 'command':
      return typed(step);
    case 'edit': {
      const file = join(terminal.currentFolder, step.file);
      return writeFile(file, edited(await readFile(file, 'utf8'), step.hunks));
    }
    case 'compare':
      expect(await readFile(join(terminal.currentFolder, step.file), 'utf8')).toBe(step.text);
      return;
    case 'await':
      return terminal.printed(step.lines);
    case 'interrupt': {
      const { command, end, output } = await terminal.interrupt();
      // What npx has started ends with 0; npx itself then ends by the signal that it got.
      expect([0, 'SIGINT'], output).toContain(end);
      interrupted.push(command);
    }
  }
}

async function typed({ text, exitCode, shown }: Extract<Step, { do: 'command' }>): Promise<void> {
  if (WITH_A_REGISTRY.includes(text)) return;
  if (text === PACK) {
    execFileSync(process.execPath, [join(root, 'scripts/package.mjs'), '--out', join(home, 'package')]);
    return;
  }
  if (GOES_ON.test(text)) {
    // Others may have the ports on this machine.
    const addresses = ' --metrics-bind-address 0 --health-bind-address 0';
    terminal.goOn(text.startsWith('npx reconstruct run') ? text + addresses : text);
    return;
  }
  const { code, output } = await terminal.type(text === SWEEP ? `${text} -- --seed 1` : text);
  expect(code, output).toBe(exitCode);
  expect(missingLines(shown, output), output).toEqual([]);
}

test('what went on has ended, and nothing of it is left', () => {
  expect(interrupted.some((command) => command.includes('reconstruct dev'))).toBe(true);
  expect(terminal.kubeconfigs.length).toBeGreaterThan(0);
  expect(terminal.kubeconfigs.filter((file) => existsSync(file))).toEqual([]);
});
