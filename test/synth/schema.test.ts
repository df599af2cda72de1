import { expect, test } from 'vitest';
import type { StructuralSchema } from '../../src/contract/crd.js';
import { formatProblem } from '../../src/validate/problem.js';
import { compileSchema } from '../../src/validate/schema.js';
import { widget, widgetCrd } from './fixtures.js';

const validateWidget = compileSchema(widgetCrd().spec.versions[0]!.schema.openAPIV3Schema);

function problemsOf(object: object): string[] {
  return validateWidget(object).map(formatProblem);
}

/** The problems of a value at `spec.x`. */
function problemsAt(schema: StructuralSchema, x: unknown): string[] {
  const root: StructuralSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { x: schema } } },
  };
  return compileSchema(root)(widget('web', { x })).map(formatProblem);
}

test('what is right passes', () => {
  const spec = {
    image: 'nginx',
    size: 2147483647,
    ports: [
      { port: 53, protocol: 'TCP', targetPort: 'dns' },
      { port: 53, protocol: 'UDP', targetPort: 53 },
    ],
    settings: { 'any key': 'x', constructor: 'y' },
    tags: ['a', 'b'],
    note: null,
    free: { anything: [1, { goes: null }] },
    until: '2026-01-31T12:00:00Z',
    grace: '1h30m',
    code: 'abc',
  };
  expect(problemsOf({ ...widget('web', spec), status: { ready: 1 } })).toEqual([]);
  for (const grace of ['30 m', '5M', '1h 30 m', '3 µs', '1μs', '2 hr'])
    expect(problemsOf(widget('web', { image: 'nginx', grace })), grace).toEqual([]);
});

const ports = (...list: object[]): object => ({ image: 'a', ports: list });

test.each<[spec: object, expected: string]>([
  [{}, 'spec.image: is missing; add it'],
  // The field that it stands for isn't reported as missing, too.
  [{ imge: 'a' }, 'spec.imge: unknown field; did you mean image?'],
  [{ imge: 'a', image: 'b' }, 'spec.imge: unknown field; did you mean image?'],
  [{ image: 'b', zzz: 1 }, 'spec.zzz: unknown field; remove it; the fields here are image, size, ports,'],
  [{ image: 80 }, 'spec.image: 80 is a number, not a string; put it in quotes'],
  [{ image: true }, 'spec.image: true is a boolean, not a string; put it in quotes'],
  [{ image: '' }, 'spec.image: "" is empty; give at least 1 character'],
  [{ image: null }, 'spec.image: null is null, not a string; give a string, or remove the field'],
  [{ image: 'a', size: '2' }, 'spec.size: "2" is a string, not an integer; write it without quotes'],
  [{ image: 'a', size: 'two' }, 'spec.size: "two" is a string, not an integer; give an integer'],
  [{ image: 'a', size: 1.5 }, 'spec.size: 1.5 is a number, not an integer; give an integer'],
  [{ image: 'a', size: -1 }, 'spec.size: -1 is less than 0; give 0 or more'],
  [
    { image: 'a', size: 2147483648 },
    'spec.size: 2147483648 is no int32; give a whole number between -2147483648',
  ],
  [ports({ port: 99999 }), 'spec.ports[0].port: 99999 is more than 65535; give a number between 1 and 65535'],
  [ports({ port: 1, protocol: 'tcp' }), '"tcp" is not one of TCP, UDP, SCTP; did you mean TCP?'],
  [ports({ port: 1, protocol: 'HTTP/2' }), '"HTTP/2" is not one of TCP, UDP, SCTP; give one of them'],
  [ports({ port: 1, targetPort: 1.5 }), '1.5 is a number, not an integer or a string; put it in quotes'],
  [
    ports({ port: 1, protocol: 'TCP' }, { port: 2 }, { port: 1, protocol: 'TCP' }),
    'spec.ports[2]: port 1, protocol "TCP" is given twice, first by item [0]; remove or change one of them',
  ],
  [ports({ port: 1 }, { port: 2 }, { port: 3 }, { port: 4 }), 'spec.ports: has 4 items; give at most 3'],
  [{ image: 'a', ports: {} }, 'spec.ports: {} is a map, not a list; give a list'],
  [{ image: 'a', tags: ['x', 'x'] }, 'spec.tags[1]: "x" is given twice, first by item [0]'],
  [
    { image: 'a', settings: { 'a/b': 1 } },
    'spec.settings["a/b"]: 1 is a number, not a string; put it in quotes',
  ],
  [{ image: 'a', until: 'tomorrow' }, '"tomorrow" is no date-time; give it like 2026-01-31T12:00:00Z'],
  [{ image: 'a', grace: '1 parsec' }, 'spec.grace: "1 parsec" is no duration; give it like 1h30m'],
  [{ image: 'a', code: 'A' }, 'spec.code: "A" doesn\'t match ^[a-z]+$; give text that does'],
  [{ image: 'a', code: 'abcdef' }, 'spec.code: "abcdef" is too long, it has 6 characters; give at most 5'],
])('%j is refused: %s', (spec, expected) => {
  const problems = problemsOf(widget('web', spec));

  expect(problems).toEqual([expect.stringContaining(expected)]);
});

test.each<[object, string]>([
  [
    { ...widget(), extra: 1 },
    'extra: unknown field; remove it; the fields here are apiVersion, kind, metadata, spec, status',
  ],
  [
    { ...widget(), metadata: { name: 'a', lables: {} } },
    'metadata.lables: unknown field; did you mean labels?',
  ],
  [
    { ...widget(), metadata: { name: 'a', annotations: { a: 1 } } },
    'metadata.annotations.a: 1 is a number, not a string; put it in quotes',
  ],
  [{ ...widget(), metadata: { name: 1 } }, 'metadata.name: 1 is a number, not a string; put it in quotes'],
  [
    { apiVersion: 'demo.example.com/v1', kind: 'Widget', metadata: { name: 'a' } },
    'spec: is missing; add it',
  ],
  [
    { apiVersion: 'demo.example.com/v1', kind: 'Widget', spec: { image: 'a' } },
    'metadata: is missing; add it',
  ],
])('%j is refused', (object, expected) => {
  expect(problemsOf(object)).toEqual([expected]);
});

test.each<[StructuralSchema, unknown, string[]]>([
  [{ type: 'object' }, { a: 1 }, ['spec.x.a: unknown field; remove it: nothing may be here']],
  [{ type: 'object', additionalProperties: true }, { a: 1 }, []],
  [{ 'x-kubernetes-preserve-unknown-fields': true }, [1, 'a', null], []],
  [
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
    { a: 1, b: 2 },
    ['spec.x.a: 1 is a number, not a string; put it in quotes'],
  ],
  [
    { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    { kind: 'Pod', metadata: { nme: 'a' } },
    ['spec.x.apiVersion: is missing; add it', 'spec.x.metadata.nme: unknown field; did you mean name?'],
  ],
  [
    { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 10, exclusiveMaximum: true },
    0,
    ['spec.x: 0 is not more than 0; give a number above 0'],
  ],
  [{ type: 'number', multipleOf: 2 }, 3, ["spec.x: 3 must be multiple of 2; see the kind's reference"]],
  [{ type: 'number' }, Infinity, ['spec.x: Infinity is not a number that JSON can say; give a number']],
  [
    { type: 'integer', format: 'int64' },
    2 ** 60,
    ['spec.x: 1152921504606847000 is no int64; give a whole number below 2^53, which can be kept exactly'],
  ],
  [{ type: 'string', format: 'made-up' }, 'anything', []],
  [
    { type: 'string', format: 'cidr' },
    '10.0.0.0/33',
    ['spec.x: "10.0.0.0/33" is no cidr; give it like 192.0.2.0/24'],
  ],
  [{ type: 'string', format: 'ipv4' }, '10.0.0', ['spec.x: "10.0.0" is no ipv4; give it like 192.0.2.1']],
  [{ type: 'string', pattern: '(?i)^a\\_b\\z' }, 'A_B', []],
  [
    {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    },
    { a: '1', b: '2' },
    ['spec.x: {"a":"1","b":"2"} must match exactly one schema in oneOf; see the kind\'s reference'],
  ],
  [
    { type: 'string', anyOf: [{ pattern: '^a' }, { pattern: '^b' }] },
    'c',
    ['spec.x: "c" must match a schema in anyOf; see the kind\'s reference'],
  ],
  [{ type: 'array', minItems: 1, items: { type: 'string' } }, [], ['spec.x: has 0 items; give at least 1']],
])('with the schema %j, %j gives %j', (schema, value, expected) => {
  expect(problemsAt(schema, value)).toEqual(expected);
});

test.each<[StructuralSchema, unknown, string[]]>([
  [{ type: 'string', enum: ['x', 'x'] }, 'x', []],
  [{ type: 'object', required: ['a', 'a'], properties: { a: {} } }, {}, ['spec.x.a: is missing; add it']],
  [{ type: 'string', allOf: [], anyOf: [], oneOf: [], enum: [] }, 'x', []],
  [{ type: 'string', minLength: -1 }, '', []],
  [{ type: 'string', maxLength: -1 }, '', ['spec.x: "" is too long, it has 0 characters; give at most -1']],
  [{ type: 'integer', multipleOf: 0 }, 4, ["spec.x: 4 must NOT be valid; see the kind's reference"]],
  [{ type: 'integer', multipleOf: -2 }, 4, ["spec.x: 4 must NOT be valid; see the kind's reference"]],
])('the odd schema %j, which the API server accepts, gives of %j %j', (schema, value, expected) => {
  expect(problemsAt(schema, value)).toEqual(expected);
});

test.each<[object, string]>([
  [
    { type: 'string', pattern: '^(?!x)' },
    'pattern: "^(?!x)" is no regular expression of RE2; give one without',
  ],
  [
    { type: 'string', pattern: '(a)\\1' },
    'pattern: "(a)\\\\1" is no regular expression of RE2; give one without',
  ],
  [{ type: 'int' }, 'type: "int" is not one of array, boolean, integer, number, object, string; give one'],
  [{ type: 'integer', minimum: '1' }, 'minimum: "1" is a string, not a number; write it without quotes'],
  [{ type: 'object', required: [true] }, 'required[0]: true is a boolean, not a string; put it in quotes'],
  [
    { type: 'array', items: [{ type: 'string' }] },
    'items: [{"type":"string"}] is a list, not a map; give a map',
  ],
  [
    { type: 'string', 'x-kubernetes-validations': ['true'] },
    'x-kubernetes-validations[0]: "true" is a string',
  ],
])('the schema %j is refused as a mistake of its author: %s', (schema, expected) => {
  let thrown: unknown;
  try {
    problemsAt(schema as StructuralSchema, 'a');
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ reason: 'InvalidDefinition' });
  expect(String(thrown)).toContain(`The schema can't be used: properties.spec.properties.x.${expected}`);
});

test.each(['not', 'anyOf', 'oneOf', 'allOf', 'properties', 'items', 'constructor'])(
  'a field is called %s as any other is',
  (name) => {
    const port: StructuralSchema = { type: 'integer', maximum: 9 };
    const inner: StructuralSchema = { type: 'object', required: ['to'], properties: { port, [name]: port } };
    const schema: StructuralSchema = { type: 'object', properties: { [name]: inner } };
    expect(problemsAt(schema, { [name]: { port: 10, prot: 1, [name]: 'x' } })).toEqual([
      `spec.x.${name}.to: is missing; add it`,
      `spec.x.${name}.prot: unknown field; did you mean port?`,
      `spec.x.${name}.port: 10 is more than 9; give 9 or less`,
      `spec.x.${name}.${name}: "x" is a string, not an integer; give an integer`,
    ]);
  },
);

test('a CRD may restrict the name', () => {
  const validate = compileSchema({
    type: 'object',
    properties: {
      metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 3 } } },
      spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  });
  expect(validate(widget('long')).map(formatProblem)).toEqual([
    'metadata.name: "long" is too long, it has 4 characters; give at most 3',
  ]);
});
