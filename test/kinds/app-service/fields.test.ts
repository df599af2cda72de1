import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { storedVersion } from '../../../src/contract/crd.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { BASE, fieldCases } from './field-cases.js';
import type { FieldCase } from './field-cases.js';
import { render } from './render.js';

function withFields(cases: readonly FieldCase[]): AppServiceSpec {
  return {
    ...BASE,
    ...Object.fromEntries(cases.map(({ field, value }) => [field, value])),
  };
}

/** Every value of the output by its path, which begins with the kind. */
function leavesOf(objects: readonly AnyObject[]): Map<string, string> {
  const leaves = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    const inner = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    if (inner.length === 0) leaves.set(path, JSON.stringify(value));
    for (const [key, child] of inner) walk(child, `${path}.${key}`);
  };
  for (const object of objects) walk(object, object.kind);
  return leaves;
}

function changedPaths(before: readonly AnyObject[], after: readonly AnyObject[]): string[] {
  const [old, fresh] = [leavesOf(before), leavesOf(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])].filter((path) => old.get(path) !== fresh.get(path));
}

test('there is a case for every field that the tutorial lacks', () => {
  const { properties } = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.spec!;
  const known = new Set(['size', 'image', 'ports', 'resources', 'envs']);
  const features = Object.keys(properties!).filter((field) => !known.has(field));

  expect(fieldCases.map(({ field }) => field).sort()).toEqual(features.sort());
});

test('each field renders what it says, and nothing else', async () => {
  const before = leavesOf(render(BASE).objects);
  const changes = fieldCases.map((added) => {
    const after = leavesOf(render(withFields([added])).objects);
    const paths = new Set([...before.keys(), ...after.keys()]);
    const lines = [...paths]
      .filter((path) => before.get(path) !== after.get(path) && !/\.(apiVersion|kind|labels\..*)$/.test(path))
      .map((path) => `  ${path}: ${after.get(path) ?? 'absent'}\n`);
    return `${added.field}\n${lines.join('')}`;
  });

  await expect(changes.join('')).toMatchFileSnapshot('__snapshots__/fields.txt');
});

describe('whatever other fields there are', () => {
  const subset = fc.subarray([...fieldCases]);

  test('a field changes what it is about, and nothing else', () => {
    fc.assert(
      fc.property(subset, fc.constantFrom(...fieldCases), (others, added) => {
        const without = others.filter(({ field }) => field !== added.field);
        const before = render(withFields(without)).objects;
        const after = render(withFields([...without, added])).objects;
        const changed = changedPaths(before, after);
        const isAboutIt = (path: string): boolean =>
          added.touches.some((place) => `${path}.`.startsWith(`${place}.`));
        expect(changed).not.toEqual([]);
        expect(changed.filter((path) => !isAboutIt(path))).toEqual([]);
      }),
    );
  });
});

test('a field that says nothing renders nothing', () => {
  const silent = {
    ...{ envFrom: [], command: [], args: [], imagePullSecrets: [], files: [], probes: {}, service: {} },
    topologySpread: { constraints: [] },
  };

  expect(render({ ...BASE, ...silent }).yaml).toBe(render(BASE).yaml);
});
