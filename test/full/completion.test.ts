import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { LOG_LEVELS } from '../../src/telemetry/logger.js';
import { eventually, installCrd } from '../support/cluster.js';
import { openCluster } from '../support/test-clusters.js';

const root = repoFolder();
const command = join(root, 'lib/cli/main.js');

function print(...args: string[]): string {
  return execFileSync(process.execPath, [command, ...args], { encoding: 'utf8' });
}

/** The words that may follow. */
function completed(...words: string[]): string[] {
  const lines = print('complete', '--', ...words).split('\n');
  return lines.slice(0, -1).map((line) => line.replace(/\t.*/, ''));
}

describe('the words that may follow', () => {
  test('are all commands and options of the help, with their descriptions', () => {
    const names = [...print('--help').matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
    expect(names).toEqual(expect.arrayContaining(['run', 'completion']));
    expect(completed('')).toEqual(names);
    expect(completed('in')).toEqual(['init', 'install']);
    const options = [...print('diff', '--help').matchAll(/^ {2}.*?(--[a-z-]+)/gm)].map(
      ([, option]) => option!,
    );
    expect(completed('diff', '--').sort()).toEqual(options.sort());
    expect(print('complete', '--', 'sta')).toMatch(/^status\t\w+ .*\n$/);
  });

  test.each<[words: string[], expected: readonly string[]]>([
    [['run', '--log-level', ''], LOG_LEVELS],
    [['run', '--log-level=d'], ['--log-level=debug']],
    [['run', '--log-level', '=', 'd'], ['--log-level=debug']],
    [['run', '--log-level', '='], LOG_LEVELS.map((level) => `--log-level=${level}`)],
    [['run', '--log-level', 'info', '--log-f'], ['--log-format']],
    [['synth', 'a'], [':file']],
    [
      ['diff', 'a'],
      ['appservice', ':file'],
    ],
    [['status', ''], builtInKinds.map(({ name }) => name)],
    [['run', '--kinds', 'appservice,job'], ['appservice,jobwatcher']],
    [['synth', '-o', 'a'], [':folder']],
    [['run', '--config=a'], [':file']],
    [['run', '--workers', ''], []],
    [['run', '--leader-election-namespace', 'diff', '--log-f'], ['--log-format']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['dev-'], []],
  ])('after %j', (words, expected) => {
    expect(completed(...words)).toEqual(expected);
  });
});

describe('what the cluster has', () => {
  const cluster = openCluster();
  let namespace: string;
  let access: readonly string[];
  beforeAll(async () => {
    await installCrd(cluster, appService);
    namespace = await cluster.makeNamespace('completion');
    const { apiVersion, kind } = appService.type;
    for (const name of ['web', 'worker', 'api']) {
      const cr = {
        apiVersion,
        kind,
        metadata: { name, namespace },
        spec: { size: 0, image: 'example.com/web:1' },
      };
      await cluster.create(appService.type, cr);
    }
    access = ['--kubeconfig', cluster.sandbox.adminKubeconfig];
  });

  test('is completed: names, namespaces and contexts', async () => {
    const inside = ['-n', namespace];
    const both = `--watch-namespace=default,${namespace}`;
    // On a busy machine, an answer may not come in time.
    for (const [words, expected] of [
      [
        ['status', ...access, ...inside, 'appsvc', 'w'],
        ['web', 'worker'],
      ],
      [['status', ...access, ...inside, 'appsvc', 'web', 'w'], ['worker']],
      [
        ['diff', ...access, ...inside, 'appsvc/a'],
        ['appsvc/api', ':file'],
      ],
      [['status', ...access, '-n', namespace.slice(0, -1)], [namespace]],
      [['run', ...access, both], [both]],
      [['status', ...access, '--context', ''], [expect.any(String)]],
    ] as const)
      await eventually(() => {
        expect(completed(...words)).toEqual(expected);
      });
  });

  test('is left out in silence where it may not be asked, or there is no answer in time', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const silent = join(folder, 'silent');
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const named = (kind: string, content: object) => ({ [`${kind}s`]: [{ name: 'one', [kind]: content }] });
    const parts = [
      named('cluster', { server: url }),
      named('context', { cluster: 'one', user: 'one' }),
      named('user', {}),
    ];
    writeFileSync(silent, JSON.stringify(Object.assign({ 'current-context': 'one' }, ...parts)));
    for (const kubeconfig of ['/nowhere', silent]) {
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [command, 'complete', '--', 'status', '--kubeconfig', kubeconfig, 'appsvc', ''],
        { encoding: 'utf8', timeout: 20_000 },
      );
      expect([status, stdout, stderr]).toEqual([0, '', '']);
    }
  });
});

/** Keys that a user types, with `→` for the one that completes, and the arguments that the command then gets. */
const typed: readonly (readonly [string, readonly string[]])[] = [
  ['reconstruct compl→', ['completion']],
  ['reconstruct run --log-l→deb→ --work→4', ['run', '--log-level', 'debug', '--workers', '4']],
  ['reconstruct run --log-level=deb→', ['run', '--log-level=debug']],
  ['reconstruct synth gar→', ['synth', 'garden.yaml']],
  ['reconstruct synth gree→', ['synth', 'greenhouse/']],
  ['reconstruct synth --output gre→', ['synth', '--output', 'greenhouse/']],
  ['reconstruct run --config=gar→', ['run', '--config=garden.yaml']],
  ['reconstruct diff gar→', ['diff', 'garden.yaml']],
  ['reconstruct status jobw→old', ['status', 'jobwatcher', 'old']],
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'completion-'));
  mkdirSync(join(folder, 'greenhouse'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'garden.yaml'), '');
  // Only completes; otherwise prints its arguments.
  const program = `#!/bin/sh
if [ "$1" = complete ]; then exec '${process.execPath}' '${command}' "$@"; fi
printf '<%s>' "$@"; echo\n`;
  writeFileSync(join(folder, 'bin/reconstruct'), program, { mode: 0o755 });
  writeFileSync(join(folder, 'rc'), `PS1=''\n${print('completion', 'bash')}`);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('bash completes commands, options and their values at a terminal', () => {
  const keys = [...typed.map(([line]) => line.replaceAll('→', '\t')), 'exit', ''].join('\n');
  const screen = execFileSync('script', ['-qec', 'bash --noprofile --rcfile rc -i', '/dev/null'], {
    ...{ cwd: folder, input: keys, encoding: 'utf8', timeout: 60_000 },
    env: {
      PATH: [join(folder, 'bin'), process.env.PATH].join(delimiter),
      TERM: 'dumb',
      INPUTRC: '/dev/null',
    },
  });
  const received = [...screen.matchAll(/^\W*?((?:<[^<>]*>)+)\r$/gm)].map(([, line]) =>
    [...line!.matchAll(/<([^<>]*)>/g)].map(([, word]) => word),
  );
  expect(received).toEqual(typed.map(([, args]) => args));
}, 60_000);

/** The shells that are on this machine, with how they check a script. */
test.each([
  ['bash', '-n'],
  ['zsh', '-n'],
  ['fish', '--no-execute'],
])('the script for %s is one that the shell understands, where it is installed', (shell, flag) => {
  const file = join(folder, shell);
  writeFileSync(file, print('completion', shell));
  const { error, status, stderr } = spawnSync(shell, [flag, file], { encoding: 'utf8' });
  if (!error) expect([status, stderr]).toEqual([0, '']);
});
