import { setTimeout as delay } from 'node:timers/promises';
import { Argument } from 'commander';
import type { Command, Option } from 'commander';
import type { Kind } from '../contract/kind.js';
import type { ResourceType } from '../contract/resource.js';
import { print } from './output.js';

/**
 * Each asks the command itself for the words that may follow: that of the project after `npx`, which would take longer. The
 * shell completes paths, for `:file` and `:folder`.
 */
const SCRIPTS = {
  // Bash 3.2 of macOS suffices. Bash splits --flag=value into three words.
  bash: (name: string, all: readonly string[]) => `_${name}() {
  local IFS=$'\\n' cur="\${COMP_WORDS[COMP_CWORD]}" program="$1" at=1 word
  if [[ $1 == npx ]]; then
    [[ $COMP_CWORD -gt 1 && "\${COMP_WORDS[1]}" =~ ^(${all.join('|')})$ ]] || { COMPREPLY=($(compgen -f -- "$cur")); return; }
    local folder=$PWD; at=2
    while [[ -n $folder && ! -x $folder/node_modules/.bin/${name} ]]; do folder=\${folder%/*}; done
    program=$folder/node_modules/.bin/${name}
  fi
  local found=($("$program" complete -- "\${COMP_WORDS[@]:at:COMP_CWORD+1-at}" 2>/dev/null | cut -f1))
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
complete -F _${name} ${all.join(' ')} npx
`,
  zsh: (name: string, all: readonly string[]) => `#compdef ${all.join(' ')} npx
_${name}() {
  local program=$words[1] at=2
  if [[ $program == npx ]]; then
    [[ $CURRENT -gt 2 && $words[2] == (${all.join('|')}) ]] || { _files; return }
    local folder=$PWD; at=3
    while [[ -n $folder && ! -x $folder/node_modules/.bin/${name} ]]; do folder=\${folder%/*}; done
    program=$folder/node_modules/.bin/${name}
  fi
  local -a found=("\${(@f)$("$program" complete -- "\${(@)words[at,CURRENT]}" 2>/dev/null)}")
  [[ $found[1] == :* && $words[CURRENT] == --*=* ]] && compset -P 1 '*='
  (( $found[(I):file] )) && _files
  (( $found[(I):folder] )) && _files -/
  found=("\${(@)found:#:*}")
  [[ -z $found[1] ]] || { found=("\${(@)found//:/\\:}"); found=("\${(@)found/$'\\t'/:}"); _describe ${name} found; }
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${all.join(' ')} npx; fi
`,
  fish: (name: string, all: readonly string[]) => `function __${name}_complete
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  if test "$program" = npx
    contains -- "$words[1]" ${all.join(' ')}; or return
    set -e words[1]
    set -l folder $PWD
    while test -n "$folder"; and not test -x "$folder/node_modules/.bin/${name}"
      set folder (string replace -r '/[^/]*$' '' -- $folder)
    end
    set program "$folder/node_modules/.bin/${name}"
  end
  set -l word (commandline -ct)
  set -l flag (string match -r -- '^--[^=]+=' "$word")
  set -l path (string replace -- "$flag" '' "$word")
  for found in ($program complete -- $words "$word" 2>/dev/null)
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
for command in ${all.join(' ')}
  complete -c $command -f -a '(__${name}_complete)'
end
complete -c npx -n '__fish_seen_subcommand_from ${all.join(' ')}' -f -a '(__${name}_complete)'
`,
};

/** `reconstruct completion`: prints a script for a shell. */
export async function printScript(shell: keyof typeof SCRIPTS): Promise<void> {
  await print(SCRIPTS[shell]('reconstruct', ['reconstruct', 'cdk8s-reconstruct']));
}

/** A user who waits longer types on. */
const LONGEST_MILLISECONDS = 2_000;

/** `reconstruct complete`: prints the words that may complete a command line, and nothing where they can't be found out. */
export async function printCompletions(
  words: readonly string[],
  _: object,
  { parent }: Command,
): Promise<void> {
  if (!parent) return;
  const found = completions(parent, words).catch((): string[] => []);
  const lines = await Promise.race([found, delay(LONGEST_MILLISECONDS, [], { ref: false })]);
  await print(lines.map((line) => `${line}\n`).join(''));
  // What is still asked for, such as a plugin that waits for a login, has no use any more.
  process.exit(0);
}

/** The command, arguments and options that are typed so far. */
interface CommandLine {
  readonly command: Command;
  /** Arguments that are complete. */
  readonly args: readonly string[];
  /** Values of options, by attribute. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * Returns the completions of the last word, each with a tab and its description where it has one; or `:file` or `:folder`.
 *
 * @param words of the command line, without the program; `--flag=value` may be three
 */
async function completions(program: Command, words: readonly string[]): Promise<string[]> {
  const joined = words
    .join('\n')
    .replaceAll(/^(--[^\n=]+)\n=(?:\n|$)/gm, '$1=')
    .split('\n');
  const last = joined.pop() ?? '';
  let command = program;
  let open: Option | undefined;
  const args: string[] = [];
  const options: Record<string, string> = {};
  const named = (name = ''): Option | undefined =>
    command.options.find(({ long, short }) => name === long || name === short);
  for (const word of joined) {
    const [, flag, value] = FLAG.exec(word) ?? [];
    const option = open ?? named(flag ?? word);
    const takesValue = option?.required || option?.optional;
    const set = open ? word : takesValue ? value : '';
    if (option && set !== undefined) options[option.attributeName()] = set;
    if (!option && !word.startsWith('-')) {
      const next = args.length === 0 ? command.commands.find((each) => each.name() === word) : undefined;
      if (next) command = next;
      else args.push(word);
    }
    open = !open && takesValue && value === undefined ? option : undefined;
  }
  const line: CommandLine = { command, args, options };
  if (open) return valuesOf(open, last, line);
  const [, flag, value] = FLAG.exec(last) ?? [];
  const given = named(flag);
  if (given && value !== undefined)
    return (await valuesOf(given, value, line)).map((each) =>
      each.startsWith(':') ? each : `${flag ?? ''}=${each}`,
    );
  const help = command.createHelp();
  const described = last.startsWith('-')
    ? help.visibleOptions(command).map(({ long, short, description }) => [long ?? short ?? '', description])
    : help.visibleCommands(command).map((each) => [each.name(), each.summary() || each.description()]);
  const [argument] = command.registeredArguments;
  if (described.length === 0 && !last.startsWith('-') && argument) return valuesOf(argument, last, line);
  return described.filter(([name = '']) => name.startsWith(last)).map((parts) => parts.join('\t'));
}

const FLAG = /^(--[^=]+)=(.*)$/s;

/** @param word the beginning of the value */
async function valuesOf(of: Option | Argument, word: string, line: CommandLine): Promise<string[]> {
  if (of.argChoices) return of.argChoices.filter((choice) => choice.startsWith(word));
  const name =
    of instanceof Argument ? of.name() : (/[<[]([^<>[\]]+?)(?:\.\.\.)?[>\]]/.exec(of.flags)?.[1] ?? '');
  const paths = /^(?:file|source)s?$/.test(name) ? [':file'] : [];
  const folders = /^(?:dir|directory|folder)$/.test(name) ? [':folder'] : [];
  return [...(await namesFor(of, word, line)), ...paths, ...folders];
}

/** Returns names of the configuration, the kubeconfig or the cluster. */
async function namesFor(of: Option | Argument, word: string, line: CommandLine): Promise<string[]> {
  if (of instanceof Argument)
    return line.command.options.some(({ long }) => long === '--selector') ? targets(word, line) : [];
  const attribute = of.attributeName();
  // Of a list, the last one.
  const before =
    of.flags.includes(',') || /s>$/.test(of.flags) ? word.slice(0, word.lastIndexOf(',') + 1) : '';
  const starting = (names: readonly string[]): string[] =>
    names.map((name) => before + name).filter((name) => name.startsWith(word));
  if (attribute === 'context')
    return starting((await import('../client/kubeconfig.js')).contextsOf(line.options));
  if (attribute === 'kinds') return starting((await kindsOf(line)).map(({ name }) => name));
  return /namespaces?$/i.test(attribute)
    ? starting(await listed((await import('../install/objects.js')).namespaceType, line))
    : [];
}

/** Kinds, and after a kind the names of its custom resources. */
async function targets(word: string, line: CommandLine): Promise<string[]> {
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
  const { config, kinds } = options;
  return (await import('./config.js')).loadKinds({ config, kinds: kinds?.split(','), locate: false });
}

/** Returns the names of live objects; of all namespaces, each once. */
async function listed(type: ResourceType, line: CommandLine): Promise<string[]> {
  const [{ withCluster }, { Api }] = await Promise.all([import('./cluster.js'), import('../client/api.js')]);
  const { namespace, allNamespaces, kubeconfig, context, as } = line.options;
  const options = {
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(context !== undefined && { context }),
    ...(as !== undefined && { as }),
  };
  let names: string[] = [];
  await withCluster(options, async (_, { transport, namespace: own }) => {
    const where = type.namespaced && allNamespaces === undefined ? (namespace ?? own) : undefined;
    const scope = { type, metadataOnly: true, ...(where !== undefined && { namespace: where }) };
    names = (await new Api(transport).listAll(scope)).map(({ metadata }) => metadata.name);
  });
  return [...new Set(names)];
}
