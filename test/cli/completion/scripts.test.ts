import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { LOG_LEVELS } from '../../../src/telemetry/log-options.js';

const command = join(repoFolder(), 'lib/cli/main.js');

function print(...args: string[]): string {
  return execFileSync(process.execPath, [command, ...args], { encoding: 'utf8' });
}

/** The long options of each command, by its help. */
const optionsOf = new Map<string, string[]>();
beforeAll(() => {
  const names = [...print('--help').matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
  for (const name of names) {
    const help = print(name, '--help');
    optionsOf.set(
      name,
      [...help.matchAll(/^ {2}.*?--([a-z-]+)/gm)].map(([, option]) => option!),
    );
  }
});

/** The shells that are on this machine, with how they check a script. */
const checkers: Readonly<Record<string, readonly string[]>> = {
  bash: ['bash', '-n'],
  zsh: ['zsh', '-n'],
  fish: ['fish', '--no-execute'],
};

describe.each(Object.keys(checkers))('the script for %s', (shell) => {
  const script = print('completion', shell);

  test('has every command, and every long option that its help has', () => {
    expect([...optionsOf.keys()]).toEqual(expect.arrayContaining(['run', 'completion']));
    for (const [name, options] of optionsOf) {
      expect(script).toContain(name);
      for (const option of options) expect(script).toContain(option);
    }
  });

  test('has the values of an option that takes one of a few', () => {
    for (const level of LOG_LEVELS) expect(script).toContain(level);
  });

  test.skipIf(spawnSync(checkers[shell]![0]!, ['--version']).error)(
    'is one that the shell understands, where it is installed',
    () => {
      const [program, ...args] = checkers[shell]!;
      const file = join(mkdtempSync(join(tmpdir(), 'completion-')), shell);
      writeFileSync(file, script);
      const { status, stderr } = spawnSync(program!, [...args, file], { encoding: 'utf8' });
      rmSync(dirname(file), { recursive: true });
      expect([status, stderr]).toEqual([0, '']);
    },
  );
});

test('where files are expected, files are completed', () => {
  expect(print('completion', 'bash')).toMatch(/'synth\|'\*\).*compgen -f/);
  expect(print('completion', 'zsh')).toContain("'*:file:_files'");
  expect(print('completion', 'fish')).toContain("-n '__fish_seen_subcommand_from synth' -F");
});

test('an unknown shell is refused, with those that there are', () => {
  const { status, stderr } = spawnSync(process.execPath, [command, 'completion', 'tcsh'], {
    encoding: 'utf8',
  });
  expect(status).toBe(2);
  expect(stderr).toContain('bash, zsh, fish');
});
