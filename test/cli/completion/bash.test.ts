import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Argument, Command, Option } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bashCompletion } from '../../../src/cli/completion/bash.js';
import { completedCommand } from '../../../src/cli/completion/model.js';

/** What a user types, with `→` for the key that completes, and the arguments that the command then gets. */
const typed: readonly (readonly [string, readonly string[]])[] = [
  ['tool pla→', ['plant']],
  ['tool water --how-→ca→ rose', ['water', '--how-much', 'can', 'rose']],
  ['tool water --how-much=buc→', ['water', '--how-much=bucket']],
  ['tool water --how-much can --lis→gar→', ['water', '--how-much', 'can', '--list', 'garden.txt']],
  ['tool water -l gar→', ['water', '-l', 'garden.txt']],
  ['tool water gree→', ['water', 'greenhouse/']],
  ['tool water --into gre→', ['water', '--into', 'greenhouse/']],
  ['tool water --note plant --how-→can', ['water', '--note', 'plant', '--how-much', 'can']],
  ['tool water --pace=→', ['water', '--pace=slow']],
  ['tool plant --where bulbs bul→', ['plant', '--where', 'bulbs', 'bulbs']],
  ['tool plant bulbs tu→', ['plant', 'bulbs', 'tulip']],
  ['tool plant --vers→', ['plant', '--vers']],
];

function garden(): Command {
  const bulbs = new Command('bulbs').addArgument(new Argument('<flower>').choices(['tulip', 'crocus']));
  return new Command('tool')
    .version('1.0.0')
    .addCommand(new Command('plant').option('--where <text>').addCommand(bulbs))
    .addCommand(
      new Command('water')
        .addOption(new Option('--how-much <measure>', "a gardener's measure").choices(['can', 'bucket']))
        .addOption(new Option('-l, --list <file>', 'what to water'))
        .addOption(new Option('--into <dir>', 'where to'))
        .addOption(new Option('--note <text>', 'anything'))
        .addOption(new Option('--pace <pace>', 'how fast').choices(['slow']))
        .addOption(new Option('--secret').hideHelp())
        .argument('<source...>'),
    );
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'completion-'));
  mkdirSync(join(folder, 'greenhouse'));
  writeFileSync(join(folder, 'garden.txt'), '');
  const told = `tool() { printf '<%s>' "$@"; echo; }\n`;
  writeFileSync(join(folder, 'rc'), `PS1=''\n${told}${bashCompletion(completedCommand(garden()))}`);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('bash completes commands, options and their values at a terminal', () => {
  const keys = [...typed.map(([line]) => line.replaceAll('→', '\t')), 'exit', ''].join('\n');
  const screen = execFileSync('script', ['-qec', 'bash --noprofile --rcfile rc -i', '/dev/null'], {
    ...{ cwd: folder, input: keys, encoding: 'utf8', timeout: 20_000 },
    env: { PATH: process.env.PATH, TERM: 'dumb', INPUTRC: '/dev/null' },
  });
  const received = [...screen.matchAll(/^\W*?((?:<[^<>]*>)+)\r$/gm)].map(([, line]) =>
    [...line!.matchAll(/<([^<>]*)>/g)].map(([, word]) => word),
  );
  expect(received).toEqual(typed.map(([, args]) => args));
});

test('what is hidden is not offered', () => {
  expect(bashCompletion(completedCommand(garden()))).not.toContain('--secret');
});
