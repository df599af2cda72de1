import type { CustomResourceDefinition, StructuralSchema } from '../../../src/contract/crd.js';

const text = (more: object = {}): StructuralSchema => ({ type: 'string', maxLength: 20, ...more });
const rule = (text: string, more: object = {}): object => ({ rule: text, ...more });
const rules = (...given: object[]): object => ({ 'x-kubernetes-validations': given });

const SCALARS: Readonly<Record<string, StructuralSchema>> = {
  fixed: text(rules(rule('self == oldSelf', { message: 'is immutable' }))),
  grows: {
    type: 'integer',
    minimum: 0,
    ...rules(rule('self >= oldSelf', { reason: 'FieldValueForbidden' })),
  },
  pace: {
    type: 'integer',
    format: 'int32',
    minimum: 1,
    maximum: 10,
    default: 3,
    ...rules(
      rule('self - oldSelf <= 2', {
        messageExpression: 'oldSelf > 3 ? "too much at once, from above 3" : "too much at once"',
      }),
      rule('self != 7', { message: 'is not 7' }),
    ),
  },
  share: { type: 'number', maximum: 1.5, ...rules(rule('self >= oldSelf / 2.0')) },
  flag: { type: 'boolean', default: false, ...rules(rule('!oldSelf || self', { message: 'stays set' })) },
  mode: text({ enum: ['Fast', 'Slow'], ...rules(rule('oldSelf != "Slow" || self == "Slow"')) }),
  code: text({
    pattern: '^[a-z]+$',
    nullable: true,
    ...rules(rule('self != "bad"'), rule('self >= oldSelf')),
  }),
  since: { type: 'string', format: 'date-time', ...rules(rule('self >= oldSelf', { message: 'goes on' })) },
  either: {
    'x-kubernetes-int-or-string': true,
    maxLength: 10,
    ...rules(rule('self == oldSelf || self == 1')),
  },
  once: text(
    rules(rule('oldSelf.hasValue() ? self == oldSelf.value() : self != "first"', { optionalOldSelf: true })),
  ),
  least: { type: 'integer', ...rules(rule('oldSelf.orValue(2) <= self', { optionalOldSelf: true })) },
};

const ITEM: StructuralSchema = {
  type: 'object',
  required: ['name'],
  properties: {
    name: text({ pattern: '^[a-z]+$' }),
    protocol: text({ enum: ['TCP', 'UDP'], default: 'TCP' }),
    port: { type: 'integer', maximum: 65535, ...rules(rule('self >= oldSelf')) },
  },
  ...rules(
    rule('!has(self.port) || self.port != 666', { fieldPath: '.port' }),
    rule('has(self.port) || !has(oldSelf.port)', { message: 'keeps its port', fieldPath: '.port' }),
  ),
};

const PARTS: Readonly<Record<string, StructuralSchema>> = {
  settings: {
    type: 'object',
    maxProperties: 3,
    additionalProperties: text(rules(rule('self == oldSelf || self != "locked"'), rule('self != "bad"'))),
    ...rules(rule('oldSelf.all(k, k in self)', { message: 'nothing is taken away' })),
  },
  whole: {
    type: 'object',
    'x-kubernetes-map-type': 'atomic',
    properties: { a: text(rules(rule('self == oldSelf'), rule('self != "bad"'))), b: text({ maxLength: 3 }) },
  },
  items: {
    type: 'array',
    maxItems: 4,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name', 'protocol'],
    items: ITEM,
    ...rules(
      rule('self.size() >= oldSelf.size()', { message: 'gets no shorter' }),
      rule('self.all(x, self.exists_one(y, y.name == x.name))', { message: 'names differ' }),
    ),
  },
  single: {
    type: 'array',
    maxItems: 4,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['id'],
    items: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'integer', maximum: 9 }, note: text({ ...rules(rule('self == oldSelf')) }) },
    },
  },
  tags: {
    type: 'array',
    maxItems: 4,
    'x-kubernetes-list-type': 'set',
    items: text({ pattern: '^[a-z]+$', ...rules(rule('self != "bad"')) }),
    ...rules(
      rule('oldSelf.all(t, t in self)', { message: 'tags stay' }),
      rule('self == oldSelf || !("x" in self)'),
    ),
  },
  steps: {
    type: 'array',
    maxItems: 4,
    items: {
      type: 'object',
      properties: { n: { type: 'integer', maximum: 5, ...rules(rule('self != 4')) } },
      ...rules(rule('has(self.n)', { message: 'needs n' })),
    },
    ...rules(rule('self.size() < 2 || self == oldSelf', { message: 'two and more are fixed' })),
  },
  pair: {
    type: 'object',
    properties: { low: { type: 'integer', maximum: 5 }, high: { type: 'integer' }, note: text() },
    required: ['high'],
    // Both fail with an error where one of them isn't there.
    ...rules(rule('self.low <= self.high'), rule('self.low >= oldSelf.low', { fieldPath: '.low' })),
  },
  made: {
    type: 'object',
    default: {},
    properties: { size: { type: 'integer', default: 2, ...rules(rule('self == oldSelf')) }, note: text() },
  },
  limits: {
    type: 'object',
    properties: { low: { type: 'integer' }, high: { type: 'integer' } },
    allOf: [{ properties: { low: { maximum: 5 } } }, { properties: { high: { minimum: 3 } } }],
  },
  choice: {
    type: 'object',
    properties: { a: text(), b: text(), c: text(rules(rule('self != "bad"'))) },
    oneOf: [{ required: ['a'] }, { required: ['b'] }],
  },
  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  around: {
    type: 'object',
    properties: { free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, note: text() },
    ...rules(rule('!has(self.note) || self.note != "bad"')),
  },
  inner: {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    properties: {
      ...{ apiVersion: text(), kind: text() },
      metadata: { type: 'object', properties: { name: text() } },
    },
  },
  embedded: {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    properties: { size: { type: 'integer', maximum: 5, ...rules(rule('self >= oldSelf')) } },
    ...rules(rule('self.metadata.name == oldSelf.metadata.name')),
  },
};

/** Rules on a change of every kind of part, and bounds beside them. */
const SPEC: StructuralSchema = {
  type: 'object',
  required: ['fixed'],
  properties: { ...SCALARS, ...PARTS },
  ...rules(
    rule('!has(oldSelf.grows) || has(self.grows)', { message: 'stays', fieldPath: '.grows' }),
    rule('!has(self.code) || self.fixed != self.code', { message: 'must differ' }),
    rule('self.fixed != "twice" || oldSelf.hasValue()', { optionalOldSelf: true }),
  ),
};

const STATUS: StructuralSchema = {
  type: 'object',
  properties: {
    observedGeneration: { type: 'integer' },
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: { type: 'object', required: ['type'], properties: { type: text() } },
    },
    ready: { type: 'integer', maximum: 5, ...rules(rule('self != 4')) },
  },
};

/** The CRD of a kind that does nothing, and whose rules are about changes. */
export const shiftCrd: CustomResourceDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'shifts.judge.example.com' },
  spec: {
    group: 'judge.example.com',
    scope: 'Namespaced',
    names: { kind: 'Shift', plural: 'shifts', singular: 'shift' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              apiVersion: { type: 'string' },
              kind: { type: 'string' },
              // Shorter than some names that are there.
              metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 8 } } },
              spec: SPEC,
              status: STATUS,
            },
            ...rules(
              rule('self.spec.fixed != "named" || self.metadata.name == "named"', {
                message: 'is not named',
              }),
              rule(
                '!has(self.status) || !has(self.status.ready) || self.status.ready != 3 || self.spec.fixed != "c"',
                {
                  message: 'not with 3',
                },
              ),
            ),
          },
        },
      },
    ],
  },
};

/** The same CRD before it said anything of its parts, so that objects can be there that it wouldn't take now. */
export function withoutBounds(crd: CustomResourceDefinition): CustomResourceDefinition {
  const any: StructuralSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: any, status: any } } } as const;
  const versions = crd.spec.versions.map((version) => ({ ...version, schema }));
  return { ...crd, spec: { ...crd.spec, versions } };
}
