import type { StructuralSchema } from '../../../src/contract/crd.js';

/** Values of one type, and rules on them. */
export interface CelGroup {
  readonly schema: StructuralSchema;
  readonly values: readonly unknown[];
  readonly rules: readonly string[];
}

const text: StructuralSchema = { type: 'string', maxLength: 20 };
const integer: StructuralSchema = { type: 'integer' };
const listOf = (items: StructuralSchema, more: object = {}): StructuralSchema => ({
  ...{ type: 'array', maxItems: 5, items },
  ...more,
});
const RESERVED =
  'as break const continue else for function if import let loop package namespace return var void while';
const WORDS = RESERVED.split(' ');
const NAMES = [
  ...WORDS,
  'true',
  'in',
  'null',
  'a-b',
  'a.b',
  'a/b',
  'a__b',
  'size',
  'has',
  'int',
  'self',
  'map',
];

export const celGroups: readonly CelGroup[] = [
  {
    schema: text,
    values: [
      '',
      'a',
      'Abc',
      'a-b,c',
      'é',
      '😀x',
      ' x ',
      '10',
      '-1.5',
      'true',
      '2026-01-31',
      '1h',
      'a"b',
      '1e3',
    ],
    rules: [
      ...[
        'size(self) > 1',
        'self.size() == 2',
        "self.startsWith('a')",
        "self.endsWith('c')",
        "self.contains('b')",
      ],
      ...[
        "self.matches('^a')",
        "self.matches('[[:alpha:]]+')",
        "self.matches('(?i)abc')",
        "self.matches('\\\\d')",
      ],
      ...[
        "self < 'b'",
        "self >= 'a' && self <= 'z'",
        "self + 'x' == 'ax'",
        "self in ['a', 'Abc']",
        "self in {'a': 1}",
      ],
      ...[
        "self.lowerAscii() == 'abc'",
        "self.upperAscii() == 'A'",
        "self.trim() == 'x'",
        "self.indexOf('b') == 1",
      ],
      ...[
        "self.lastIndexOf('-') > 0",
        "self.substring(1) == 'bc'",
        "self.substring(0, 1) == 'a'",
        "self.charAt(0) == 'a'",
      ],
      ...["self.replace('a', 'b') == 'b'", "self.replace('', '-', 1) == '-a'", "self.split(',').size() == 2"],
      ...[
        "self.split('').size() == 1",
        "self.split(',', 1) == [self]",
        "['a', self].join('-') == 'a-a'",
        "[self].join() == 'a'",
      ],
      ...[
        'int(self) > 5',
        'double(self) > 1.0',
        'bool(self)',
        "string(self) == 'a'",
        'bytes(self).size() == 2',
        'uint(self) > 1u',
      ],
      ...[
        "timestamp(self + 'T00:00:00Z').getFullYear() == 2026",
        "duration(self) > duration('30m')",
        'type(self) == string',
      ],
      ...[
        "{'a': 1}[self] == 1",
        "self == 'a' ? true : false",
        "self > 'a' || int(self) == 1",
        "int(self) == 1 || self > 'a'",
      ],
      ...[
        "r'\\d' == self",
        "'\\u00e9' == self",
        'self == "a\\"b"',
        "b'a' == bytes(self)",
        "'''a''' == self",
        "self.reverse() == 'cbA'",
      ],
      ...[
        "'%s'.format([self]) == 'a'",
        'strings.quote(self) == \'"a"\'',
        "self.find('[a-z]') == 'a'",
        'isURL(self)',
        'quantity(self).isInteger()',
      ],
    ],
  },
  {
    schema: integer,
    values: [-5, 0, 1, 2, 7, 2147483647, 9007199254740991],
    rules: [
      ...[
        'self / 2 == 1',
        'self % 2 == 0',
        'self % 0 == 0',
        '-self > 0',
        'self * self > 0',
        'self + 9223372036854775807 > 0',
      ],
      ...[
        '-5 / 2 == -2 && -5 % 2 == -1',
        'double(self) / 2.0 == 3.5',
        'uint(self) > 1u',
        'self in [1, 2]',
        "string(self) == '1'",
      ],
      ...[
        'self > 1.5',
        'self == 1.0',
        'self >= 2u',
        'self - 1 < 0',
        'self > 0 || self / 0 == 1',
        'self / 0 == 1 || self > 0',
      ],
      ...[
        '[1, 2][self] == 2',
        'self > 0 ? 1 / self == 1 : true',
        'self != 0 && 10 / self > 1',
        '{1: true}[self]',
        'timestamp(self) > timestamp(0)',
      ],
      ...[
        'self < 0x10',
        'type(self) == int',
        'int(double(self)) == self',
        'bool(string(self))',
        'duration(string(self) + "s") > duration("1s")',
      ],
      ...[
        '[self, 1].max() == 2',
        '[self, 1].min() == 1',
        '[self, 2].sum() == 3',
        '!(self == 1) && !(self == 2)',
        'self <= 2147483647',
      ],
      'math.greatest(self, 1) == 2',
    ],
  },
  {
    schema: { type: 'number' },
    values: [0, 1, 1.5, -2.5, 1e20, 3, 0.1],
    rules: [
      ...[
        'self == 1.0',
        'self > 1',
        'int(self) == 1',
        "string(self) == '1.5'",
        'self / 0.0 > 1.0',
        'self * 2.0 == 3.0',
      ],
      ...[
        'self == double("1.5")',
        'uint(self) == 1u',
        'self + 0.2 == 0.3',
        '-self > 1.0',
        'self in [1.0, 1.5]',
        'type(self) == double',
      ],
      ...[
        'self < 0.0 ? true : self == 3.0',
        "string(self) == '1e+20'",
        "string(self) == '1'",
        'self == 3',
        'self != 0.0',
        'int(self) == -2',
      ],
    ],
  },
  {
    schema: { type: 'boolean' },
    values: [true, false],
    rules: [
      'self',
      '!self',
      "string(self) == 'true'",
      'self == true',
      'self || 1 / 0 == 1',
      'self && true',
      'self < true',
      'type(self) == bool',
    ],
  },
  {
    schema: { type: 'string', format: 'date-time' },
    values: [
      '2026-01-31T12:00:00Z',
      '2026-01-31T12:00:00.5+02:00',
      '1969-12-31T23:59:59Z',
      '2024-02-29T00:30:15.123456789-11:00',
    ],
    rules: [
      ...[
        'self.getFullYear() == 2026',
        'self.getMonth() == 0',
        'self.getDate() == 31',
        'self.getDayOfMonth() == 30',
      ],
      ...[
        'self.getDayOfWeek() == 6',
        'self.getDayOfYear() == 30',
        'self.getHours() == 12',
        "self.getHours('Europe/Berlin') == 13",
      ],
      ...[
        "self.getHours('+02:00') == 14",
        "self.getHours('-11:00') == 0",
        "self.getDate('-11:00') == 29",
        'self.getMilliseconds() == 500',
      ],
      ...[
        'self.getMinutes() == 30',
        'self.getSeconds() == 15',
        "self > timestamp('2026-01-01T00:00:00Z')",
        "self.getHours('nowhere') == 1",
      ],
      ...[
        "self + duration('1h') > timestamp('2026-01-31T12:30:00Z')",
        "self - timestamp('2026-01-31T00:00:00Z') > duration('11h')",
      ],
      ...[
        "string(self) == '2026-01-31T12:00:00Z'",
        'int(self) > 0',
        "self == timestamp('2026-01-31T10:00:00.5Z')",
        'type(self) == google.protobuf.Timestamp',
      ],
      ...[
        "self - duration('1h') < timestamp('2026-01-31T12:00:00Z')",
        "self in [timestamp('2026-01-31T12:00:00Z')]",
      ],
    ],
  },
  {
    schema: { type: 'string', format: 'duration' },
    values: ['1h', '90s', '1.5h', '100ms', '1h30m', '0s', '26h'],
    rules: [
      ...[
        'self.getHours() == 1',
        'self.getMinutes() == 90',
        'self.getSeconds() == 90',
        'self.getMilliseconds() == 100',
      ],
      ...[
        "self + self > duration('2h')",
        "string(self) == '3600s'",
        "self == duration('60m')",
        "self < duration('1.5h')",
        "string(self) == '0.1s'",
      ],
      ...[
        "self - duration('1h') < duration('0s')",
        "self >= duration('90s')",
        'type(self) == google.protobuf.Duration',
      ],
      ...[
        "timestamp('2026-01-01T00:00:00Z') + self > timestamp('2026-01-01T01:00:00Z')",
        "self in [duration('1h')]",
        "string(self) == '5400s'",
      ],
    ],
  },
  {
    schema: listOf(integer),
    values: [[], [1], [1, 2], [2, 1], [1, 1, 3], [-1, 0, 5]],
    rules: [
      ...[
        'self.size() == 2',
        'size(self) > 0',
        'self[0] == 1',
        '1 in self',
        'self.all(x, x > 0)',
        'self.exists(x, x == 2)',
      ],
      ...[
        'self.exists_one(x, x == 1)',
        'self.map(x, x * 2) == [2, 4]',
        'self.filter(x, x > 1).size() == 1',
        'self.sum() == 3',
      ],
      ...[
        'self.min() == 1',
        'self.max() == 5',
        'self.isSorted()',
        'self.indexOf(2) == 1',
        'self.lastIndexOf(1) == 1',
        'self + [1] == [1, 1]',
      ],
      ...[
        'self == [1, 2]',
        'self[-1] == 1',
        'self.map(x, x > 1, x * 2) == [4]',
        'self.all(x, x > 0 || 1 / x == 1)',
        'self.exists(x, 1 / x == 1)',
      ],
      ...[
        'self.all(x, 1 / x > -2)',
        'self.exists_one(x, 1 / x == 1)',
        '[[1]].exists(x, x == self)',
        'self != [1]',
        'self.all(x, self.exists_one(y, y == x))',
      ],
      ...[
        'self.map(x, [x, 1]).all(y, y.size() == 2)',
        'self.map(x, {"a": x}).all(y, y.a > 0)',
        'sets.contains(self, [1])',
        'self.all(i, v, v > i)',
      ],
      ...[
        'dyn(self) == [1.0, 2.0]',
        'self.distinct().size() == 2',
        'self.sort() == [1, 2]',
        'self.slice(0, 1) == [1]',
        'self.first().hasValue()',
      ],
    ],
  },
  {
    schema: listOf(text, { 'x-kubernetes-list-type': 'set' }),
    values: [[], ['a'], ['a', 'b'], ['b', 'a']],
    rules: [
      ...[
        "self == ['a', 'b']",
        "self + ['a'] == self",
        "'a' in self",
        'self.isSorted()',
        "self.join(',') == 'a,b'",
        "self.all(x, x < 'b')",
      ],
      ...[
        "['b', 'a'] == self",
        "(self + ['c']).size() == 3",
        "self.map(x, x + 'x') == ['ax', 'bx']",
        "self != ['b', 'a']",
        "[self].exists(x, x == ['b', 'a'])",
      ],
    ],
  },
  {
    schema: listOf(
      { type: 'object', required: ['name'], properties: { name: text, n: integer, namespace: text } },
      { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    ),
    values: [
      [],
      [{ name: 'a' }],
      [{ name: 'a', n: 1 }, { name: 'b' }],
      [
        { name: 'b', namespace: 'x' },
        { name: 'a', n: 2 },
      ],
    ],
    rules: [
      ...[
        "self.exists(x, x.name == 'a')",
        'self.all(x, has(x.n))',
        'self.all(x, !has(x.n) || x.n > 1)',
        'self.filter(x, has(x.n)).size() == 1',
      ],
      ...[
        'self.all(x, x.n > 0)',
        'self.map(x, x.name).isSorted()',
        "self.exists(x, has(x.namespace) && x.namespace == 'x')",
        'self == self + self',
      ],
      ...[
        'self.exists_one(x, has(x.__namespace__))',
        "self[0].name == 'a'",
        'self.all(x, x in self)',
        'self.indexOf(self[1]) == 1',
      ],
    ],
  },
  {
    schema: { type: 'object', maxProperties: 4, additionalProperties: integer },
    values: [{}, { a: 1 }, { a: 1, b: 2 }, { b: 2, a: 1 }, { 'x-y': 0, namespace: 1 }],
    rules: [
      ...[
        "self['a'] == 1",
        "'a' in self",
        'size(self) == 2',
        'self.all(k, self[k] > 0)',
        "self.exists(k, k == 'b')",
        'has(self.a)',
      ],
      ...[
        'self.a == 1',
        "self == {'a': 1}",
        'self.map(k, self[k]).sum() == 3',
        'self.exists_one(k, self[k] == 1)',
        'has(self.namespace)',
      ],
      ...[
        "self['x-y'] == 0",
        "self.filter(k, k > 'a') == ['b']",
        "self != {'a': 1, 'b': 2}",
        "!('c' in self)",
        'self.namespace == 1',
        "'__namespace__' in self",
      ],
      ...[
        'self.all(k, v, v > 0)',
        "self[?'a'].hasValue()",
        'self.?a.orValue(0) == 1',
        'size(self.map(k, k)) == 1',
      ],
    ],
  },
  {
    schema: { type: 'object', properties: Object.fromEntries(NAMES.map((name) => [name, text])) },
    values: [{}, ...NAMES.map((name) => ({ [name]: 'x' }))],
    rules: [
      ...WORDS.flatMap((name) => [
        `!has(self.${name}) || self.${name} != 'x'`,
        `self.${name} == 'x'`,
        `has(self.__${name}__)`,
      ]),
      ...[
        '__true__',
        '__in__',
        '__null__',
        'a__dash__b',
        'a__dot__b',
        'a__slash__b',
        'a__underscores__b',
        'size',
        'has',
        'int',
        'self',
        'map',
      ].map((name) => `has(self.${name})`),
      ...['has(self.true)', 'has(self.in)', 'has(self.`a-b`)', 'self == self', "self.size == 'x'"],
    ],
  },
  {
    schema: { 'x-kubernetes-int-or-string': true },
    values: [1, 80, 'a', '80'],
    rules: [
      ...[
        'type(self) == int',
        'type(self) == string',
        'type(self) == int ? self > 1 : self.size() > 1',
        'self == 80',
        "self == 'a'",
        'int(self) == 80',
      ],
      ...[
        "string(self) == '80'",
        "self in [1, 'a']",
        "type(self) == string && self.matches('^[a-z]$') || type(self) == int",
      ],
    ],
  },
];
