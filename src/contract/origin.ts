import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, OperatorError } from './error.js';

/** Folder of this project's own code, compiled or not. */
const OWN = fileURLToPath(new URL('..', import.meta.url));

/**
 * Returns the place in an author's code that an error comes from: `kind.mjs:12:5`, relative to the working directory where it is
 * below. Packages and Node are passed over, and callers of this project are not to blame for what it throws.
 * @param own where this project's code is, which may be in a package too
 * @returns nothing where there is no such place
 */
export function originOf(error: unknown, own = OWN): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const places = (at.stack ?? '').split('\n').flatMap((line) => placeOf(line) ?? []);
    const first = places.find(
      ({ file }) => file.startsWith(own) || !file.split(sep).includes('node_modules'),
    );
    if (first && !first.file.startsWith(own)) return shown(first);
  }
  return undefined;
}

/** Returns the message of anything that was thrown, with its place in the author's code. */
export function describeThrown(error: unknown): string {
  const message = messageOf(error);
  const isDefinition = error instanceof OperatorError && error.reason === 'InvalidDefinition';
  const origin = isDefinition ? callerOf(error) : originOf(error);
  return origin === undefined ? message : `${message} (at ${origin})`;
}

/** Returns the place in the author's code that led here. */
function callerOf(error: Error): string | undefined {
  const places = (error.stack ?? '').split('\n').flatMap((line) => placeOf(line) ?? []);
  const first = places.find(({ file }) => !file.startsWith(OWN) && !file.split(sep).includes('node_modules'));
  return first && shown(first);
}

interface Place {
  readonly file: string;
  readonly lineAndColumn: string;
}

/** Reads `    at Widget (file:///kinds/kind.mjs:12:5)`, and the same without a name or a scheme. */
function placeOf(line: string): Place | undefined {
  const [, where = '', lineAndColumn = ''] =
    /^\s+at (?:.*\()?(?:async )?([^(]+?):(\d+:\d+)\)?$/.exec(line) ?? [];
  if (where.startsWith('file:')) return { file: pathOf(where), lineAndColumn };
  return where.startsWith(sep) ? { file: where, lineAndColumn } : undefined;
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(new URL(url));
  } catch {
    return '';
  }
}

function shown({ file, lineAndColumn }: Place): string {
  const below = relative(process.cwd(), file);
  return `${below.startsWith('..') ? file : below}:${lineAndColumn}`;
}
