import type { GeneratedValue, GeneratedValues } from '../contract/plan.js';
import { COMPOSED_ANNOTATION, GENERATED_ANNOTATION } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import { contentHash, isMap, secretChecksum } from './json.js';

/** Type of the condition that says which rotation was followed; the Secret says so too, until it is restored. */
export const ROTATED = 'Rotated';

export const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Returns the value as it stands in the Secret, before it is encoded. @param random returns an integer from 0 to below its argument */
export function makeValue(
  { length = 32, alphabet = LETTERS_AND_DIGITS, bytes }: GeneratedValue,
  random: (below: number) => number,
): string {
  const pick = <T>(count: number, from: number, as: (index: number) => T): T[] =>
    Array.from({ length: count }, () => as(random(from)));
  if (bytes !== undefined) return Buffer.from(pick(bytes, 256, (byte) => byte)).toString('base64');
  return pick(length, alphabet.length, (index) => alphabet[index]).join('');
}

export const secretType = resourceType({ apiVersion: 'v1', kind: 'Secret' });

/** Reports whether an object is a Secret of generated values, which is never pruned. */
export function isGenerated({ kind, metadata }: AnyObject): boolean {
  return kind === 'Secret' && metadata.annotations?.[GENERATED_ANNOTATION] !== undefined;
}

export type SecretData = Readonly<Record<string, unknown>>;

/** Returns those keys of a Secret that the kind has, and that have a value, or an empty one that doesn't count as missing. */
export function presentKeys(values: GeneratedValues, data: SecretData = {}): string[] {
  return Object.keys(data).filter(
    (key) => Object.hasOwn(values, key) && (data[key] || !values[key]?.emptyIsMissing),
  );
}

/**
 * Returns the value of `composed`: the template of texts, a keyed hash of the values that they were made of, with its key, and the
 * names of the texts. Who reads it may read the values too, or else can't try them out: they are random.
 */
export function composedRecord(
  template: string,
  key: string,
  { sources, names }: { readonly sources: SecretData; readonly names: readonly string[] },
): string {
  return [template, key, secretChecksum({ uid: key }, sources), ...names].join(' ');
}

/** Returns the names of the texts that were made for a Secret. */
export function composedNames({ metadata }: AnyObject): readonly string[] {
  return metadata.annotations?.[COMPOSED_ANNOTATION]?.split(' ').slice(3) ?? [];
}

/** Returns the template of the texts in a Secret; undefined where they, or the values that they were made of, have been changed. */
export function composedOf(object: AnyObject, values: GeneratedValues): string | undefined {
  const present = object.metadata.annotations?.[COMPOSED_ANNOTATION];
  const [template, key = ''] = present?.split(' ') ?? [];
  const names = composedNames(object);
  const held = isMap(object.data) ? object.data : {};
  if (template === undefined || !names.every((name) => Object.hasOwn(held, name))) return undefined;
  const record = composedRecord(template, key, { sources: sourcesOf(values, held), names });
  return record === present ? template : undefined;
}

/** Returns those of the data that are generated values. */
export function sourcesOf(values: GeneratedValues, data: SecretData): SecretData {
  return Object.fromEntries(Object.keys(values).map((name) => [name, data[name]]));
}

/** Maximum number of earlier rotations that a Secret remembers. */
const MAX_ROTATIONS = 50;

/** Returns the value of `generated` for a rotation: its text, and below it hashes of those before, the latest first. */
export function rotationRecord(token: string, before = ''): string {
  const [last = '', ...earlier] = before.split('\n');
  const all = last === '' ? earlier : [tokenHash(last), ...earlier];
  return [onOneLine(token), ...all.slice(0, MAX_ROTATIONS)].join('\n');
}

/** Returns the text of the rotation that values were made for. @param made the value of `generated` */
export function rotationOf(made: string): string {
  return made.split('\n', 1)[0] ?? '';
}

/**
 * Reports whether values are those that a rotation has asked for. Without a token, they are; so are those of a Secret that was
 * adopted, until the next token. A token that was followed before, as where a revert brings it back, asks for nothing.
 */
export function isMadeFor(token: string | undefined, made: string | undefined): boolean {
  if (made === undefined) return false;
  if (!token || rotationOf(made) === onOneLine(token)) return true;
  return made
    .split('\n')
    .slice(1)
    .includes(tokenHash(onOneLine(token)));
}

function onOneLine(token: string): string {
  return token.replaceAll('\n', ' ');
}

function tokenHash(token: string): string {
  return contentHash([token]).slice(0, 16);
}
