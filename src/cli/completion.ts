import { setTimeout as delay } from 'node:timers/promises';
import { Argument } from 'commander';
import type { Command, Option } from 'commander';
import type { Kind } from '../contract/kind.js';
import type { ResourceType } from '../contract/resource.js';
import type { SharedOptions } from './options.js';
import { print } from './output.js';

/**
 * Scripts of the shells. Each asks the command itself for the words that may follow; the shell completes paths, for `:file` and
 * `:folder`.
 */
const SCRIPTS = {
  // Bash splits --flag=value into three words. The version 3.2 of macOS is enough.
  bash: (name: string, all: string) => `_${name}() {
  local IFS=$'\n' cur="\${COMP_WORDS[COMP_CWORD]}" word
  local found=($("$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
  [[ $cur == --* ]] || found=("\${found[@]#--*=}")
  [[ $cur == '=' ]] && cur=''
  COMPREPLY=()
  for word in "\${found[@]}"; do
    case $word in
      :file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur")) ;;
      :folder) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$cur")) ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done
}
complete -F _${name} ${all}
`,
  zsh: (name: string, all: string) => `#compdef ${all}
_${name}() {
  local -a found=("\${(@f)$("$words[1]" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ $found[1] == :* && $words[CURRENT] == --*=* ]] && compset -P 1 '*='
  (( $found[(I):file] )) && _files
  (( $found[(I):folder] )) && _files -/
  found=("\${(@)found:#:*}")
  [[ -z $found[1] ]] || { found=("\${(@)found//:/\\:}"); found=("\${(@)found/$'\\t'/:}"); _describe ${name} found; }
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${all}; fi
`,
  fish: (name: string, all: string) => `function __${name}_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l flag (string match -r -- '^--[^=]+=' "$word")
  set -l path (string replace -- "$flag" '' "$word")
  for found in ($words[1] complete -- $words[2..] "$word" 2>/dev/null)
    switch "$found"
      case :file
        printf "$flag%s\\n" (__fish_complete_path "$path")
      case :folder
        printf "$flag%s\\n" (__fish_complete_directories "$path")
      case '*'
        printf '%s\\n' $found
    end
  end
end
for command in ${all}
  complete -c $command -f -a '(__${name}_complete)'
end
`,
};

/** `reconstruct completion`: prints a script for a shell. */
export async function printScript(shell: keyof typeof SCRIPTS): Promise<void> {
  await print(SCRIPTS[shell]('reconstruct', 'reconstruct cdk8s-reconstruct'));
}

/** Maximum time for an answer. */
const MAX_MILLISECONDS = 2_000;

/** `reconstruct complete`: prints the words that may complete a command line; nothing where they can't be found out. */
export async function printCompletions(
  words: readonly string[],
  _: object,
  { parent }: Command,
): Promise<void> {
  if (!parent) return;
  const found = completions(parent, words).catch((): string[] => []);
  const lines = await Promise.race([found, delay(MAX_MILLISECONDS, [], { ref: false })]);
  await print(lines.map((line) => `${line}\n`).join(''));
  // Requests that are still open, such as a plugin that waits for a login, are abandoned.
  process.exit(0);
}

/** Command line before the word that is completed. */
interface CommandLine {
  readonly command: Command;
  readonly args: readonly string[];
  readonly options: SharedOptions & { readonly allNamespaces?: boolean };
}

function optionOf({ options }: Command, name = ''): Option | undefined {
  return options.find(({ long, short }) => name === long || name === short);
}

/**
 * Returns the completions of the last word, each with a tab and its description where it has one; or `:file` or `:folder`.
 *
 * @param words of the command line, without the program; `--flag=value` may be three
 */
async function completions(program: Command, words: readonly string[]): Promise<string[]> {
  const text = words.join('\n').replaceAll(/^(--[^\n=]+)\n=(?:\n|$)/gm, '$1=');
  const [last = '', ...before] = text.split('\n').reverse();
  const [name, ...given] = before.reverse();
  const command = program.commands.find((each) => each.name() === name) ?? program;
  const option = optionOf(command, given.at(-1));
  const open = option?.required || option?.optional ? option : undefined;
  const { operands: args } = command.parseOptions(open ? given.slice(0, -1) : given);
  const line = { command, args, options: command.opts<CommandLine['options']>() };
  if (open) return valuesOf(open, last, line);
  const [, flag = '', value] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
  const named = optionOf(command, flag);
  if (named && value !== undefined)
    return (await valuesOf(named, value, line)).map((each) =>
      each.startsWith(':') ? each : `${flag}=${each}`,
    );
  const help = command.createHelp();
  const described = last.startsWith('-')
    ? help.visibleOptions(command).map(({ long, short, description }) => [long ?? short ?? '', description])
    : help.visibleCommands(command).map((each) => [each.name(), each.summary() || each.description()]);
  const [argument] = command.registeredArguments;
  if (described.length === 0 && !last.startsWith('-') && argument) return valuesOf(argument, last, line);
  return described.filter(([word = '']) => word.startsWith(last)).map((parts) => parts.join('\t'));
}

/** @param word the beginning of the value */
async function valuesOf(of: Option | Argument, word: string, line: CommandLine): Promise<string[]> {
  if (of.argChoices) return of.argChoices.filter((choice) => choice.startsWith(word));
  const name = of instanceof Argument ? of.name() : (/[<[](\w+)/.exec(of.flags)?.[1] ?? '');
  const names = of instanceof Argument ? await targets(word, line) : await namesFor(of, word, line);
  if (/^(?:file|source)$/.test(name)) return [...names, ':file'];
  return /^(?:dir|folder)$/.test(name) ? [...names, ':folder'] : names;
}

/** Returns names of the configuration, the kubeconfig or the cluster. */
async function namesFor(option: Option, word: string, line: CommandLine): Promise<string[]> {
  const attribute = option.attributeName();
  let names: readonly string[] = [];
  if (attribute === 'context') names = (await import('../client/kubeconfig.js')).contextsOf(line.options);
  else if (attribute === 'kinds') names = (await kindsOf(line)).map((kind) => kind.name);
  else if (/namespaces?$/i.test(attribute))
    names = await listed((await import('../install/objects.js')).namespaceType, line);
  // Of a list, the last one is completed.
  const before = /s>$/.test(option.flags) ? word.slice(0, word.lastIndexOf(',') + 1) : '';
  return names.map((name) => before + name).filter((name) => name.startsWith(word));
}

/** Kinds, and after a kind the names of its custom resources, for commands that take them. */
async function targets(word: string, line: CommandLine): Promise<string[]> {
  if (!optionOf(line.command, '--selector')) return [];
  const { namesKind, targetsOf } = await import('./targets.js');
  const all = await kindsOf(line);
  const [first = word] = line.args;
  const [start = '', name] = word.split('/');
  const isPair = name !== undefined && namesKind(start, all);
  if (line.args.length === 0 && !isPair)
    return all
      .filter((kind) => kind.name.startsWith(word))
      .map(({ name: kind, type }) => `${kind}\t${type.kind} of ${type.apiVersion}`);
  if (!isPair && (first.includes('/') || !namesKind(first, all))) return [];
  const [target] = targetsOf([isPair ? start : first], all);
  const names = target ? await listed(target.kind.type, line) : [];
  return names
    .map((each) => (isPair ? `${start}/${each}` : each))
    .filter((each) => each.startsWith(word) && !line.args.includes(each));
}

async function kindsOf({ options }: CommandLine): Promise<Kind[]> {
  return (await import('./config.js')).loadKinds(options);
}

/** Returns the names of live objects; of all namespaces, each once. */
async function listed(type: ResourceType, { options }: CommandLine): Promise<string[]> {
  const { withCluster } = await import('./cluster.js');
  let names: string[] = [];
  await withCluster(options, async (_, { api, namespace: own }) => {
    const namespace = type.namespaced && !options.allNamespaces ? own : undefined;
    names = (await api.listAll({ type, metadataOnly: true, namespace })).map(({ metadata }) => metadata.name);
  });
  return [...new Set(names)];
}
