import type { CustomResourceDefinition, StructuralSchema } from '../../../src/contract/crd.js';
import type { AnyObject } from '../../../src/contract/object.js';

export interface PlantedSpec {
  readonly image: string;
  readonly color?: string;
  readonly parts?: readonly { readonly name: string; readonly value?: string }[];
}

const conditions: StructuralSchema = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type'],
    properties: Object.fromEntries<StructuralSchema>([
      ...['type', 'status', 'reason', 'message'].map((field) => [field, { type: 'string' }] as const),
      ['lastTransitionTime', { type: 'string', format: 'date-time' }],
      ['observedGeneration', { type: 'integer', format: 'int64' }],
    ]),
  },
};

/** Of the parts, each is known by its name, unless the list is to have no keys. */
export function plantedCrd({ keyed = true } = {}): CustomResourceDefinition {
  const kind = keyed ? 'Planted' : 'Unkeyed';
  const names = { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase() };
  const parts: StructuralSchema = {
    type: 'array',
    ...(keyed && { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
    items: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', minLength: 1 }, value: { type: 'string' } },
    },
  };
  const spec: StructuralSchema = {
    type: 'object',
    required: ['image'],
    properties: { image: { type: 'string', enum: ['one:1', 'two:2'] }, color: { type: 'string' }, parts },
  };
  const status: StructuralSchema = {
    type: 'object',
    properties: { observedGeneration: { type: 'integer', format: 'int64' }, conditions },
  };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status } } } as const;
  return {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: `${names.plural}.planted.example.com` },
    spec: {
      ...{ group: 'planted.example.com', scope: 'Namespaced', names },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }],
    },
  };
}

export const plantedSamples: readonly AnyObject[] = (
  [
    { image: 'one:1', color: 'red', parts: [{ name: 'a', value: '1' }, { name: 'b' }] },
    { image: 'two:2', parts: [{ name: 'a', value: '2' }] },
  ] satisfies PlantedSpec[]
).map((spec, index) => ({
  ...{ apiVersion: 'planted.example.com/v1', kind: 'Planted', spec },
  metadata: { name: `sample-${index}` },
}));
