import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { program } from '../../src/cli/commands.js';
import { kindFlagValues, kindOptions } from '../../src/cli/options.js';
import { builtInFlags } from '../../src/kinds/flags.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { folderWith } from '../synth/fixtures.js';

function given(...args: string[]): object {
  const command = new Command('test').exitOverride();
  for (const option of kindOptions()) command.addOption(option);
  command.configureOutput({ writeErr: () => undefined });
  return kindFlagValues(command.parse(args, { from: 'user' }).opts());
}

it('flags of kinds are known by their names, may be lists, and are absent where they are not given', () => {
  expect(given()).toEqual({});
  expect(given('--ingress-namespace', 'edge')).toEqual({ '--ingress-namespace': 'edge' });
  const flag = '--jobwatcher-admin-namespaces';
  expect(given(flag, 'a, b', flag, 'c')).toEqual({ [flag]: ['a', 'b', 'c'] });
  expect(() => given('--ingress-namespace', 'No!')).toThrow();
});

it('flags of kinds are those that the built-in kinds declare, in the help of commands and in the reference', () => {
  expect(builtInFlags).toEqual(builtInKinds.flatMap(({ flags = [] }) => flags));
  const names = builtInFlags.map(({ name }) => name);
  const commands = program().commands.filter((each) => ['run', 'synth', 'diff'].includes(each.name()));
  expect(commands).toHaveLength(3);
  for (const command of commands) {
    const options = command.options.map(({ long }) => long);
    expect(options).toEqual(expect.arrayContaining(names));
    expect(new Set(options).size).toBe(options.length);
  }
  const reference = readFileSync(join(repoFolder(), 'docs/reference/cli.md'), 'utf8');
  const [, section = ''] = reference.split('## Options of kinds\n');
  const listed = [...section.split('\n## ')[0]!.matchAll(/^\| `(--[\w-]+) /gm)].map(([, name]) => name);
  expect(listed).toEqual(names);
});

it('every option of every command is in the reference, in the section of its command or of all', () => {
  const page = (name: string): string => readFileSync(join(repoFolder(), 'docs/reference', name), 'utf8');
  const sections = new Map(
    page('cli.md')
      .split('\n## ')
      .map((section) => [/^(?:`reconstruct (\w+).*|.*)$/m.exec(section)!, section] as const)
      .map(([[line, name = line], section]) => [name, section]),
  );
  const ofAll = ['Options of the cluster', 'Options of files', 'Options of kinds'];
  const shared = ofAll.map((name) => sections.get(name)!).join('');
  const visible = program().createHelp().visibleCommands(program());
  for (const command of visible.filter((each) => each.name() !== 'help')) {
    const own = command.name() === 'install' ? page('install.md') : sections.get(command.name())!;
    const missing = command.options.filter(({ long }) => !`${shared}${own}`.includes(`\`${long}`));
    expect(missing.map(({ long }) => `${command.name()} ${long}`)).toEqual([]);
  }
});

/** Returns the options that a subcommand reads from a command line. */
function parsed(name: string, ...args: string[]): object {
  const command = program().commands.find((each) => each.name() === name)!;
  command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action(() => undefined);
  return command.parse(args, { from: 'user' }).opts();
}

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('switches and names as other programs have them', () => {
  it.each<[args: string[], expected: object]>([
    [['apply', '-f', 'a.yaml', '-f', '-'], { filename: ['a.yaml', '-'] }],
    [['apply', 'a.yaml', '--wait=true', '--prune=false'], { wait: true }],
    [['apply', '--dry-run', 'a.yaml'], { dryRun: true }],
    [['apply', '--dry-run=server', 'a.yaml', '-v=6'], { dryRun: true, verbose: true }],
    [['run', '--leader-elect=false'], { leaderElect: false }],
    [['run', '--leader-elect'], { leaderElect: true }],
    [['run', '--no-leader-elect'], { leaderElect: false }],
    [['run', '--health-probe-bind-address=:9'], { healthBindAddress: ':9' }],
    [['run', '--health-probe-bind-address', ':9'], { healthBindAddress: ':9' }],
    [
      ['diff', '-f', 'a', '--as', 'jane', '--as-group', 'a', '--as-group', 'b'],
      { as: 'jane', asGroup: ['a', 'b'] },
    ],
    [['status', '--request-timeout', '1m30s', '-v'], { requestTimeout: 90_000, verbose: true }],
  ])('%j', ([name = '', ...args], expected) => {
    expect(parsed(name, ...args)).toMatchObject(expected);
    expect(parsed('apply', '--dry-run=none', 'a.yaml')).not.toHaveProperty('dryRun');
  });

  it.each<[args: string[], message: RegExp]>([
    [
      ['apply', '--dry-run=client', 'a.yaml'],
      /only the API server knows .*: write --dry-run, or use "synth"/,
    ],
    [['install', '--dry-run=client'], /or leave out --apply/],
    [['apply', '--wait=maybe', 'a.yaml'], /--wait=maybe: write --wait, --wait=true or --wait=false/],
    [['apply', '--dry-run', '--wait', 'a.yaml'], /cannot be used with/],
    [['run', '--leader-elect=maybe'], /Write true or false/],
    [['run', '--selector', 'a in b'], /"a in b" selects no labels: write name=value/],
    [['run', '--watch-namespace-selector', 'a in b'], /"a in b" selects no labels: write name=value/],
    [['run', '--watch-namespace-selector', 'a', '--watch-namespace', 'shop'], /cannot be used with/],
    [['run', '--drift', 'off'], /Allowed choices are correct, warn, ignore/],
    [['status', '-o', 'xml'], /Allowed choices are text, wide, json, yaml, name/],
    [['install', '--image', 'Team/web:1'], /Team\/web:1: write a repository in lower case/],
  ])('%j is refused', ([name = '', ...args], message) => {
    expect(() => parsed(name, ...args)).toThrow(message);
  });
});

it('the number of kubectl behind -v is no file', () => {
  const command = program().commands.find((each) => each.name() === 'apply')!;
  command.action(() => undefined).parse(['-v', '6', 'a.yaml', '7'], { from: 'user' });
  expect([command.opts(), command.args]).toMatchObject([{ verbose: true }, ['a.yaml', '7']]);
});

describe('the environment of run', () => {
  it('gives what the command line does not, and is validated alike; a variable that is empty is none', () => {
    vi.stubEnv('RECONSTRUCT_WORKERS', '4');
    vi.stubEnv('RECONSTRUCT_LEADER_ELECT', 'false');
    vi.stubEnv('RECONSTRUCT_WATCH_NAMESPACE', '');
    vi.stubEnv('RECONSTRUCT_INGRESS_NAMESPACE', 'edge');
    expect(parsed('run')).toMatchObject({ workers: 4, leaderElect: false, ingressNamespace: 'edge' });
    expect(parsed('run')).not.toHaveProperty('watchNamespace');
    expect(parsed('run', '--workers=5', '--leader-elect')).toMatchObject({ workers: 5, leaderElect: true });
    vi.stubEnv('RECONSTRUCT_WATCH_NAMESPACE', 'shop,Ops');
    expect(() => parsed('run')).toThrow(/from env 'RECONSTRUCT_WATCH_NAMESPACE' is invalid. Ops can't name/);
  });

  it('observes an operator that is installed, which would take a lease', () => {
    vi.stubEnv('RECONSTRUCT_OBSERVE_ONLY', 'true');
    expect(parsed('run', '--leader-elect')).toMatchObject({ observeOnly: true, leaderElect: true });
    vi.stubEnv('RECONSTRUCT_OBSERVE_ONLY', 'false');
    expect(parsed('run', '--leader-elect')).toMatchObject({ observeOnly: false, leaderElect: true });
  });

  it('gives way to an option of the command line that excludes its own', () => {
    vi.stubEnv('RECONSTRUCT_WATCH_NAMESPACE_SELECTOR', 'team=shop');
    const narrow = parsed('run', '--watch-namespace=shop');
    expect(narrow).toMatchObject({ watchNamespace: ['shop'] });
    expect(narrow).not.toHaveProperty('watchNamespaceSelector');
    vi.stubEnv('RECONSTRUCT_WATCH_NAMESPACE', 'shop');
    expect(() => parsed('run')).toThrow(/cannot be used with/);
    const selected = parsed('run', '--watch-namespace-selector=team=ops');
    expect(selected).toMatchObject({ watchNamespaceSelector: 'team=ops' });
    expect(selected).not.toHaveProperty('watchNamespace');
  });

  it('is in the help of every option but those of the cluster', () => {
    const run = program().commands.find((each) => each.name() === 'run')!;
    const without = run.options.filter(({ envVar, negate }) => !envVar && !negate).map(({ long }) => long);
    expect(without).toEqual(
      ['kubeconfig', 'context', 'as', 'as-group', 'request-timeout', 'verbose'].map((name) => `--${name}`),
    );
  });
});

it.each([
  ['/usr/bin/kubectl-reconstruct', 'kubectl reconstruct'],
  ['/app/node_modules/.bin/cdk8s-reconstruct', 'cdk8s-reconstruct'],
  ['/app/lib/bundle/reconstruct.mjs', 'reconstruct'],
])('started as %s, it is called %s', (script, name) => {
  const { argv } = process;
  try {
    Object.assign(process, { argv: ['node', script] });
    expect(program().helpInformation()).toContain(`Usage: ${name} [options] [command]`);
  } finally {
    Object.assign(process, { argv });
  }
});

it('the help has the options of the built-in kinds in groups of their own, and not where these are left out', () => {
  const helpOf = (): string =>
    program()
      .commands.find((each) => each.name() === 'run')!
      .helpInformation();
  expect(helpOf()).toMatch(
    /^Options of StreamIngress:\n {2}--ingress-namespace .*^Options of JobWatcher:\n {2}--jobwatcher/ms,
  );
  const config = folderWith({ 'reconstruct.config.mjs': 'export default { builtIn: false, kinds: [] };' });
  vi.spyOn(process, 'cwd').mockReturnValue(config);
  expect(helpOf()).not.toMatch(/StreamIngress|JobWatcher/);
});
