import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';

const { crd } = appService;
const schema = storedVersion(crd).schema.openAPIV3Schema;

interface Field {
  readonly path: string;
  readonly schema: StructuralSchema;
}

function fieldsOf(schema: StructuralSchema, path: string): Field[] {
  const inner: [StructuralSchema, string][] = Object.entries(schema.properties ?? {}).map(([key, child]) => [
    child,
    `${path}.${key}`,
  ]);
  if (schema.items) inner.push([schema.items, `${path}[]`]);
  if (typeof schema.additionalProperties === 'object') inner.push([schema.additionalProperties, `${path}.*`]);
  return [{ path, schema }, ...inner.flatMap(([child, childPath]) => fieldsOf(child, childPath))];
}

const fields = Object.entries(schema.properties!).flatMap(([key, field]) => fieldsOf(field, key));

test('is served under the promised names', () => {
  expect(crd.metadata.name).toBe('appservices.kosmos.io');
  expect(crd.spec).toMatchObject({
    group: 'kosmos.io',
    scope: 'Namespaced',
    names: { kind: 'AppService', plural: 'appservices', shortNames: ['appsvc'], categories: ['all'] },
  });
  expect(appService).toMatchObject({
    name: 'appservice',
    type: { apiVersion: 'kosmos.io/v1', kind: 'AppService', plural: 'appservices', namespaced: true },
  });
  expect(storedVersion(crd).subresources).toHaveProperty('status');
});

describe('schema', () => {
  test('requires size and image, and neither may be void', () => {
    const spec = schema.properties!.spec!;

    expect(schema.required).toEqual(['spec']);
    expect(spec.required).toEqual(['size', 'image']);
    expect(spec.properties!.size).toMatchObject({ type: 'integer', format: 'int32', minimum: 0 });
    expect(spec.properties!.image).toMatchObject({ type: 'string', minLength: 1 });
  });

  test('describes every field', () => {
    // The API server allows no description on metadata.
    const missing = fields.filter(({ path, schema }) => path !== 'metadata' && !schema.description);

    expect(missing.map(({ path }) => path)).toEqual([]);
  });

  test('tells of every list how it is merged', () => {
    const lists = fields.filter(({ schema }) => schema.type === 'array');

    const keys = lists.map(({ path, schema }) => [path, schema['x-kubernetes-list-map-keys']]);
    expect(Object.fromEntries(keys)).toEqual({
      'spec.ports': ['port', 'protocol'],
      'spec.resources.claims': ['name'],
      'spec.envs': ['name'],
      'status.conditions': ['type'],
    });
    expect(lists.every(({ schema }) => schema['x-kubernetes-list-type'] === 'map')).toBe(true);
  });

  test('has two defaults: the protocol of a port, and a status that nobody takes for a finished one', () => {
    const defaults = fields.filter(({ schema }) => schema.default !== undefined);

    expect(Object.fromEntries(defaults.map(({ path, schema }) => [path, schema.default]))).toEqual({
      'spec.ports[].protocol': 'TCP',
      status: { observedGeneration: -1 },
    });
  });
});
