import { withPaths } from './model.js';
import type { CompletedCommand, CompletedOption, Value } from './model.js';

/** To be sourced once `compinit` has run, or put into a folder of `fpath`. */
export function zshCompletion(program: CompletedCommand): string {
  const functions = withPaths(program).map(({ path, command }) =>
    zshFunction(functionName([program.name, ...path]), [program.name, ...path], command),
  );
  return `#compdef ${program.name}
# Completion of ${program.name} for zsh.
${functions.join('\n')}
if [[ $funcstack[1] == _${program.name} ]]; then _${program.name} "$@"; else compdef _${program.name} ${program.name}; fi
`;
}

function zshFunction(name: string, path: readonly string[], command: CompletedCommand): string {
  const { commands, argument } = command;
  const specs = command.options.map(optionSpec);
  if (commands.length === 0) {
    // An action for any text would keep options from being completed.
    const rest =
      argument && argument.kind !== 'text' ? [quoted(`*:${argument.kind}:${action(argument)}`)] : [];
    return `${name}() {
  _arguments ${[...specs, ...rest].join(' \\\n    ')}
}`;
  }
  return `${name}() {
  local state line
  _arguments -C ${[...specs, "'1:command:->command'", "'*::argument:->argument'"].join(' \\\n    ')}
  case $state in
    command)
      local -a commands=(${commands.map(({ name: each, description }) => quoted(`${each}:${description}`)).join(' ')})
      _describe command commands ;;
    argument)
      case $line[1] in
${commands.map(({ name: each }) => `        ${each}) ${functionName([...path, each])} ;;`).join('\n')}
      esac ;;
  esac
}`;
}

function optionSpec({ names, description, value }: CompletedOption): string {
  const text = description.replaceAll(/[[\]]/g, (bracket) => `\\${bracket}`);
  // With the value as the next word, or right behind.
  const flags = names.map((name) => (value ? `${name}${name.startsWith('--') ? '=' : '+'}` : name));
  const alternatives = flags.length > 1 ? `{${flags.join(',')}}` : (flags[0] ?? '');
  const rest = `[${text}]${value ? `:${value.kind}:${action(value)}` : ''}`;
  return `'*'${alternatives}${quoted(rest)}`;
}

function action(value: Value): string {
  switch (value.kind) {
    case 'choice':
      return `(${value.choices.join(' ')})`;
    case 'file':
      return '_files';
    case 'folder':
      return '_files -/';
    case 'text':
      return ' ';
  }
}

function functionName(path: readonly string[]): string {
  return `_${path.join('_')}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
