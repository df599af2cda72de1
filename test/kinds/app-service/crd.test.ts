import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import { appServiceOfExample } from '../../../src/kinds/app-service/example-group.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { brokenRules } from './broken-rules.js';

const { crd } = appService;
const schema = storedVersion(crd).schema.openAPIV3Schema;

interface Rule {
  readonly rule: string;
  readonly message?: string;
  readonly reason?: string;
}

const schemaHasNo = ({ schema }: Field, keyword: string): boolean => schema[keyword] === undefined;

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

    // Most are read as a whole by Kubernetes too, and some count as a whole: the order of arguments, of metrics.
    const keyed = lists.filter(({ schema }) => schema['x-kubernetes-list-type'] === 'map');
    const keys = keyed.map(({ path, schema }) => [path, schema['x-kubernetes-list-map-keys']]);
    expect(Object.fromEntries(keys)).toEqual({
      'spec.ports': ['port', 'protocol'],
      'spec.resources.claims': ['name'],
      'spec.envs': ['name'],
      'spec.imagePullSecrets': ['name'],
      'spec.topologySpread.constraints': ['topologyKey', 'whenUnsatisfiable'],
      'spec.files': ['path'],
      'status.conditions': ['type'],
    });
    const others = lists.filter((list) => !keyed.includes(list));
    expect(new Set(others.map(({ schema }) => schema['x-kubernetes-list-type']))).toEqual(
      new Set(['atomic', 'set']),
    );
  });

  test('bounds every text, list and map', () => {
    const isText = ({ schema }: Field): boolean => schema.type === 'string' && !schema.enum;
    const unbounded = [
      ...fields.filter((field) => isText(field) && schemaHasNo(field, 'maxLength')),
      ...fields.filter((field) => field.schema.type === 'array' && schemaHasNo(field, 'maxItems')),
      ...fields.filter((field) => field.schema.additionalProperties && schemaHasNo(field, 'maxProperties')),
    ];

    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });

  test('gives every rule a message, and a reason with which it is shown', () => {
    const rules = [
      ['', schema] as const,
      ...fields.map(({ path, schema }) => [path, schema] as const),
    ].flatMap(([path, { 'x-kubernetes-validations': found = [] }]) =>
      (found as Rule[]).map((rule) => ({ path, ...rule })),
    );

    expect(rules.length).toBeGreaterThan(40);
    expect(rules.filter(({ message }) => !message)).toEqual([]);
    // Each is broken on the API server, in the cluster test of the CRD.
    const unbroken = rules.filter(
      ({ message }) => !brokenRules.some((broken) => message?.includes(broken.message)),
    );
    expect(unbroken).toEqual([]);
    // The API server leaves the message out where the reason is FieldValueDuplicate.
    expect(rules.filter(({ reason }) => reason === 'FieldValueDuplicate')).toEqual([]);
  });

  test('has defaults that make no field appear whose parent is left out', () => {
    const defaults = fields.filter(({ schema }) => schema.default !== undefined);

    expect(Object.fromEntries(defaults.map(({ path, schema }) => [path, schema.default]))).toEqual({
      'spec.ports[].protocol': 'TCP',
      'spec.autoscaling.minReplicas': 1,
      'spec.route.path': '/',
      'spec.disruption.maxUnavailable': 1,
      'spec.service.type': 'NodePort',
      // A status that nobody takes for a finished one.
      status: { observedGeneration: -1 },
    });
    expect(defaults.filter(({ path }) => /^spec\.[^.[]+$/.test(path))).toEqual([]);
  });

  test('leaves no way to name the host that a probe goes to, or to ask for a privilege', () => {
    const forbidden = /\.(host|hostPath|hostPort|hostNetwork|securityContext|privileged|externalIPs)$/;

    expect(fields.filter(({ path }) => forbidden.test(path))).toEqual([]);
  });
});

test('is scaled by its size, and found by its image', () => {
  const version = storedVersion(crd);

  expect(version.subresources?.scale).toEqual({
    specReplicasPath: '.spec.size',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  });
  expect(version).toHaveProperty('selectableFields', [{ jsonPath: '.spec.image' }]);
});

test.each([appService, appServiceOfExample])(
  '$crd.metadata.name is small enough for kubectl apply',
  ({ crd }) => {
    expect(JSON.stringify(crd).length).toBeLessThan(160 * 1024);
  },
);
