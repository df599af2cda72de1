import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';

/** A command that a page tells its readers to type. */
export interface DocumentedCommand {
  /** Without its comment. */
  readonly text: string;
  /** What the comment says of it, as in `# exit code 2`. @default 0 */
  readonly exitCode: number;
}

/** The commands in a page's blocks of `sh` and `console`, in their order. */
export function commandsOf(page: string): DocumentedCommand[] {
  return commandsIn(readFileSync(join(repoFolder(), page), 'utf8'));
}

/** Where a block has lines that begin with `$`, the others show what these print. */
export function commandsIn(text: string): DocumentedCommand[] {
  return [...text.matchAll(/^```(?:sh|console)\n(.*?)^```$/gms)]
    .flatMap(([, block]) => typedIn(block!.split('\n')))
    .map((line) => {
      const [, command, comment] = /^(.*?)(?:\s+#(.*))?$/.exec(line)!;
      return { text: command!.trim(), exitCode: Number(/exit code (\d)/.exec(comment ?? '')?.[1] ?? 0) };
    })
    .filter(({ text }) => text !== '');
}

function typedIn(lines: readonly string[]): readonly string[] {
  const prompted = lines.filter((line) => line.startsWith('$ '));
  return prompted.length > 0 ? prompted.map((line) => line.slice(2)) : lines;
}

/** The files that a page shows: blocks whose first line is a comment with the name alone. */
export function filesIn(text: string): Map<string, string> {
  const blocks = text.matchAll(/^```(?:ts|js|yaml)\n((?:\/\/|#) ([\w.-]+\.\w+)\n.*?)^```$/gms);
  return new Map([...blocks].map(([, content, name]) => [name!, content!]));
}

/** The pages for whoever watches over an operator: what they look at depends on what is wrong. */
export function operatingPages(): string[] {
  return globSync(['docs/troubleshooting.md', 'docs/monitoring/*.md', 'docs/runbooks/*.md'], {
    cwd: repoFolder(),
  })
    .filter((page) => commandsOf(page).length > 0)
    .sort();
}
