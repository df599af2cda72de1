import { withPaths } from './model.js';
import type { CompletedCommand, CompletedOption, Value } from './model.js';

/** Bash 3.2, which macOS has, is enough; nothing else need be installed. */
export function bashCompletion(program: CompletedCommand): string {
  const commands = withPaths(program);
  const key = (path: readonly string[]): string => path.join(' ');
  const options = commands.flatMap(({ path, command }) =>
    command.options.map((option) => ({ path: key(path), option })),
  );
  const name = `_${program.name}`;
  return `# Completion of ${program.name} for bash.
${name}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path='' word i IFS=$'\\n'
  COMPREPLY=()
  # Bash takes --flag=value for three words.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$path|$word" in
${pattern(options.filter(({ option }) => option.value).flatMap(({ path, option }) => option.names.map((each) => `${path}|${each}`)))}
        [[ \${COMP_WORDS[i+1]} == '=' ]] && ((i++))
        ((i++)) ;;
${commands
  .slice(1)
  .map(
    ({ path }) =>
      `      ${quoted(`${key(path.slice(0, -1))}|${path.at(-1) ?? ''}`)}) path=${quoted(key(path))} ;;`,
  )
  .join('\n')}
    esac
  done
  case "$path|$prev" in
${options.map(({ path, option }) => valueCase(path, option)).join('')}  esac
  case "$path|$cur" in
${commands.map(({ path, command }) => wordCases(key(path), command)).join('')}  esac
}
complete -F ${name} ${program.name}
`;
}

function valueCase(path: string, { names, value }: CompletedOption): string {
  if (!value) return '';
  const given = names.map((each) => `${path}|${each}`);
  return `${pattern(given, '    ')} ${answer(value)}return ;;\n`;
}

function wordCases(path: string, { options, commands, argument }: CompletedCommand): string {
  const flags = options.flatMap(({ names }) => names);
  const names = commands.map(({ name }) => name);
  const words = names.length > 0 ? answer({ kind: 'choice', choices: names }) : '';
  return (
    `    ${quoted(`${path}|-`)}*) ${answer({ kind: 'choice', choices: flags })};;\n` +
    `    ${quoted(`${path}|`)}*) ${words}${argument && !words ? answer(argument) : ''};;\n`
  );
}

function answer(value: Value): string {
  switch (value.kind) {
    case 'choice':
      return `COMPREPLY=($(compgen -W ${quotedLines(value.choices)} -- "$cur")); `;
    case 'file':
      return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); `;
    case 'folder':
      return `compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")); `;
    case 'text':
      return '';
  }
}

function pattern(words: readonly string[], indent = '      '): string {
  return `${indent}${words.map(quoted).join('|')})`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function quotedLines(words: readonly string[]): string {
  return `$'${words.join('\\n')}'`;
}
