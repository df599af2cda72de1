import { describe, expect, it } from 'vitest';
import { loadCrd } from '../../src/author/load-crd.js';
import { storedVersion } from '../../src/contract/crd.js';
import { defineCrd } from '../../src/author/define-crd.js';
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
const SHARDS = {
  spec: { type: 'object', properties: { shards: { type: 'integer' } } },
  status: { shards: { type: 'integer' } },
} as const;
const SCALE = { specReplicasPath: '.spec.shards', statusReplicasPath: '.status.shards' };
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
    const names = { shortNames: ['gal'], categories: ['all'] };
    const crd = defineCrd({
      ...{ ...PROPS, ...SHARDS, scale: SCALE },
      ...{ ...names, version: 'v1beta1', plural: 'gallery', scope: 'Cluster' },
      rules: [{ rule: 'size(self.metadata.name) <= 52', message: 'too long' }],
      columns: [{ name: 'Shards', type: 'integer', jsonPath: '.spec.shards' }],
    });
    expect(crd.metadata.name).toBe('gallery.web.example.com');
    expect(crd.spec).toMatchObject({ scope: 'Cluster', names, versions: [{ name: 'v1beta1' }] });
    const [version] = crd.spec.versions;
    const columns = version?.additionalPrinterColumns?.map(({ name }) => name);
    expect(columns).toEqual(['Ready', 'Reason', 'Shards', 'Age', 'Message']);
    expect(version?.subresources).toEqual({ status: {}, scale: SCALE });
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

  it.each<[props: object, message: string]>([
    [{ specs: {} }, 'defineCrd: unknown option specs; did you mean spec?'],
    [
      { status: { conditions: { type: 'array' } } },
      'status.conditions: the operator writes it for every kind',
    ],
    [spec({ a: { tpye: 'string' } }), 'defineCrd: spec.a: unknown option tpye; did you mean type?'],
    [spec({ a: { type: 'string', const: 'x' } }), 'spec.a: unknown option const; there are type, enum'],
    [spec({ a: { type: 'string' } }, { required: ['b'] }), "requires b, which isn't among its properties"],
    [spec({}, { required: ['constructor'] }), "requires constructor, which isn't among its properties"],
    [{ columns: [{ ...IMAGE, jsonPath: '.spec.constructor' }] }, '.spec.constructor leads nowhere'],
    [
      { columns: [{ ...IMAGE, jsonPath: '.spec.imgae' }] },
      'defineCrd: columns[0]: .spec.imgae leads nowhere, since .spec has no imgae, only image, ports, labels',
    ],
    [{ scale: SCALE }, 'defineCrd: scale.specReplicasPath: .spec.shards leads nowhere, since .spec has no'],
    [
      { ...SHARDS, status: {}, scale: SCALE },
      "only observedGeneration, conditions; add shards: { type: 'integer' }",
    ],
    [
      { ...SHARDS, scale: { ...SCALE, labelSelectorPath: '.status.shards' } },
      "scale.labelSelectorPath: .status.shards leads to no field of type: 'string'",
    ],
    [
      { ...SHARDS, scale: { ...SCALE, specReplicasPath: 'spec.shards' } },
      "spec.shards leads to no field of type: 'integer'",
    ],
    [{ scale: { replicas: '.spec.shards' } }, 'scale: unknown option replicas'],
    [{ scale: { specReplicasPath: '.spec.shards' } }, 'statusReplicasPath is missing'],
  ])('refuses %j: %s', (props, message) => {
    const failed = (): unknown => define(props);
    expect(failed).toThrow(OperatorError);
    expect(failed).toThrow(message);
  });
});
