import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { kindFlagValues, kindOptions, program } from '../../src/cli/commands.js';
import { builtInFlags } from '../../src/kinds/flags.js';
import { builtInKinds } from '../../src/kinds/index.js';

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
