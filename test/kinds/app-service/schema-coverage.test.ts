import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { render } from './render.js';
import { arrives, leavesOf, sample, type Leaf } from './schema-walk.js';

const schema = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.spec!;

test('the walk finds every field of the spec', () => {
  const found = leavesOf(schema, 'string').map(({ path }) => path[0]);
  expect(new Set(found)).toEqual(new Set(Object.keys(schema.properties!)));
});

/** Has tests of its own: it isn't passed on but says what is to be rendered. */
const MEANS_MORE = ['securityProfile'];

/** Where a field of the schema stands in the output, where the names differ; the longest start of its path counts. */
const PLACES: Readonly<Record<string, string>> = {
  size: 'replicas',
  'probes.readiness': 'readinessProbe',
  'probes.liveness': 'livenessProbe',
  'probes.startup': 'startupProbe',
  'autoscaling.cpu': 'metrics.[].resource.target.averageUtilization',
  'autoscaling.memory': 'metrics.[].resource.target.averageUtilization',
  'route.path': 'matches.[].path.value',
  'route.port': 'backendRefs.[].port',
  'topologySpread.constraints': 'topologySpreadConstraints',
  'files.[].path': 'mountPath',
  'files.[].readOnly': 'volumeMounts.[].readOnly',
  'files.[].secret.name': 'secret.secretName',
  'files.[].token': 'serviceAccountToken',
  'files.[]': 'volumes.[]',
};

/** The end of a field's path in the output: below its top field, unless it has another place. */
function placeOf({ path }: Leaf): readonly string[] {
  for (let length = path.length; length > 0; length--) {
    const place = PLACES[path.slice(0, length).join('.')];
    if (place !== undefined) return [...place.split('.'), ...path.slice(length)];
  }
  return path.slice(1);
}

/** What has to be there too, so that a field is rendered. */
function companions(leaf: Leaf): Partial<AppServiceSpec> {
  const port = leaf.path.join('.') === 'route.port' ? (leaf.value as number) : 80;
  return ['route', 'service'].includes(leaf.path[0]!) ? { ports: [{ port }] } : {};
}

describe.each(['number', 'string'] as const)('with a %s wherever that or the other may stand', (variant) => {
  const leaves = leavesOf(schema, variant).filter(({ path }) => !MEANS_MORE.includes(path[0]!));
  const rendered = (wanted: readonly Leaf[], companions: Partial<AppServiceSpec> = {}) =>
    render({ ...companions, ...(sample(schema, leaves, wanted) as AppServiceSpec) }).objects;

  test.each(leaves.map((leaf) => ({ field: leaf.path.join('.'), leaf })))(
    '$field reaches the output',
    ({ leaf }) => {
      const place = placeOf(leaf);

      expect(arrives(leaf, rendered([leaf], companions(leaf)), place)).toBe(true);
      // It is the field that brings the value there, so the check above can fail.
      expect(arrives(leaf, rendered([], companions(leaf)), place)).toBe(leaf.required);
    },
  );
});
