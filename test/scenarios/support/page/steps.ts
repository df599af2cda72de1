/** What a page has its reader do, in its order. */
export type Step =
  | {
      readonly do: 'command';
      readonly text: string;
      readonly exitCode: number;
      readonly shown: readonly string[];
    }
  /** A change of a file, as hunks of a diff. */
  | { readonly do: 'edit'; readonly file: string; readonly hunks: readonly Hunk[] }
  /** A file as it is then. */
  | { readonly do: 'compare'; readonly file: string; readonly text: string }
  /** Lines that the program prints which was started last and goes on. */
  | { readonly do: 'await'; readonly lines: readonly string[] }
  /** Ctrl-C in the terminal of the program that was started last. */
  | { readonly do: 'interrupt' };

/** Lines that stand together in a file, and what is to stand there instead. */
export interface Hunk {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Those that the reader writes. */
  readonly added: readonly string[];
}

/**
 * The steps of a page. Blocks of `sh` are commands, a line each, and a comment may name an exit code other than 0; in blocks of
 * `console` what isn't prompted with `$` is what the command before it prints, with `...` for what is left out. Blocks of `diff`
 * name a file in `@@ file @@`; blocks of `ts`, `js`, `yaml` and `json` name it in a comment in the first line, and show it as it is. Blocks of
 * `text` show what a program prints that goes on, and `**Ctrl-C**` ends it.
 * @throws Error on a block that is none of these
 */
export function stepsOf(page: string): Step[] {
  const parts = page.matchAll(/^```(\w*)\n(.*?)^```$|\*\*Ctrl-C\*\*/gms);
  return [...parts].flatMap(([, language, block]) => {
    if (language === undefined || block === undefined) return [{ do: 'interrupt' } as const];
    return stepsOfBlock(language, block.trimEnd().split('\n'));
  });
}

function stepsOfBlock(language: string, lines: readonly string[]): Step[] {
  switch (language) {
    case 'sh':
      return lines.map((line) => command(line, []));
    case 'console':
      return prompted(lines);
    case 'diff':
      return edits(lines);
    case 'text':
      return [{ do: 'await', lines }];
    case 'ts':
    case 'js':
    case 'yaml':
    case 'json':
      return [shownFile(lines)];
    default:
      throw new Error(
        `A block of ${language || 'no language'} says nothing that could be tried:\n${lines.join('\n')}`,
      );
  }
}

function command(line: string, shown: readonly string[]): Step {
  const [, text, comment] = /^(.*?)(?:\s+#\s(.*))?$/.exec(line)!;
  return {
    do: 'command',
    text: text!,
    exitCode: Number(/exit code (\d)/.exec(comment ?? '')?.[1] ?? 0),
    shown,
  };
}

function prompted(lines: readonly string[]): Step[] {
  const starts = lines.flatMap((line, index) => (line.startsWith('$ ') ? [index] : []));
  if (starts[0] !== 0) throw new Error(`Nobody has asked for this:\n${lines.join('\n')}`);
  return starts.map((start, index) =>
    command(lines[start]!.slice(2), lines.slice(start + 1, starts[index + 1])),
  );
}

function edits(lines: readonly string[]): Step[] {
  const found: { file: string; hunks: string[][] }[] = [];
  for (const line of lines) {
    const header = /^@@(?: (\S+) @@)?$/.exec(line);
    if (header?.[1] !== undefined) found.push({ file: header[1], hunks: [[]] });
    else if (header) found.at(-1)?.hunks.push([]);
    else if (!/^[ +-]|^$/.test(line) || found.length === 0) throw new Error(`Not a line of a diff: ${line}`);
    else found.at(-1)!.hunks.at(-1)!.push(line);
  }
  return found.map(({ file, hunks }) => ({ do: 'edit', file, hunks: hunks.map(hunkOf) }));
}

function hunkOf(lines: readonly string[]): Hunk {
  const marked = (marks: string): string[] =>
    lines.filter((line) => marks.includes(line[0] ?? ' ')).map((line) => line.slice(1));
  return {
    before: marked(' -'),
    after: marked(' +'),
    added: marked('+').filter((line) => line.trim() !== ''),
  };
}

function shownFile([first = '', ...rest]: readonly string[]): Step {
  const file = /^(?:\/\/|#) (\S+)$/.exec(first)?.[1];
  if (file === undefined) throw new Error(`The first line doesn't name the file: ${first}`);
  return { do: 'compare', file, text: `${rest.join('\n')}\n` };
}
