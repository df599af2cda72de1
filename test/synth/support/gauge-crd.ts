import type { CustomResourceDefinition, StructuralSchema } from '../../../src/contract/crd.js';

const text = (more: object = {}): StructuralSchema => ({ type: 'string', maxLength: 40, ...more });
const rule = (text: string, message: string, more: object = {}): object => ({ rule: text, message, ...more });

const ITEM: StructuralSchema = {
  type: 'object',
  required: ['name'],
  properties: {
    name: text({ minLength: 1, pattern: '^[a-z]+$' }),
    protocol: text({ enum: ['TCP', 'UDP'], default: 'TCP' }),
    port: { type: 'integer', format: 'int32', minimum: 1, maximum: 65535 },
    target: {
      'x-kubernetes-int-or-string': true,
      maxLength: 15,
      'x-kubernetes-validations': [
        rule('type(self) == int ? self > 0 : self.matches(r"^[a-z]+$")', 'must be a port or its name'),
      ],
    },
  },
  'x-kubernetes-validations': [
    rule('!has(self.port) || self.port != 666', 'port 666 is taken', { fieldPath: '.port' }),
    { rule: 'self.name != "self"', messageExpression: '"the name " + self.name + " is taken"' },
  ],
};

/** Fields that have the names of keywords. */
const KEYWORDS: StructuralSchema = {
  type: 'object',
  properties: Object.fromEntries(
    ['not', 'anyOf', 'oneOf', 'allOf', 'properties', 'items', 'additionalProperties', 'required'].map(
      (name) => [
        name,
        {
          type: 'object',
          required: ['port'],
          properties: { port: { type: 'integer', maximum: 9 }, not: { type: 'array', items: text() } },
        } as const,
      ],
    ),
  ),
};

/** One of every kind of field and rule that a structural schema may have. */
const SPEC: StructuralSchema = {
  type: 'object',
  required: ['title'],
  properties: {
    title: text({ minLength: 2, pattern: '(?i)^[a-z][^\\n]*\\z' }),
    count: { type: 'integer', format: 'int32', minimum: 0, maximum: 10, default: 1 },
    replicas: { type: 'integer' },
    big: { type: 'integer', format: 'int64' },
    ratio: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 1.5 },
    step: { type: 'integer', multipleOf: 5 },
    flag: { type: 'boolean' },
    mode: text({ enum: ['Fast', 'Slow'], nullable: true }),
    level: { type: 'integer', enum: [1, 2, 3], default: 2 },
    note: text({ nullable: true, default: 'none' }),
    since: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    wait: { type: 'string', format: 'duration' },
    data: { type: 'string', format: 'byte', maxLength: 40 },
    address: { type: 'string', format: 'ipv4' },
    address6: { type: 'string', format: 'ipv6' },
    range: { type: 'string', format: 'cidr' },
    host: { type: 'string', format: 'hostname' },
    link: { type: 'string', format: 'uri' },
    mail: { type: 'string', format: 'email' },
    id: { type: 'string', format: 'uuid' },
    mac: { type: 'string', format: 'mac' },
    colour: { type: 'string', format: 'made-up' },
    tags: { type: 'array', maxItems: 4, items: text(), 'x-kubernetes-list-type': 'set' },
    others: { type: 'array', maxItems: 4, items: text(), 'x-kubernetes-list-type': 'set' },
    items: {
      type: 'array',
      minItems: 1,
      maxItems: 3,
      items: ITEM,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'protocol'],
      'x-kubernetes-validations': [
        rule('self.all(x, self.exists_one(y, y.name == x.name))', 'names must differ'),
      ],
    },
    labels: {
      type: 'object',
      maxProperties: 3,
      additionalProperties: text({
        'x-kubernetes-validations': [rule('self != "bad"', 'must not be bad')],
      }),
      'x-kubernetes-validations': [rule('self.all(k, k.startsWith("k"))', 'keys begin with k')],
    },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    embedded: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-validations': [rule('self.metadata.name.size() < 10', 'its name is too long')],
    },
    choice: {
      type: 'object',
      properties: { a: text(), b: text(), c: text() },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
      'x-kubernetes-validations': [rule('!has(self.c) || self.c != "no"', 'c is no')],
    },
    keywords: KEYWORDS,
    'dashed-name': { type: 'integer', maximum: 100 },
    namespace: text(),
    'with.dot': text(),
    under__score: text(),
    limits: {
      type: 'object',
      properties: { low: { type: 'integer' }, high: { type: 'integer' } },
      'x-kubernetes-validations': [
        // Fails with an error where one of them isn't there.
        rule('self.low <= self.high', 'low must be at most high', { fieldPath: '.low' }),
        rule('self.high < 1000', 'high is too high', { fieldPath: '.high', reason: 'FieldValueForbidden' }),
      ],
    },
    fixed: { type: 'integer', 'x-kubernetes-validations': [rule('self == oldSelf', 'is immutable')] },
    grows: {
      type: 'integer',
      'x-kubernetes-validations': [
        rule('!oldSelf.hasValue() || oldSelf.value() <= self', 'may only grow', { optionalOldSelf: true }),
      ],
    },
  },
  'x-kubernetes-validations': [
    rule('!has(self.mode) || self.mode != "Fast" || self.count > 1', 'Fast needs a count above 1', {
      fieldPath: '.count',
      reason: 'FieldValueRequired',
    }),
    rule(
      '!has(self.tags) || !has(self.others) || self.tags == self.others',
      'tags and others must be the same',
    ),
    rule('!has(self.wait) || self.wait < duration("1h")', 'must be under an hour', { fieldPath: '.wait' }),
    rule('!has(self.since) || self.since > timestamp("2000-01-01T00:00:00Z")', 'is too long ago'),
    rule('!has(self.day) || self.day.getFullYear() > 2000', 'is too long ago as well'),
    rule('!has(self.data) || size(self.data) < 5', 'has too many bytes'),
    rule('!has(self.__namespace__) || self.__namespace__ != "default"', 'not the default one'),
    rule('!has(self.dashed__dash__name) || self.dashed__dash__name != 13', 'not 13'),
    rule('!has(self.with__dot__dot) || self.with__dot__dot != "dot"', 'no dot'),
    rule('!has(self.under__underscores__score) || self.under__underscores__score != "x"', 'no x'),
    rule('!has(self.ratio) || self.ratio * 2.0 != 1.0', 'not the half'),
    rule('!has(self.note) || self.note.lowerAscii() != "shout"', 'does not shout'),
    { rule: '!has(self.step) || self.step % 2 == 0' },
    rule('!has(self.big) || self.big + 9223372036854775807 > 0', 'overflows'),
  ],
};

/** The CRD of a kind that does nothing, and whose validation has everything. */
export const gaugeCrd: CustomResourceDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gauges.judge.example.com' },
  spec: {
    group: 'judge.example.com',
    scope: 'Namespaced',
    names: { kind: 'Gauge', plural: 'gauges', singular: 'gauge' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.ready' },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              apiVersion: { type: 'string' },
              kind: { type: 'string' },
              metadata: {
                type: 'object',
                properties: { name: { type: 'string', maxLength: 30 } },
              },
              spec: SPEC,
              status: { type: 'object', properties: { ready: { type: 'integer', maximum: 5 } } },
            },
            'x-kubernetes-validations': [
              rule('self.metadata.name != self.spec.title', 'name and title must differ'),
              rule('!has(self.metadata.generateName)', 'needs a name of its own'),
            ],
          },
        },
      },
    ],
  },
};
