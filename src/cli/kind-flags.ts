import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { list } from './options.js';

/** Makes a command take the flags of kinds. */
export function addKindFlags(command: Command, flags: readonly KindFlag[]): Command {
  for (const flag of flags) command.addOption(optionOf(flag));
  return command;
}

/** What was given of them, by their names. */
export function kindFlagValues(flags: readonly KindFlag[], options: object): FlagValues {
  const given = options as Readonly<Record<string, FlagValues[string] | undefined>>;
  return Object.fromEntries(
    flags.flatMap((flag) => {
      const value = given[optionOf(flag).attributeName()];
      return value === undefined ? [] : [[flag.name, value]];
    }),
  );
}

function optionOf({ name, value, description, list: isList, check }: KindFlag): Option {
  const checked = (text: string): string => {
    const why = check?.(text);
    if (why !== undefined) throw new InvalidArgumentError(why);
    return text;
  };
  const option = new Option(`${name} <${value}>`, description);
  return isList
    ? option.argParser((text, previous: readonly string[] | undefined) => list(text, previous).map(checked))
    : option.argParser(checked);
}
