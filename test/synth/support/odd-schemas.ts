import type { StructuralSchema } from '../../../src/contract/crd.js';

const STRING = { type: 'string' } as const;
const BASES: readonly StructuralSchema[] = [
  STRING,
  { type: 'integer' },
  { type: 'number' },
  { type: 'array', items: STRING },
  { type: 'object', properties: { a: STRING } },
];

const COUNTS = [-1, 0, 1, '1', 1.5, null];
const BRANCHES = [[], [{}], [{}, {}], [{ enum: [] }], null, {}, [null], [true], 'x'];

/**
 * Values of keywords that authors write by mistake, or generators leave. What the API server gets wrong is left out, see
 * docs/decisions/0018-offline-validation.md.
 */
const ODD: Readonly<Record<string, readonly unknown[]>> = {
  type: ['int', 1, null, ['string'], ''],
  enum: [[], ['x', 'x'], [null], null, 'x'],
  required: [[], ['a', 'a'], ['zzz'], [true], null, 'a'],
  ...{ allOf: BRANCHES, anyOf: BRANCHES, oneOf: BRANCHES },
  not: [{}, { enum: [] }, { required: ['a', 'a'] }, null, [], true],
  ...{ minLength: COUNTS, maxLength: COUNTS, minItems: COUNTS, maxItems: COUNTS },
  ...{ minProperties: COUNTS, maxProperties: COUNTS },
  ...{ minimum: [3, '1', true, null], maximum: [3, '1', true, null] },
  ...{ exclusiveMinimum: [true, 1, null], exclusiveMaximum: [false, 1, 'true'] },
  multipleOf: [0, -2, 2, '2', null],
  pattern: ['', '^x', '(?!x)', '(a)\\1', '[', 5, null],
  format: ['', 'made-up', 5, null],
  // Of lists, no other form is accepted; beside other types, the API server reads none.
  items: [null, [STRING], {}],
  properties: [null, [], {}, { a: null }, { a: true }, 'x'],
  additionalProperties: [null, true, false, {}, 'x', STRING, []],
  nullable: [true, null, 'true', 1],
  default: [null, 'x', 4, {}, []],
  'x-kubernetes-int-or-string': [true, false, null, 'true'],
  'x-kubernetes-preserve-unknown-fields': [true, false, null, 'true'],
  'x-kubernetes-embedded-resource': [true, null, 'true'],
  'x-kubernetes-list-type': ['set', 'map', 'atomic', 'foo', null, 1],
  'x-kubernetes-list-map-keys': [[], ['a'], null, 'a', [1]],
  'x-kubernetes-validations': [
    [],
    null,
    {},
    [null],
    [{}],
    [{ rule: 5 }],
    [{ rule: '' }],
    [{ rule: 'true', message: 5 }],
  ],
  title: [null, 5],
  uniqueItems: [false, true, null],
};

/** Schemas with each odd value at each type. */
export function oddSchemas(): StructuralSchema[] {
  return BASES.flatMap((base) =>
    Object.entries(ODD).flatMap(([keyword, values]) =>
      values.map((value) => ({ ...base, [keyword]: value })),
    ),
  );
}

/** Values to hold against them. */
export const oddValues: readonly unknown[] = [
  ...['', 'x', 'xx', 0, 1, 3, 4, 1.5, true, null],
  ...[[], ['x'], ['x', 'x'], {}, { a: 'x' }, { a: 1 }, { a: null }],
];
