import { describe, expect, it } from 'vitest';
import { loadCrd, storedVersion } from '../../src/contract/crd.js';
import { defineCrd } from '../../src/contract/define-crd.js';
import { OperatorError } from '../../src/contract/error.js';

const PROPS = {
  group: 'web.example.com',
  kind: 'Gallery',
  description: 'Pictures on the web.',
  spec: {
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1 },
      ports: { type: 'array', items: { type: 'object', properties: { port: { type: 'integer' } } } },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
    },
  },
} as const;

const define = (props: object): unknown => defineCrd({ ...PROPS, ...props });
const spec = (properties: object, more: object = {}) => ({
  spec: { type: 'object', properties, ...more },
});

const POINT = {
  type: 'object',
  required: ['x', 'z'],
  properties: { x: { type: 'integer' }, y: { type: 'integer' }, z: { type: 'integer', default: 0 } },
};
const POINTS = { type: 'array', items: POINT, 'x-kubernetes-list-type': 'map' } as const;
const IMAGE = { name: 'Image', type: 'string', jsonPath: '.spec.image' };

describe('defineCrd', () => {
  it('takes what the API server takes', () => {
    const rule = { rule: 'true', messageExpression: '"x"', optionalOldSelf: true };
    const items = { ...POINT, default: { x: 1 } };
    const byKey = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['x'] };
    expect(() =>
      define({
        ...spec({ a: { type: 'array', items, uniqueItems: false, ...byKey, default: [{ x: 1 }] } }),
        ...{ rules: [rule], shortNames: ['gal'], categories: ['all'] },
      }),
    ).not.toThrow();
  });

  it('fills in what every CRD has', () => {
    const crd = defineCrd(PROPS);
    expect(crd).toMatchObject({
      metadata: { name: 'galleries.web.example.com' },
      spec: {
        group: 'web.example.com',
        scope: 'Namespaced',
        names: { kind: 'Gallery', listKind: 'GalleryList', plural: 'galleries', singular: 'gallery' },
        versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} } }],
      },
    });
    const { properties, required } = storedVersion(crd).schema.openAPIV3Schema;
    expect(required).toEqual(['spec']);
    expect(properties).toMatchObject({ spec: PROPS.spec, status: { default: { observedGeneration: -1 } } });
  });

  it('has the status that the example has, but for its own fields', () => {
    const file = '../../examples/scheduled-task/scheduledtasks.tasks.example.com.yaml';
    const example = storedVersion(loadCrd(new URL(file, import.meta.url))).schema.openAPIV3Schema;
    const own = { active: { type: 'integer' } } as const;
    const made = storedVersion(defineCrd({ ...PROPS, status: own })).schema.openAPIV3Schema;
    const { observedGeneration, conditions } = example.properties?.status?.properties ?? {};
    expect(made.properties?.status?.properties).toEqual({ observedGeneration, conditions, ...own });
  });

  it('takes what is given', () => {
    const crd = defineCrd({
      ...PROPS,
      ...{
        version: 'v1beta1',
        plural: 'gallery',
        scope: 'Cluster',
        shortNames: ['gal'],
        categories: ['all'],
      },
      rules: [{ rule: 'size(self.metadata.name) <= 52', message: 'too long' }],
      columns: [{ name: 'Image', type: 'string', jsonPath: '.spec.image' }],
    });
    const [version] = crd.spec.versions;
    expect(crd.metadata.name).toBe('gallery.web.example.com');
    expect(crd.spec).toMatchObject({ scope: 'Cluster', names: { shortNames: ['gal'], categories: ['all'] } });
    expect(version?.name).toBe('v1beta1');
    expect(version?.additionalPrinterColumns?.map(({ name }) => name)).toEqual([
      ...['Ready', 'Reason', 'Image', 'Age', 'Message'],
    ]);
    expect(version?.schema.openAPIV3Schema['x-kubernetes-validations']).toHaveLength(1);
  });

  it.each([
    '.metadata.labels.tier',
    '.metadata.name',
    '.status.conditions[?(@.type=="Paused")].status',
    '.spec.ports[0].port',
    '.spec.labels.tier',
  ])('takes a column of %s', (jsonPath) => {
    expect(() => define({ columns: [{ name: 'A', type: 'string', jsonPath }] })).not.toThrow();
  });

  it.each([
    ['an unknown option', { specs: {} }, "defineCrd: doesn't know the option specs"],
    [
      'a group without a dot',
      { group: 'web' },
      'defineCrd: group: is a domain in lower case, not "web"; write group: \'web.example.com\'',
    ],
    ['a group in capitals', { group: 'Web.example.com' }, 'defineCrd: group: is a domain in lower case'],
    [
      'a group of Kubernetes',
      { group: 'batch.k8s.io' },
      'defineCrd: group: batch.k8s.io is kept for Kubernetes itself',
    ],
    ['a kind with a dash', { kind: 'photo-gallery' }, "write kind: 'PhotoGallery'"],
    ['no kind', { kind: undefined }, 'defineCrd: kind: is one word in PascalCase, not nothing'],
    ['a plural in capitals', { plural: 'Galleries' }, "write plural: 'galleries'"],
    ['a version that is none', { version: '1.0' }, "write version: 'v1'"],
    [
      'another scope',
      { scope: 'namespaced' },
      `defineCrd: scope: is 'Namespaced' or 'Cluster', not "namespaced"`,
    ],
    ['no description', { description: ' ' }, 'defineCrd: description: say what the kind is'],
    [
      'a spec that is no object',
      { spec: { type: 'string' } },
      'defineCrd: spec: is the schema of an object; write spec: {',
    ],
    ['no spec', { spec: undefined }, 'defineCrd: spec: is the schema of an object'],
    [
      'a condition',
      { status: { conditions: { type: 'array' } } },
      'defineCrd: status.conditions: the operator writes it for every kind; leave it out',
    ],
    [
      'a whole schema as status',
      { status: { type: 'object', properties: {} } },
      'defineCrd: status: give the members alone',
    ],
    ['a status without type', { status: { pods: {} } }, 'defineCrd: status.pods: has no type'],
    [
      'a misspelt keyword',
      spec({ a: { tpye: 'string' } }),
      'defineCrd: spec.a: a schema of a CRD knows no tpye; did you mean type?',
    ],
    [
      'a keyword of another dialect',
      spec({ a: { type: 'string', const: 'x' } }),
      'knows no const; write enum with one value',
    ],
    [
      'a type that is none',
      spec({ a: { type: 'int' } }),
      'defineCrd: spec.a: has the type "int"; write one of string, integer',
    ],
    [
      'a part without type',
      spec({ a: { items: { type: 'string' } } }),
      'defineCrd: spec.a: has no type; write one of',
    ],
    [
      'a list of anything',
      spec({ a: { type: 'array' } }),
      "defineCrd: spec.a: doesn't say what is in the list",
    ],
    ['items without type', spec({ a: { type: 'array', items: {} } }), 'defineCrd: spec.a.items: has no type'],
    ['an enum that is no list', spec({ a: { type: 'string', enum: 'b' } }), "write enum: ['a', 'b']"],
    [
      'a number or string with a type',
      spec({ a: { type: 'string', 'x-kubernetes-int-or-string': true } }),
      'leave the type out',
    ],
    ['both kinds of members', spec({}, { additionalProperties: { type: 'string' } }), 'choose one'],
    [
      'members that nothing says anything of',
      spec({ a: { type: 'object', additionalProperties: { properties: {} } } }),
      'defineCrd: spec.a.additionalProperties: has no type',
    ],
    [
      'a required member that is not there',
      spec({ a: { type: 'string' } }, { required: ['b'] }),
      "defineCrd: spec: requires b, which isn't among its properties",
    ],
    [
      'a required member as its own keyword',
      spec({ a: { type: 'string', required: true } }),
      "defineCrd: spec.a: give a list of names, on the object that has the members; write required: ['image']",
    ],
    [
      'a default of another type',
      spec({ a: { type: 'integer', default: '1' } }),
      'defineCrd: spec.a: has the default "1", which is no integer; write default: 1',
    ],
    [
      'a default that is not among the values',
      spec({ a: { type: 'string', enum: ['b'], default: 'c' } }),
      'defineCrd: spec.a: has the default "c", which isn\'t among the values; write one of "b"',
    ],
    [
      'a group with a long label',
      { group: `${'a'.repeat(64)}.com` },
      'defineCrd: group: is a domain in lower',
    ],
    [
      'a short name in capitals',
      { shortNames: ['gal', 'GB'] },
      `defineCrd: shortNames[1]: is a name in lower case, not "GB"; write 'gb'`,
    ],
    [
      'a short name that is no text',
      { shortNames: [1] },
      'defineCrd: shortNames[0]: is a name in lower case, not 1',
    ],
    [
      'a category in capitals',
      { categories: ['All'] },
      `defineCrd: categories[0]: is a name in lower case, not "All"`,
    ],
    [
      'a rule as text',
      { rules: ['x'] },
      "defineCrd: rules[0]: write { rule: 'self.metadata.name.size() <= 52', message: '...' }, not \"x\"",
    ],
    ['a rule without rule', { rules: [{ message: 'x' }] }, 'defineCrd: rules[0]: write { rule:'],
    [
      'a rule with a misspelt member',
      { rules: [{ rule: 'true', mesage: 'x' }] },
      'defineCrd: rules[0]: a rule knows no mesage; did you mean message?',
    ],
    [
      'a list without twins as elsewhere',
      spec({ a: { type: 'array', items: { type: 'string' }, uniqueItems: true } }),
      "defineCrd: spec.a: a CRD can't have uniqueItems; write 'x-kubernetes-list-type': 'set'",
    ],
    [
      'a list by keys that are not said',
      spec({
        a: { type: 'array', items: { type: 'object', properties: {} }, 'x-kubernetes-list-type': 'map' },
      }),
      "defineCrd: spec.a: doesn't say what its items go by; write 'x-kubernetes-list-map-keys': ['name']",
    ],
    [
      'a list by a key that its items have not',
      spec({ a: { ...POINTS, 'x-kubernetes-list-map-keys': ['name'] } }),
      "defineCrd: spec.a: its items go by name, which isn't among their properties; write one that is, or 'x-kubernetes-list-type': 'atomic'",
    ],
    [
      'a list by a key that its items may lack',
      spec({ a: { ...POINTS, 'x-kubernetes-list-map-keys': ['y'] } }),
      'defineCrd: spec.a: its items go by y, which they needn\'t have; add it to "required" of the items, or give it a default',
    ],
    [
      'a default that lacks a member',
      spec({ a: { ...POINT, default: { y: 1 } } }),
      'defineCrd: spec.a: has the default {"y":1}, which lacks x; add it to the default, or require it no more',
    ],
    [
      'a default with an item that lacks a member',
      spec({ a: { type: 'array', items: POINT, default: [{ x: 1 }, {}] } }),
      'defineCrd: spec.a: has the default [{"x":1},{}], which lacks [1].x',
    ],
    [
      'a default with a value that lacks a member',
      spec({ a: { type: 'object', additionalProperties: POINT, default: { b: {} } } }),
      'which lacks b.x',
    ],
    [
      'a required member that every object of the language has',
      spec({ a: { type: 'string' } }, { required: ['constructor'] }),
      "defineCrd: spec: requires constructor, which isn't among its properties",
    ],
    [
      'a column of what every object of the language has',
      { columns: [{ name: 'A', type: 'string', jsonPath: '.spec.constructor' }] },
      '.spec.constructor leads nowhere',
    ],
    ['a column that is nothing', { columns: [null] }, 'defineCrd: columns[0]: write { name:'],
    [
      'two columns of a name',
      { columns: [IMAGE, { ...IMAGE, jsonPath: '.metadata.name' }] },
      'defineCrd: columns[1]: there is a column Image already; give it another name',
    ],
    ['columns that are no list', { columns: {} }, 'defineCrd: columns: give a list'],
    [
      'a column without path',
      { columns: [{ name: 'A', type: 'string' }] },
      'defineCrd: columns[0]: write { name:',
    ],
    [
      'a column that is there',
      { columns: [{ name: 'Age', type: 'date', jsonPath: '.spec.image' }] },
      'defineCrd: columns[0]: the column Age is there by itself',
    ],
    [
      'a column of no type',
      { columns: [{ name: 'A', type: 'text', jsonPath: '.spec.image' }] },
      "write type: 'string'",
    ],
    [
      'a path without dot',
      { columns: [{ name: 'A', type: 'string', jsonPath: '$.spec.image' }] },
      "write jsonPath: '.spec.image'",
    ],
    [
      'a path that leads nowhere',
      { columns: [{ name: 'A', type: 'string', jsonPath: '.spec.imgae' }] },
      'defineCrd: columns[0]: .spec.imgae leads nowhere, since .spec has no imgae, only image, ports, labels',
    ],
  ])('refuses %s', (_, props, message) => {
    const failed = (): unknown => define(props);
    expect(failed).toThrow(OperatorError);
    expect(failed).toThrow(message);
  });
});
