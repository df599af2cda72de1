import type { CustomResourceDefinition, StructuralSchema } from '../../../src/contract/crd.js';
import { defineCrd } from '../../../src/author/define-crd.js';
import type { AnyObject } from '../../../src/contract/object.js';

export interface PlantedSpec {
  readonly image: string;
  readonly color?: string;
  readonly parts?: readonly { readonly name: string; readonly value?: string }[];
}

/** Of the parts, each is known by its name, unless the list is to have no keys; a free image is any with a tag; a wide one is cluster-scoped. */
export function plantedCrd({ keyed = true, freeImage = false, wide = false } = {}): CustomResourceDefinition {
  const parts: StructuralSchema = {
    type: 'array',
    ...(keyed && { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
    items: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', minLength: 1 }, value: { type: 'string' } },
    },
  };
  return defineCrd({
    group: 'planted.example.com',
    kind: wide ? 'Wide' : keyed ? 'Planted' : 'Unkeyed',
    ...(wide && { scope: 'Cluster' }),
    description: 'Parts and a Deployment.',
    spec: {
      type: 'object',
      required: ['image'],
      properties: {
        image: { type: 'string', ...(freeImage ? { pattern: ':' } : { enum: ['one:1', 'two:2'] }) },
        ...{ color: { type: 'string' }, parts },
      },
    },
    status: { serial: { type: 'integer' } },
  });
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
