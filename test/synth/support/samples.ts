import type { StructuralSchema } from '../../../src/contract/crd.js';
import { compileRegularExpression } from '../../../src/values/regular-expression.js';

/** Text of every format, then text that some pattern may like. */
const TEXTS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T12:00:00Z',
  date: '2026-01-31',
  duration: '10m',
  byte: 'aGk=',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  cidr: '192.0.2.0/24',
  hostname: 'www.example.com',
  uri: 'https://example.com/a',
  email: 'a@example.com',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
  mac: '02:00:5e:10:00:01',
};
const WORDS = [...'abc a web-1 ABC_DEF 1 500m 50% /abc / Abc a/b 8080 example.com'.split(' '), ''];

/** A value that a schema takes, its rules in CEL aside. Different numbers give different values where they can. */
export function sample(schema: StructuralSchema, number = 0): unknown {
  if (schema['x-kubernetes-int-or-string'] === true) return number + 1;
  if (schema.enum) return schema.enum[number % schema.enum.length];
  switch (schema.type) {
    case 'integer':
    case 'number':
      return numberFor(schema, number);
    case 'boolean':
      return true;
    case 'string':
      return textFor(schema, number);
    case 'array':
      return Array.from({ length: Math.max(1, schema.minItems ?? 1) }, (_, index) =>
        sample(schema.items ?? {}, index),
      );
    case undefined:
      return 'anything';
    case 'object':
    default:
      return mapFor(schema, number);
  }
}

function numberFor(
  { minimum, exclusiveMinimum, multipleOf, type }: StructuralSchema,
  number: number,
): number {
  if (typeof multipleOf === 'number') return multipleOf * (number + 2);
  const least = typeof minimum === 'number' ? minimum : 1;
  return least + number + (exclusiveMinimum === true ? (type === 'integer' ? 1 : 0.25) : 0);
}

interface TextSchema {
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

function textFor(schema: StructuralSchema, number: number): string {
  const { format, minLength = 0, maxLength = Infinity, pattern } = schema as TextSchema;
  if (format !== undefined && TEXTS[format] !== undefined) return TEXTS[format];
  const letters = 'abcdefghij';
  const words = [`abc${letters[number % 10] ?? ''}`, ...WORDS];
  const fits = (word: string): boolean =>
    word.length >= minLength &&
    word.length <= maxLength &&
    (pattern === undefined || compileRegularExpression(pattern).test(word));
  return words.find(fits) ?? 'abc';
}

function mapFor(schema: StructuralSchema, number: number): unknown {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (typeof additionalProperties === 'object') return { k: sample(additionalProperties, number) };
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  return {
    ...(embedded && { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }),
    ...Object.fromEntries(required.map((name) => [name, sample(properties[name] ?? {}, number)])),
  };
}
