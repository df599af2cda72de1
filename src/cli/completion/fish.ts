import { withPaths } from './model.js';
import type { CompletedCommand, CompletedOption, Value } from './model.js';

/** To be sourced, or put into ~/.config/fish/completions. */
export function fishCompletion(program: CompletedCommand): string {
  const lines = withPaths(program).flatMap(({ path, command }) => {
    const names = command.commands.map(({ name }) => name);
    const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
    const none = names.length > 0 ? [`not __fish_seen_subcommand_from ${names.join(' ')}`] : [];
    const start = (conditions: readonly string[]): string =>
      `complete -c ${program.name}${conditions.length > 0 ? ` -n ${quoted(conditions.join('; and '))}` : ''}`;
    return [
      ...command.commands.map(
        ({ name, description }) => `${start([...seen, ...none])} -a ${name} -d ${quoted(description)}`,
      ),
      ...(command.argument ? [`${start(seen)} ${values(command.argument)}`] : []),
      ...command.options.map((option) => `${start([...seen, ...none])} ${optionWords(option)}`),
    ];
  });
  return `# Completion of ${program.name} for fish.\ncomplete -c ${program.name} -f\n${lines.join('\n')}\n`;
}

function optionWords({ names, description, value }: CompletedOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  return [...flags, ...(value ? ['-r', values(value)] : []), '-d', quoted(description)].join(' ');
}

function values(value: Value): string {
  switch (value.kind) {
    case 'choice':
      return `-f -a ${quoted(value.choices.join(' '))}`;
    case 'file':
      return '-F';
    case 'folder':
      return `-f -a '(__fish_complete_directories)'`;
    case 'text':
      return '-f';
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `\\'`)}'`;
}
