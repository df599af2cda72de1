import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Retry } from '../contract/error.js';
import { LAST_APPLIED_ANNOTATION } from '../contract/names.js';
import { describeRef } from '../contract/object.js';
import type { ObjectRef } from '../contract/object.js';
import { isMap, valueAt } from './json.js';

/** Folder of this project's own code, compiled or not. */
const OWN = fileURLToPath(new URL('..', import.meta.url));

/**
 * Returns the place in an author's code that an error comes from: `kind.mjs:12:5`, relative to the working directory where it is
 * below. Packages and Node are passed over, and callers of this project are not to blame for what it throws.
 * @param own where this project's code is, which may be in a package too
 * @returns nothing where there is no such place
 */
export function originOf(error: unknown, own = OWN): string | undefined {
  for (const at of chainOf(error)) {
    const [first] = placesOf(at).filter(({ file }) => file.startsWith(own) || isAuthors(file));
    if (first && !first.file.startsWith(own)) return placeText(first);
  }
  return undefined;
}

/** Returns the message of anything that was thrown, with its place in the author's code. */
export function describeThrown(error: unknown): string {
  const isDefinition = error instanceof OperatorError && error.reason === 'InvalidDefinition';
  // A definition is refused by this project: the place is where the author's code called it.
  const caller = isDefinition
    ? placesOf(error).find(({ file }) => !file.startsWith(OWN) && isAuthors(file))
    : undefined;
  const origin = isDefinition ? caller && placeText(caller) : originOf(error);
  return origin === undefined ? messageOf(error) : `${messageOf(error)} (at ${origin})`;
}

/** Members of a Secret, as it is kept, that hold none of its values. */
const WITHOUT_VALUES: ReadonlySet<string> = new Set([
  ...['apiVersion', 'kind', 'metadata', 'type', 'immutable', 'keys', 'empty', 'checksum', 'composed'],
]);

/** Calls a function that reads these objects, or objects of these types. @throws `thrownReading` of what it throws */
export function reading<T>(read: readonly unknown[], call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw thrownReading(read, error);
  }
}

/**
 * Returns what a function has thrown that has read these objects. Where values of a Secret are among them, the text may hold
 * these: type and place alone are left.
 */
export function thrownReading(read: readonly unknown[], error: unknown): unknown {
  if (error === undefined || !readsSecrets(read)) return error;
  if (!(error instanceof Error)) return new Error(withheld(`a ${typeof error}`));
  return chainOf(error).reduceRight<Error | undefined>((cause, at) => cleaned(at, cause), undefined);
}

/** Reports whether values of a Secret may be among objects, as they are kept, or lists of them. */
export function readsSecrets(read: readonly unknown[]): boolean {
  const holdsValues = (object: object): boolean =>
    Object.keys(object).some((member) => !WITHOUT_VALUES.has(member)) ||
    valueAt(object, ['metadata', 'annotations', LAST_APPLIED_ANNOTATION]) !== undefined;
  return read.flat().some((object) => isMap(object) && object.kind === 'Secret' && holdsValues(object));
}

/** Returns an error and its causes; a cause that leads back ends them. */
function chainOf(error: unknown): Error[] {
  const chain = new Set<Error>();
  for (let at = error; at instanceof Error && !chain.has(at); at = at.cause) chain.add(at);
  return [...chain];
}

function cleaned(error: Error, cause: Error | undefined): Error {
  const { constructor, message, stack = '' } = error;
  const props = {
    message: withheld(error instanceof OperatorError ? error.reason : constructor.name),
    ...(cause && { cause }),
  };
  const clean =
    error instanceof OperatorError
      ? new OperatorError({ ...props, reason: error.reason, retry: error.retry, isBug: error.isBug })
      : new Error(props.message, props);
  // A text of several lines may read like a place.
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n');
  clean.stack = [props.message, ...frames.filter((line) => placeOf(line))].join('\n');
  return clean;
}

function withheld(type: string): string {
  return `${type}, whose text is not shown, since Secrets were read`;
}

function isAuthors(file: string): boolean {
  return !file.split(sep).includes('node_modules');
}

function placesOf({ stack = '' }: Error): Place[] {
  const frames = stack.split('\n').flatMap((line) => placeOf(line) ?? []);
  return [markedPlace(stack) ?? [], frames].flat();
}

/** Returns the place that Node shows with the lines there and a mark below, as at the top of the stack of a syntax error. */
export function markedOrigin(text: string): string | undefined {
  const place = markedPlace(text);
  return place && isAuthors(place.file) ? placeText(place) : undefined;
}

function markedPlace(text: string): Place | undefined {
  const [, where = '', line = '', before] =
    /^(?:Warning: .* at )?((?:file:\/\/)?\/.*?):(\d+)\n(?:.*\n){0,4}?( *)\^/m.exec(text) ?? [];
  if (before === undefined) return undefined;
  const file = where.startsWith('file:') ? pathOf(where) : where;
  return { file, lineAndColumn: `${line}:${before.length + 1}` };
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

function placeText({ file, lineAndColumn }: Place): string {
  const below = relative(process.cwd(), file);
  return `${below.startsWith('..') ? file : below}:${lineAndColumn}`;
}

/** Returns the error that a kind has thrown on purpose, or a bug of it. @param reason of the bug */
export function operatorErrorOf(thrown: unknown, reason: string): OperatorError {
  if (thrown instanceof OperatorError) return thrown;
  return new OperatorError({ reason, message: describeThrown(thrown), isBug: true, cause: thrown });
}

/**
 * Calls a function that works out the status of one target of several. What it throws is a bug of the kind, and the error of that
 * target alone.
 */
export function statusOrError<T>(
  target: ObjectRef,
  compute: () => T,
  retry: Retry = 'backoff',
): T | OperatorError {
  try {
    return compute();
  } catch (cause) {
    // The construct doesn't have them, either.
    if (cause instanceof OperatorError && cause.reason === 'SettingsMissing') return cause;
    const message = `The status of ${describeRef(target)} can't be computed: ${describeThrown(cause)}`;
    return new OperatorError({ reason: 'StatusFailed', message, retry, isBug: true, cause });
  }
}
