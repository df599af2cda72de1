import { Argument } from 'commander';
import type { Command, Option } from 'commander';
import { print } from './output.js';

/** Each asks the command itself for the words that may follow; the shell completes paths, for `:file` and `:folder`. */
const SCRIPTS = {
  // Bash 3.2 of macOS suffices. Bash splits --flag=value into three words.
  bash: (name: string) => `_${name}() {
  local IFS=$'\\n' cur="\${COMP_WORDS[COMP_CWORD]}"
  local found=($(${name} complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
  [[ $cur == --* ]] || found=("\${found[@]#--*=}")
  [[ $cur == '=' ]] && cur=''
  case "\${found[0]}" in
    :file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    :folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
    *) COMPREPLY=("\${found[@]}") ;;
  esac
}
complete -F _${name} ${name}
`,
  zsh: (name: string) => `#compdef ${name}
_${name}() {
  local -a found=("\${(@f)$(${name} complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ $found[1] == :* && $words[CURRENT] == --*=* ]] && compset -P 1 '*='
  case $found[1] in
    :file) _files ;;
    :folder) _files -/ ;;
    ?*) found=("\${(@)found/$'\\t'/:}"); _describe ${name} found ;;
  esac
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`,
  fish: (name: string) => `function __${name}_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l flag (string match -r -- '^--[^=]+=' "$word")
  set -l path (string replace -- "$flag" '' "$word")
  set -l found (${name} complete -- $words[2..-1] "$word" 2>/dev/null)
  switch "$found[1]"
    case :file
      printf "$flag%s\\n" (__fish_complete_path "$path")
    case :folder
      printf "$flag%s\\n" (__fish_complete_directories "$path")
    case '*'
      printf '%s\\n' $found
  end
end
complete -c ${name} -f -a '(__${name}_complete)'
`,
};

/** `reconstruct completion`: prints a script for a shell. */
export async function printScript(
  shell: keyof typeof SCRIPTS,
  _: object,
  { parent }: Command,
): Promise<void> {
  await print(SCRIPTS[shell](parent?.name() ?? ''));
}

/** `reconstruct complete`: prints the words that may complete a command line. */
export async function printCompletions(
  words: readonly string[],
  _: object,
  { parent }: Command,
): Promise<void> {
  if (parent)
    await print(
      completions(parent, words)
        .map((line) => `${line}\n`)
        .join(''),
    );
}

/**
 * Returns the completions of the last word, each with a tab and its description where it has one; or `:file` or `:folder`.
 *
 * @param words of the command line, without the program; `--flag=value` may be three
 */
function completions(program: Command, words: readonly string[]): string[] {
  const joined = words
    .join('\n')
    .replaceAll(/^(--[^\n=]+)\n=(?:\n|$)/gm, '$1=')
    .split('\n');
  const last = joined.pop() ?? '';
  let command = program;
  let open: Option | undefined;
  const named = (name = ''): Option | undefined =>
    command.options.find(({ long, short }) => name === long || name === short);
  for (const word of joined) {
    const option = open ? undefined : named(word);
    if (!open && !option) command = command.commands.find((each) => each.name() === word) ?? command;
    open = option?.required || option?.optional ? option : undefined;
  }
  if (open) return valuesOf(open, last);
  const [, flag, value] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
  const given = named(flag);
  if (given && value !== undefined)
    return valuesOf(given, value).map((each) => (each.startsWith(':') ? each : `${flag ?? ''}=${each}`));
  const help = command.createHelp();
  const described = last.startsWith('-')
    ? help.visibleOptions(command).map(({ long, short, description }) => [long ?? short ?? '', description])
    : help.visibleCommands(command).map((each) => [each.name(), each.summary() || each.description()]);
  const [argument] = command.registeredArguments;
  if (described.length === 0 && !last.startsWith('-') && argument) return valuesOf(argument, last);
  return described.filter(([name = '']) => name.startsWith(last)).map((parts) => parts.join('\t'));
}

/** @param word the beginning of the value */
function valuesOf(of: Option | Argument, word: string): string[] {
  if (of.argChoices) return of.argChoices.filter((choice) => choice.startsWith(word));
  const name =
    of instanceof Argument ? of.name() : (/[<[]([^<>[\]]+?)(?:\.\.\.)?[>\]]/.exec(of.flags)?.[1] ?? '');
  if (/^(file|source)s?$/.test(name)) return [':file'];
  return /^(dir|directory|folder)$/.test(name) ? [':folder'] : [];
}
