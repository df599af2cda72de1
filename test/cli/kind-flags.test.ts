import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { addKindFlags, kindFlagValues } from '../../src/cli/options.js';
import { diffCommand } from '../../src/cli/diff.js';
import { runCommand } from '../../src/cli/run.js';
import { synthCommand } from '../../src/cli/synth.js';
import type { KindFlag } from '../../src/contract/kind.js';
import { builtInFlags } from '../../src/kinds/flags.js';
import { builtInKinds } from '../../src/kinds/index.js';

const NAMESPACE: KindFlag = {
  name: '--demo-namespace',
  value: 'namespace',
  description: 'where the shared object is',
  check: (value) => (value === 'no' ? 'no is no namespace.' : undefined),
};
const ADMINS: KindFlag = { name: '--demo-admins', value: 'namespaces', description: 'x', list: true };
const FLAGS = [NAMESPACE, ADMINS];

function given(...args: string[]): object {
  const command = addKindFlags(new Command('test').exitOverride(), FLAGS);
  command.configureOutput({ writeErr: () => undefined });
  return kindFlagValues(FLAGS, command.parse(args, { from: 'user' }).opts());
}

describe('Flags of kinds', () => {
  it('are known by their names, and absent where they are not given', () => {
    expect(given()).toEqual({});
    expect(given('--demo-namespace', 'shop')).toEqual({ '--demo-namespace': 'shop' });
  });

  it('may be lists, by commas or by being given again', () => {
    expect(given('--demo-admins', 'a, b', '--demo-admins', 'c')).toEqual({
      '--demo-admins': ['a', 'b', 'c'],
    });
  });

  it('refuse what the kind refuses', () => {
    expect(() => given('--demo-namespace', 'no')).toThrow('no is no namespace.');
  });

  it.each([
    ['run', runCommand],
    ['synth', synthCommand],
    ['diff', diffCommand],
  ])('are in the help of %s', (_, command) => {
    expect(command(FLAGS).helpInformation()).toContain('--demo-namespace <namespace>');
  });

  it('are those that the kinds that come with the project declare, and no others', () => {
    expect(builtInFlags).toEqual(builtInKinds.flatMap(({ flags = [] }) => flags));
  });

  it('of the kinds that come with the project are in the reference', () => {
    const reference = readFileSync(join(repoFolder(), 'docs/reference/cli.md'), 'utf8');
    const [, options = ''] = reference.split('## Options of kinds\n');
    const listed = [...options.split('\n## ')[0]!.matchAll(/^\| `(--[\w-]+) /gm)].map(([, name]) => name);
    expect(listed).toEqual(builtInFlags.map(({ name }) => name));
  });

  it('of the kinds that come with the project get in nobody else’s way', () => {
    const names = builtInFlags.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const command of [runCommand([]), synthCommand([]), diffCommand([])])
      for (const { long } of command.options) expect(names).not.toContain(long);
  });
});
