import type { Argument, Command, Option } from 'commander';

/** What may stand where a value is expected: one of a few words, a path, or anything. */
export type Value =
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'file' | 'folder' | 'text' };

export interface CompletedOption {
  /** With its dashes, e.g. `--namespace` and `-n`. */
  readonly names: readonly string[];
  readonly description: string;
  /** @default - it takes none */
  readonly value?: Value;
}

/** What can be completed after a command. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** What stands after the options. @default - nothing */
  readonly argument?: Value;
  readonly commands: readonly CompletedCommand[];
}

/** What a command has to offer, help included; what is hidden is left out. */
export function completedCommand(command: Command): CompletedCommand {
  const help = command.createHelp();
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.summary() || command.description(),
    options: help.visibleOptions(command).map(completedOption),
    ...(argument && { argument: valueOf(argument.name(), argument) }),
    commands: help.visibleCommands(command).map(completedCommand),
  };
}

/** A command and all below it, each with the words that lead to it. */
export function withPaths(
  command: CompletedCommand,
  path: readonly string[] = [],
): { readonly path: readonly string[]; readonly command: CompletedCommand }[] {
  const below = command.commands.flatMap((each) => withPaths(each, [...path, each.name]));
  return [{ path, command }, ...below];
}

function completedOption(option: Option): CompletedOption {
  const placeholder = /[<[]([^<>[\]]+)[>\]]/.exec(option.flags)?.[1];
  return {
    names: [option.long, option.short].filter((name) => name !== undefined),
    description: option.description,
    ...(placeholder !== undefined && { value: valueOf(placeholder, option) }),
  };
}

function valueOf(placeholder: string, { argChoices }: Option | Argument): Value {
  if (argChoices) return { kind: 'choice', choices: argChoices };
  const name = placeholder.replace(/\.\.\.$/, '');
  if (/^(file|source)s?$/.test(name)) return { kind: 'file' };
  return { kind: /^(dir|directory|folder)$/.test(name) ? 'folder' : 'text' };
}
