import { objectKey } from '../contract/object.js';
import type { Kind } from '../contract/kind.js';
import { suggest } from '../values/suggest.js';
import { kindName } from '../install/names.js';
import { CliError } from './output.js';
import type { List } from './reader.js';
import type { Target } from './tree/model.js';

/** A custom resource, or all of a kind. */
export interface KindTarget extends Target {
  readonly kind: Kind;
}

/**
 * Reads words that name custom resources as for `kubectl`: `KIND`, `KIND NAME...` or `KIND/NAME...`, where the kind is named
 * by kind, plural, singular or short name, with or without its group.
 * @returns all of every kind where there are no words
 * @throws CliError with exit code 2 where they can't be read, or there is no such kind
 */
export function targetsOf(words: readonly string[], kinds: readonly Kind[], selector?: string): KindTarget[] {
  const [first, ...rest] = words;
  if (first === undefined) return kinds.map((kind) => ({ kind }));
  const isPair = first.includes('/');
  const pairs = isPair ? words.map((word) => word.split('/')) : rest.map((name) => [first, name]);
  const wrong = pairs.findIndex((pair) => pair.length !== 2 || pair.includes(''));
  const example = kinds[0]?.name ?? 'appservice';
  if (wrong >= 0 || pairs.some(([, name = '']) => name.includes('/')))
    throw new CliError(
      `${words.join(' ')}: write KIND NAME..., as in ${example} web, or KIND/NAME..., as in ${example}/web`,
    );
  if (selector !== undefined && pairs.length > 0)
    throw new CliError(`${words.join(' ')}: a name and --selector exclude each other; leave out one`);
  if (pairs.length === 0) return [{ kind: kindOf(first, first, kinds) }];
  const named = pairs.map(([kind = '', name = '']) => ({
    kind: kindOf(kind, isPair ? `${kind}/${name}` : kind, kinds),
    name,
  }));
  return [...new Map(named.map((target) => [`${kindName(target.kind)}/${target.name}`, target])).values()];
}

/** @param text what was given, for the message */
function kindOf(named: string, text: string, kinds: readonly Kind[]): Kind {
  const found = kinds.filter((kind) => isNamed(kind, named));
  const [kind] = found;
  if (kind && found.length === 1) return kind;
  if (kind) {
    const full = found.map((one) => text.replace(named, kindName(one))).join(' or ');
    throw new CliError(`${text}: several kinds are called ${named}; write ${full}`);
  }
  const near = nearKind(named, kinds);
  const remedy =
    near === undefined ? `the kinds are ${kinds.map(kindName).join(', ')}` : `did you mean ${near}?`;
  throw new CliError(`${text}: there is no kind ${named}; ${remedy}`);
}

/** Returns the name of a kind that a misspelt one most likely meant. */
function nearKind(named: string, kinds: readonly Kind[]): string | undefined {
  const short = kinds.flatMap(namesOf).filter((each) => !each.includes('.'));
  return suggest(named, short);
}

/** Reports whether a word that is no file was meant to name a kind. */
export function meansKind(word: string, kinds: readonly Kind[]): boolean {
  return namesKind(word, kinds) || nearKind(word.split('/')[0] ?? '', kinds) !== undefined;
}

/** Reports whether a word names a kind, alone or before the name of a custom resource. */
export function namesKind(word: string, kinds: readonly Kind[]): boolean {
  return kinds.some((kind) => isNamed(kind, word.split('/')[0] ?? ''));
}

function isNamed(kind: Kind, name: string): boolean {
  return namesOf(kind).includes(name.toLowerCase());
}

function namesOf({ crd: { spec } }: Kind): string[] {
  const { kind, plural, singular = kind, shortNames = [] } = spec.names;
  const names = [kind, plural, singular, ...shortNames].map((name) => name.toLowerCase());
  return names.flatMap((name) => [name, `${name}.${spec.group}`]);
}

/** Returns the error for a custom resource that isn't there, with similar names and exit code 2. */
export async function noSuchResource(
  { kind: { type }, name = '' }: Target,
  namespace: string | undefined,
  list: List,
): Promise<CliError> {
  const where = type.namespaced ? namespace : undefined;
  const names = (await list({ type, namespace: where })).map(({ metadata }) => metadata.name);
  const near = suggest(name, names);
  const known = names.slice(0, 10).join(', ') || 'none';
  return new CliError(
    `There is no ${type.kind} ${objectKey(where, name)}` +
      (near === undefined ? `; there are ${known}` : `; did you mean ${near}?`),
  );
}
