import { expect, test } from 'vitest';
import type { StructuralSchema } from '../../src/contract/crd.js';
import { formatProblem } from '../../src/validate/problem.js';
import { unknownRules } from '../../src/validate/cel/rules.js';
import { compileSchema, optionsFor } from '../../src/validate/schema.js';
import { gaugeCrd } from './support/gauge-crd.js';

const gauge = gaugeCrd.spec.versions[0]!.schema.openAPIV3Schema;
const validate = compileSchema(gauge, optionsFor(gaugeCrd.spec.versions[0]!));

function gaugeWith(spec: object, more: object = {}): object {
  const metadata = { name: 'web', namespace: 'shop' };
  return {
    apiVersion: 'judge.example.com/v1',
    kind: 'Gauge',
    metadata,
    spec,
    ...more,
  };
}

function problemsOf(spec: object, old?: object): string[] {
  const title = 'Title';
  const problems = validate(gaugeWith({ title, ...spec }), old && gaugeWith({ title, ...old }));
  return problems.map(formatProblem);
}

test.each<[string, object, string[]]>([
  [
    'a message',
    { items: [{ name: 'a', port: 666 }] },
    ['spec.items[0].port: 666 is refused: port 666 is taken; change it'],
  ],
  [
    'an expression for the message',
    { items: [{ name: 'self' }] },
    ['spec.items[0]: the name self is taken; change it'],
  ],
  [
    'a member of a map',
    { labels: { k: 'bad' } },
    ['spec.labels.k: "bad" is refused: must not be bad; change it'],
  ],
  ['the keys of a map', { labels: { x: 'y' } }, ['spec.labels: keys begin with k; change it']],
  [
    'either kind of a value',
    { items: [{ name: 'a', target: 0 }] },
    ['spec.items[0].target: 0 is refused: must be a port or its name; change it'],
  ],
  [
    'a pattern',
    { items: [{ name: 'a', target: 'A' }] },
    ['spec.items[0].target: "A" is refused: must be a port or its name; change it'],
  ],
  [
    'the reason Required',
    { mode: 'Fast', count: 1 },
    ['spec.count: 1 is refused: Fast needs a count above 1; add it'],
  ],
  [
    'the reason Forbidden',
    { limits: { low: 1, high: 1000 } },
    ['spec.limits.high: 1000 is refused: high is too high; remove it'],
  ],
  ['no message', { step: 5 }, ['spec: failed rule: !has(self.step) || self.step % 2 == 0; change it']],
  [
    'a missing field',
    { limits: { high: 1 } },
    [
      'spec.limits: low must be at most high (field not found: low); change it so that the rule can be judged',
    ],
  ],
  [
    'an integer that overflows',
    { big: 1 },
    ['spec: overflows (int overflow during _+_); change it so that the rule can be judged'],
  ],
])('rules: %s', (_, spec, expected) => {
  expect(problemsOf(spec)).toEqual(expected);
});

test('rules are not asked about what has not the right form', () => {
  expect(problemsOf({ count: 1, mode: 'Fast', tags: 1 })).toEqual([
    'spec.tags: 1 is a number, not a list; give a list',
  ]);
  expect(problemsOf({ count: 1, mode: 'Fast', zzz: 1 })).toEqual([expect.stringContaining('unknown field')]);
});

test('replicas are what the subresource scale takes, whatever the schema says', () => {
  expect(problemsOf({ replicas: 0 })).toEqual([]);
  expect(problemsOf({ replicas: -1 })).toEqual([
    'spec.replicas: -1 is not a number of replicas; give a number between 0 and 2147483647',
  ]);
});

test('rules are asked about what is only out of bounds', () => {
  expect(problemsOf({ count: -1, mode: 'Fast' })).toEqual([
    'spec.count: -1 is less than 0; give a number between 0 and 10',
    'spec.count: -1 is refused: Fast needs a count above 1; add it',
  ]);
});

test('rules on a change are judged where there is an old object, and nowhere else', () => {
  expect(problemsOf({ fixed: 1 })).toEqual([]);
  expect(problemsOf({ fixed: 1 }, { fixed: 1 })).toEqual([]);
  expect(problemsOf({ fixed: 1 }, {})).toEqual([]);
  expect(problemsOf({ fixed: 2 }, { fixed: 1 })).toEqual([
    'spec.fixed: 2 is refused: is immutable; change it',
  ]);
  expect(problemsOf({ grows: 1 })).toEqual([]);
  expect(problemsOf({ grows: 1 }, { grows: 2 })).toEqual([
    'spec.grows: 1 is refused: may only grow; change it',
  ]);
});

test('what was wrong before and stays as it is is not refused', () => {
  const wrong = { items: [{ name: 'self', protocol: 'TCP' }], count: 99 };
  expect(problemsOf(wrong)).toHaveLength(2);
  expect(problemsOf({ ...wrong, flag: true }, wrong)).toEqual([]);
  const moved = { ...wrong, items: [{ name: 'b', protocol: 'TCP' }, ...wrong.items] };
  expect(problemsOf(moved, wrong)).toEqual([]);
  expect(problemsOf({ ...wrong, count: 98 }, wrong)).toEqual([
    'spec.count: 98 is more than 10; give a number between 0 and 10',
  ]);
});

test('a status is dropped before it is judged, but its fields are known', () => {
  expect(validate(gaugeWith({ title: 'Title' }, { status: { ready: 99 } }))).toEqual([]);
  expect(validate(gaugeWith({ title: 'Title' }, { status: { rdy: 1 } })).map(formatProblem)).toEqual([
    'status.rdy: unknown field; remove it; the fields here are ready',
  ]);
});

test.each([
  ["'no ' + self", 'no b'],
  ["' no '", 'no'],
  ["self + '\\n'", 'b'],
  ["'one\\ntwo'", 'plain'],
  ["'   '", 'plain'],
  ["'é'.replace('é', self).charAt(7)", 'plain'],
  ['quantity(self).asInteger()', 'plain'],
  [`'${'x'.repeat(5 * 1024)}'`, 'x'.repeat(5 * 1024)],
  [`'${'x'.repeat(5 * 1024)}y'`, 'plain'],
  [`'${'é'.repeat(2561)}'`, 'plain'],
])('the messageExpression %s is taken as the API server takes it', (messageExpression, message) => {
  const rules = [{ rule: 'self == "a"', message: 'plain', messageExpression }];
  const x: StructuralSchema = { type: 'string', 'x-kubernetes-validations': rules };
  const schema: StructuralSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { x } } },
  };
  const [problem] = compileSchema(schema)(gaugeWith({ x: 'b' }));
  expect(problem?.message).toBe(`"b" is refused: ${message}`);
});

test.each([
  ['quantity(self) == quantity("1")', 'quantity()'],
  ['isURL(self)', 'isURL()'],
  ['cidr(self).containsIP("10.0.0.1")', 'containsIP()'],
  ['!format.dns1123Label().validate(self).hasValue()', 'validate()'],
  ['self.find("a") == "a"', 'find()'],
  ['"%d".format([1]) == self', 'format()'],
  ['optional.of(self).orValue("a") == "a"', 'of()'],
  ['["a"].all(i, v, v == self)', 'all()'],
  ['sets.contains(["a"], [self])', 'contains()'],
  ['self.?a.orValue("b") == "c"', 'its syntax'],
])('the rule %s is left to the API server', (rule, why) => {
  const x: StructuralSchema = { type: 'string', 'x-kubernetes-validations': [{ rule }] };
  const schema: StructuralSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { x } } },
  };
  expect(unknownRules(schema)).toEqual([{ rule, why: expect.stringContaining(why) as string }]);
  expect(compileSchema(schema)(gaugeWith({ x: 'b' }))).toEqual([]);
});
