import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where Node says at the top of a stack that a text can't be read: `file:///work/kind.ts:3` or `/work/kind.ts:3`. */
const TOP = /^(file:\/\/)?(\/.+):(\d+)$/m;
/** A frame of a stack. */
const FRAME = /^at (?:.*\(|async )?((?:file:\/\/)?\/[^()\n]+?):(\d+):\d+\)?$/;

/**
 * Where in a project an error comes from, as `src/kind.ts:3`: of a text that can't be read, its line; of what was thrown, the
 * innermost line that is the author's.
 * @param stack of the error, or what Node prints of it when nobody catches it
 * @param root the folder of the project, without links in its path
 * @param from the folder from which the file is named
 * @returns undefined where nothing of it leads there
 */
export function placeOf(stack: string, root: string, from = root): string | undefined {
  const [first = ''] = stack.split('\n');
  const top = TOP.exec(first);
  if (top && isOwn(top[2] ?? '', root)) return shown(top[2] ?? '', top[3] ?? '', from);
  for (const line of stack.split('\n')) {
    const frame = FRAME.exec(line.trim());
    if (!frame) continue;
    const path = pathOf(frame[1] ?? '');
    if (isOwn(path, root)) return shown(path, frame[2] ?? '', from);
  }
  return undefined;
}

function pathOf(place: string): string {
  return place.startsWith('file://') ? fileURLToPath(place) : place;
}

function isOwn(path: string, root: string): boolean {
  return path.startsWith(root + sep) && !path.slice(root.length).includes(`${sep}node_modules${sep}`);
}

function shown(path: string, line: string, from: string): string {
  return `${relative(from, path)}:${line}`;
}
