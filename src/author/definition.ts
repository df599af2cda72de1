import { inspect } from 'node:util';
import { OperatorError } from '../contract/error.js';
import { isMap } from '../contract/object.js';
import { suggest } from '../contract/suggest.js';

/** Definition as given, in TypeScript or in plain JavaScript. */
export type Given = Readonly<Record<string, unknown>>;

/** Option of a definition: its name, what it has to be, and the same in words, with the line to write. */
export type Option = readonly [name: string, isRight: (value: unknown) => boolean, hint: string];

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isBoolean = (value: unknown): boolean => typeof value === 'boolean';

export function optional(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value);
}

export function listOf(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.every(isRight);
}

/**
 * Holds what was given against what there is.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`, with the place and the line to write
 */
export function checkOptions(where: string, given: unknown, options: readonly Option[], hint: string): Given {
  if (!isMap(given)) throw misdefined(where, `${hint}, not ${shownOption(given)}`);
  const names = options.map(([name]) => name);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw misdefined(where, `unknown option ${unknown}; ${oneOf(unknown, names)}`);
  for (const [name, isRight, what] of options)
    if (!isRight(given[name]))
      throw misdefined(
        `${where}: ${name}`,
        what.replace(/;|$/, (end) => `, not ${shownOption(given[name])}${end}`),
      );
  return given;
}

/** Returns the name that was meant, or all there are. */
export function oneOf(unknown: string, known: readonly string[]): string {
  const near = suggest(unknown, known);
  return near === undefined ? `there are ${known.join(', ')}` : `did you mean ${near}?`;
}

/** Returns the error of a definition that can't be what was meant. @param where it stands */
export function misdefined(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}

/** Returns a value of an author as messages show it, without what is below its members. */
export function shownOption(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 60 });
}
