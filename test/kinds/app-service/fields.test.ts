import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { features } from '../../../src/kinds/app-service/policy.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { BASE, fieldCases } from './field-cases.js';
import type { FieldCase } from './field-cases.js';
import { render } from './render.js';
import { tutorialObjects } from './tutorial.js';

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
  expect(fieldCases.map(({ field }) => field).sort()).toEqual([...features].sort());
});

test.each(fieldCases)('$field is rendered', async ({ field, ...rest }) => {
  const { yaml } = render(withFields([{ field, ...rest }]));

  await expect(yaml).toMatchFileSnapshot(`__snapshots__/fields/${field}.yaml`);
});

describe('whatever other fields there are', () => {
  const subset = fc.subarray([...fieldCases]);

  test('a field changes what it is about, and nothing else', () => {
    fc.assert(
      fc.property(subset, fc.constantFrom(...fieldCases), (others, added) => {
        const without = others.filter(({ field }) => field !== added.field);
        const before = render(withFields(without)).objects;
        const after = render(withFields([...without, added])).objects;
        const elsewhere = changedPaths(before, after).filter(
          (path) => !added.touches.some((place) => `${path}.`.startsWith(`${place}.`)),
        );
        expect(elsewhere).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('each field can be seen in the output', () => {
    fc.assert(
      fc.property(subset, fc.constantFrom(...fieldCases), (others, added) => {
        const without = others.filter(({ field }) => field !== added.field);
        const before = render(withFields(without)).objects;
        const after = render(withFields([...without, added])).objects;
        expect(changedPaths(before, after)).not.toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

test('without these fields the output is that of the first release', () => {
  const port = fc.record(
    {
      port: fc.integer({ min: 1, max: 65_535 }),
      name: fc.constantFrom('http', 'web'),
      protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
      targetPort: fc.integer({ min: 1, max: 65_535 }),
      nodePort: fc.integer({ min: 30_000, max: 32_767 }),
    },
    { requiredKeys: ['port'], noNullPrototype: true },
  );
  const variable = fc.record(
    { name: fc.constantFrom('A', 'B'), value: fc.string() },
    { noNullPrototype: true },
  );
  const spec = fc.record(
    {
      size: fc.nat(5),
      image: fc.constantFrom('nginx', 'example.com/web:1'),
      ports: fc.array(port, { maxLength: 3 }),
      resources: fc.constantFrom({}, { limits: { cpu: '1' } }),
      envs: fc.array(variable, { maxLength: 2 }),
    },
    { requiredKeys: ['size', 'image'], noNullPrototype: true },
  );
  fc.assert(
    fc.property(spec, (tutorial) => {
      expect(render(tutorial as AppServiceSpec).objects).toEqual(
        tutorialObjects('web', tutorial as AppServiceSpec),
      );
    }),
  );
});

test('a field that says nothing renders nothing', () => {
  const silent = {
    ...{ envFrom: [], command: [], args: [], imagePullSecrets: [], files: [], probes: {}, service: {} },
    topologySpread: { constraints: [] },
  };

  expect(render({ ...BASE, ...silent }).yaml).toBe(render(BASE).yaml);
});
