import type { StructuralSchema } from '../../../src/contract/crd.js';
import type { Path } from '../../../src/validate/problem.js';
import { formatPath } from '../../../src/values/path.js';
import { sample } from './samples.js';

/** What is done to one part of an object. */
export interface Mutation {
  readonly name: string;
  readonly path: Path;
  /** Nothing takes the part away. */
  readonly value: unknown;
}

/** Each way to be right or wrong that a schema speaks of, at each of its parts. */
export function mutationsOf(schema: StructuralSchema, path: Path = []): Mutation[] {
  const values = path.length === 0 ? [] : valuesFor(schema);
  const mutations = values.map(([name, value]) => ({ name: `${formatPath(path)} ${name}`, path, value }));
  if (path.length > 0) mutations.push({ name: `${formatPath(path)} missing`, path, value: undefined });
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (path.length === 0 && name !== 'spec') continue;
    mutations.push(...mutationsOf(property, [...path, name]));
  }
  const { items, additionalProperties } = schema;
  if (items) mutations.push(...mutationsOf(items, [...path, 0]));
  if (typeof additionalProperties === 'object')
    mutations.push(...mutationsOf(additionalProperties, [...path, 'k']));
  if (schema.type === 'object' && path.length > 0) {
    mutations.push({ name: `${formatPath(path)} unknown field`, path: [...path, 'zzz'], value: 1 });
  }
  return mutations;
}

type Named = readonly [name: string, value: unknown];

const TYPES: readonly Named[] = [
  ['null', null],
  ['a string', 'text'],
  ['empty text', ''],
  ['an integer', 7],
  ['zero', 0],
  ['a number', 1.25],
  ['a boolean', true],
  ['a list', []],
  ['a map', {}],
];

/** But for lists at text with a format: the API server takes them by mistake, and we don't. */
function valuesFor(schema: StructuralSchema): Named[] {
  return [
    ['right', sample(schema)],
    ...TYPES.filter(([name]) => name !== 'a list' || schema.type !== 'string' || schema.format === undefined),
    ...enumValues(schema),
    ...numbers(schema),
    ...lengths(schema),
    ...texts(schema),
    ...lists(schema),
    ...maps(schema),
    ...literals(schema),
  ];
}

function enumValues({ enum: values = [] }: StructuralSchema): Named[] {
  return values.map((value) => [`enum ${JSON.stringify(value)}`, value]);
}

function numbers(schema: StructuralSchema): Named[] {
  const intOrString = schema['x-kubernetes-int-or-string'] === true;
  if (!intOrString && schema.type !== 'integer' && schema.type !== 'number') return [];
  const bounds = [schema.minimum, schema.maximum, schema.multipleOf].filter(
    (bound) => typeof bound === 'number',
  );
  // What JSON can't hold exactly is refused here before any rule is asked.
  const near = bounds
    .flatMap((bound) => [bound - 1, bound, bound + 1, bound + 0.5])
    .filter((number) => Math.abs(number) <= Number.MAX_SAFE_INTEGER);
  const edges = [-1, 1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 65536];
  return [...new Set([...near, ...edges])].map((number) => [String(number), number]);
}

function lengths(schema: StructuralSchema): Named[] {
  const bounds = [schema.minLength, schema.maxLength].filter((bound) => typeof bound === 'number');
  return bounds.flatMap((bound) =>
    [bound - 1, bound, bound + 1]
      .filter((length) => length >= 0)
      .flatMap((length): Named[] => [
        [`${length} letters`, 'a'.repeat(length)],
        // Two units of UTF-16 each, but one character.
        [`${length} faces`, '😀'.repeat(length)],
      ]),
  );
}

const WORDS = `
  abc ABC a-b a_b a.b -a 0 08 1.5 50% /a a/b ../a é 2026-02-30 2026-01-31T12:00:00+01:00
  2026-01-31t12:00:00z 2026-01-31T25:00:00Z 1999-01-01 1999-01-01T00:00:00Z 1h 2h30m 1.5h
  aGVsbG8gd29ybGQ= 10.0.0.1 10.0.0 10.0.0.256 ::1 ::ffff:1.2.3.4 10.0.0.0/8 10.0.0.0/33
  example.com -example.com a@b https://a.b/c?d a.b/c 123e4567e89b12d3a456426614174000
  00:00:5e:00:53:01 0000.5e00.5301 010.0.0.1 fe80::1%eth0 mailto:a@b //a.b /%zz
  2026-01-31T12:00:60Z 2026-01-31T12:00:00 -5m a+/b İ
`
  .trim()
  .split(/\s+/);

const TEXTS = [...WORDS, 'a b', ' a', 'a\n', '3 days', 'Some One <a@b.c>', 'https://a b', 'in 3 days'];

function texts(schema: StructuralSchema): Named[] {
  const isText = schema.type === 'string' || schema['x-kubernetes-int-or-string'] === true;
  return isText && !schema.enum ? TEXTS.map((text) => [JSON.stringify(text), text]) : [];
}

function lists(schema: StructuralSchema): Named[] {
  const { items } = schema;
  if (schema.type !== 'array' || !items) return [];
  const counts = [schema.minItems, schema.maxItems].filter((bound) => typeof bound === 'number');
  const several = counts
    .flatMap((count) => [count - 1, count, count + 1])
    .filter((count) => count >= 0 && count < 300)
    .map((count): Named => [
      `${count} items`,
      Array.from({ length: count }, (_, index) => sample(items, index)),
    ]);
  return [...several, ['the same twice', [sample(items), sample(items)]], ['with null', [null]]];
}

function maps(schema: StructuralSchema): Named[] {
  const { additionalProperties: members, maxProperties } = schema;
  if (schema.type !== 'object' || typeof members !== 'object') return [];
  const count = typeof maxProperties === 'number' && maxProperties < 300 ? maxProperties : 2;
  const map = (size: number): object =>
    Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, sample(members, index)]));
  return [
    [`${count} members`, map(count)],
    [`${count + 1} members`, map(count + 1)],
    ['strange keys', { 'k/a.b-c': sample(members) }],
    ['an empty key', { '': sample(members) }],
    ...[64, 65, 253, 254, 317, 318].flatMap((length): Named[] => [
      [`a key of ${length} letters`, { k: sample(members), ['k'.repeat(length)]: sample(members) }],
      [`a key of ${length} faces`, { ['😀'.repeat(length)]: sample(members) }],
    ]),
  ];
}

/** What the rules of a schema compare with is the most likely to break them. */
function literals(schema: StructuralSchema): Named[] {
  const rules = JSON.stringify(schema['x-kubernetes-validations'] ?? []);
  const found = [...rules.matchAll(/\\"([^"\\]*)\\"|'([^']*)'|\b(\d+)\b/g)];
  return found.map(([, double, single, digits]) => {
    const value = digits === undefined ? (double ?? single) : Number(digits);
    return [`${JSON.stringify(value)} of a rule`, value];
  });
}
