import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { render } from './render.js';
import { arrives, leavesOf, sample } from './schema-walk.js';
import type { Leaf } from './schema-walk.js';

const schema = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.spec!;

test('the walk finds every field of the spec', () => {
  expect(leavesOf(schema, 'string').map(({ path }) => path.join('.').replaceAll('.[]', '[]'))).toEqual([
    'size',
    'image',
    'ports[].name',
    'ports[].protocol',
    'ports[].appProtocol',
    'ports[].port',
    'ports[].targetPort',
    'ports[].nodePort',
    'resources.limits.walk.example/key',
    'resources.requests.walk.example/key',
    'resources.claims[].name',
    'resources.claims[].request',
    'envs[].name',
    'envs[].value',
    'envs[].valueFrom.fieldRef.apiVersion',
    'envs[].valueFrom.fieldRef.fieldPath',
    'envs[].valueFrom.resourceFieldRef.containerName',
    'envs[].valueFrom.resourceFieldRef.resource',
    'envs[].valueFrom.resourceFieldRef.divisor',
    'envs[].valueFrom.configMapKeyRef.name',
    'envs[].valueFrom.configMapKeyRef.key',
    'envs[].valueFrom.configMapKeyRef.optional',
    'envs[].valueFrom.secretKeyRef.name',
    'envs[].valueFrom.secretKeyRef.key',
    'envs[].valueFrom.secretKeyRef.optional',
    'envs[].valueFrom.fileKeyRef.volumeName',
    'envs[].valueFrom.fileKeyRef.path',
    'envs[].valueFrom.fileKeyRef.key',
    'envs[].valueFrom.fileKeyRef.optional',
  ]);
});

describe.each(['number', 'string'] as const)('with a %s wherever that or the other may stand', (variant) => {
  const leaves = leavesOf(schema, variant);
  const rendered = (wanted: readonly Leaf[]) =>
    render(sample(schema, leaves, wanted) as AppServiceSpec).objects;

  test.each(leaves.map((leaf) => ({ field: leaf.path.join('.'), leaf })))(
    '$field reaches the output',
    ({ leaf }) => {
      expect(arrives(leaf, rendered([leaf]))).toBe(true);
      // It is the field that brings the value there, so the check above can fail.
      expect(arrives(leaf, rendered([]))).toBe(leaf.required);
    },
  );

  test('all fields at once reach the output', () => {
    const objects = rendered(leaves);

    expect(leaves.filter((leaf) => !arrives(leaf, objects))).toEqual([]);
  });
});
