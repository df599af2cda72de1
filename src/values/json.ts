import { createHmac, hash } from 'node:crypto';
import { OperatorError } from '../contract/error.js';
import type { ObjectMeta } from '../contract/object.js';

/** Reports whether a value is a map or a list. */
export function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Reports whether a value is what JSON calls an object, and neither a list nor null. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns what is at a path in a value, if anything. */
export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, step) => (at as Readonly<Record<string, unknown>> | null)?.[step], value);
}

/**
 * Maximum depth of the values that are looked at. The API server stores 10,000 levels and `JSON.parse` reads any number, but each
 * recursion ends at the end of the stack, `isDeepStrictEqual` first, after some 900.
 */
export const MAX_DEPTH = 200;

/** Reports whether a value is nested too deeply to be looked at; one that contains itself is, too. */
export function isTooDeep(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  // The list itself, and no call for text: each object that enters the cache passes here.
  for (const child of Array.isArray(value) ? (value as unknown[]) : Object.values(value))
    if (typeof child === 'object' && isTooDeep(child, levels - 1)) return true;
  return false;
}

/** Returns the error for a value that is nested too deeply. */
export function tooDeep(what: string): OperatorError {
  return new OperatorError({
    reason: 'TooDeep',
    message: `${what} is nested more than ${MAX_DEPTH} levels deep, the most that is looked at: remove levels`,
  });
}

/**
 * Returns JSON with sorted keys, at every depth.
 * @throws OperatorError `TooDeep`
 */
export function canonicalJson(value: unknown): string {
  // What the API server sends is sorted already, and so is what was rendered.
  return isSorted(value, MAX_DEPTH) ? JSON.stringify(value) : sortedJson(value);
}

function isSorted(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) throw tooDeep('A value');
  if (Array.isArray(value)) {
    for (const item of value) if (!isSorted(item, levels - 1)) return false;
    return true;
  }
  let before = '';
  for (const name of Object.keys(value)) {
    if (name < before || !isSorted((value as Readonly<Record<string, unknown>>)[name], levels - 1))
      return false;
    before = name;
  }
  return true;
}

function sortedJson(value: unknown, levels = MAX_DEPTH): string {
  // As `JSON.stringify` has it: a date is text, and what is undefined is null in a list.
  if (typeof value !== 'object' || value === null || value instanceof Date)
    return JSON.stringify(value ?? null);
  if (levels === 0) throw tooDeep('A value');
  if (Array.isArray(value)) return `[${value.map((item) => sortedJson(item, levels - 1)).join()}]`;
  // Unlike a map of them, the text has keys that are numbers in their order, too.
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${sortedJson(member, levels - 1)}`);
  }
  return `{${members.join()}}`;
}

/** Sorts strings in place. `sort` allocates even where they are sorted already, as most of the API server are. */
export function sorted(strings: string[]): string[] {
  const isSorted = strings.every((one, index) => index === 0 || (strings[index - 1] as string) <= one);
  return isSorted ? strings : strings.sort();
}

const hashes = new WeakMap<object, string>();

/** Returns the hash of an object that nothing changes any more; the same for the same content, across releases. */
export function contentHash(object: object): string {
  let known = hashes.get(object);
  if (known === undefined) {
    known = hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
    hashes.set(object, known);
  }
  return known;
}

/** Checksum of a Secret without a UID: that of a file, which no cluster has. */
export const UNKNOWN_CHECKSUM = 'unknown-without-a-cluster';

/** Matches checksums that are made of Secrets: those of equal Secrets differ, so comparisons leave them out. */
export const SECRET_CHECKSUM = /\b(?:keyed-[0-9a-f]{32}|unknown-without-a-cluster)\b/g;

/**
 * Returns the checksum of what a Secret holds, keyed by its UID: random, and unknown to those who can't read the Secret, so that
 * they can't try out values.
 */
export function secretChecksum({ uid }: Pick<ObjectMeta, 'uid'>, content: object): string {
  if (uid === undefined) return UNKNOWN_CHECKSUM;
  return keyed(createHmac('sha256', uid).update(canonicalJson(content)).digest('hex'));
}

/** Returns a checksum over contents, of which those of Secrets are given as their checksums. */
export function checksumOver(contents: readonly unknown[]): string {
  if (contents.includes(UNKNOWN_CHECKSUM)) return UNKNOWN_CHECKSUM;
  const plain = contentHash({ contents: canonicalJson(contents) });
  return contents.some((one) => typeof one === 'string' && one.startsWith('keyed-')) ? keyed(plain) : plain;
}

function keyed(digest: string): string {
  return `keyed-${digest.slice(0, 32)}`;
}

/** Freezes what is shared, with all that is in it, and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
  return value;
}
