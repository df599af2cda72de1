import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Kind, Policy, FlagValues } from '../../../src/contract/kind.js';
import { installedRules } from '../../../src/install/rules.js';
import type { RightsProps } from '../../../src/install/rules.js';
import type { PolicyRule } from '../../../src/install/rules.js';

export interface Installation {
  readonly kinds: readonly Kind[];
  /** Where the operator is at home, and its lease. */
  readonly namespace: string;
  /** @default - all */
  readonly watchNamespaces?: readonly string[];
  /** Of `reconstruct run`. */
  readonly args: readonly string[];
}

/** The rights that `reconstruct install` gives an operator of these kinds that is run with these arguments. */
export function installedRights({ kinds, args, ...places }: Installation): PolicyRule[] {
  const file = valueOf(args, '--policy');
  const text = file === undefined ? undefined : readFileSync(file, 'utf8');
  const surroundings: RightsProps = {
    ...places,
    flags: flagsIn(kinds, args),
    ...(text !== undefined && { policy: { text, parsed: parse(text) as Policy } }),
  };
  return installedRules(kinds, surroundings);
}

function flagsIn(kinds: readonly Kind[], args: readonly string[]): FlagValues {
  const names = kinds.flatMap(({ flags = [] }) => flags.map(({ name }) => name));
  const given = names.map((name) => [name, valueOf(args, name)] as const);
  return Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** Of `--name value` or `--name=value`. */
function valueOf(args: readonly string[], name: string): string | undefined {
  const index = args.indexOf(name);
  if (index >= 0) return args[index + 1];
  return args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
}
