import fc from 'fast-check';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import { mutate } from './corpus.js';
import { mutationsOf } from './mutations.js';
import type { Mutation } from './mutations.js';

/** An object that is there, under a name of its own. */
export interface Before {
  readonly name: string;
  readonly spec: object;
}

/** What is made of it. */
export interface Update {
  readonly name: string;
  readonly before: Before;
  readonly spec: object;
}

interface WithSpec {
  readonly spec: object;
}

/** Values for the parts of a Shift; every one of them is of the right type, so that it may have been there before. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  fixed: ['a', 'b', 'c', 'twice', 'named', 'x'.repeat(21)],
  grows: [-1, 1, 5, undefined],
  pace: [1, 4, 6, 7, 11, undefined],
  share: [0.5, 1.25, 2.5, undefined],
  flag: [true, false, undefined],
  mode: ['Fast', 'Slow', 'None', undefined],
  code: ['a', 'b', 'bad', 'B', null, undefined],
  since: ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00+02:00', undefined],
  either: [1, 'one', undefined],
  once: ['first', 'second', undefined],
  least: [1, 2, 5, undefined],
  settings: [
    { a: 'x' },
    { a: 'locked' },
    { a: 'bad' },
    { a: 'bad', b: 'x' },
    { a: 'x', b: '1', c: '2', d: '3' },
    {},
  ],
  whole: [{ a: 'x' }, { a: 'bad' }, { a: 'x', b: 'long' }, { a: 'bad', b: 'b' }, { b: 'long' }],
  items: [
    [{ name: 'a', port: 1 }],
    [{ name: 'a', port: 666 }],
    [{ name: 'a', port: 666 }, { name: 'b' }],
    [{ name: 'b' }, { name: 'a', port: 666 }],
    [{ name: 'a', port: 70000 }, { name: 'A' }],
    [{ name: 'A' }, { name: 'a', port: 70000 }],
    [
      { name: 'a', port: 2, protocol: 'UDP' },
      { name: 'a', port: 1 },
    ],
    [
      { name: 'a', port: 1 },
      { name: 'a', port: 2, protocol: 'UDP' },
    ],
    [{ name: 'a' }],
    [{ name: 'a', protocol: 'SCTP' }],
    [],
    undefined,
  ],
  single: [
    [{ id: 1, note: 'x' }],
    [{ id: 1, note: 'y' }, { id: 10 }],
    [{ id: 10 }, { id: 1, note: 'y' }],
    undefined,
  ],
  tags: [['a'], ['a', 'b'], ['b', 'a'], ['bad'], ['a', 'bad'], ['bad', 'a'], ['x', 'B'], [], undefined],
  steps: [
    [{ n: 1 }],
    [{ n: 4 }],
    [{ n: 4 }, { n: 1 }],
    [{ n: 1 }, { n: 4 }],
    [{ n: 9 }, {}],
    [{}],
    undefined,
  ],
  pair: [
    { low: 1, high: 2 },
    { low: 2, high: 1 },
    { low: 9, high: 9 },
    { high: 1 },
    { low: 9, high: 9, note: 'n' },
    { low: 1 },
  ],
  made: [{ size: 3 }, { size: 3, note: 'n' }, {}, undefined],
  limits: [
    { low: 9 },
    { low: 2 },
    { low: 2, high: 7 },
    { low: 2, high: 8 },
    { high: 8 },
    { low: 9, high: 4 },
    { low: 9, high: 1 },
    { low: 1, high: 1 },
    undefined,
  ],
  choice: [{ a: 'a' }, { a: 'a', b: 'b' }, { a: 'a', b: 'b', c: 'bad' }, { c: 'bad' }, { a: 'b', b: 'b' }],
  free: [{ a: 1 }, { a: { b: [1] } }, {}, undefined],
  around: [{ note: 'bad' }, { note: 'bad', free: {} }, { note: 'bad', free: { a: 1 } }, { note: 'good' }],
  inner: [
    { kind: 'Pod', metadata: { name: 'a' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'A_b' } },
    { apiVersion: 'v1', kind: 'Pod' },
  ],
  embedded: [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, size: 9 },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'b' }, size: 1 },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    undefined,
  ],
};

const EDITS: readonly Mutation[] = Object.entries(VALUES).flatMap(([field, values]) =>
  values.map((value) => ({
    name: `${field} ${value === undefined ? 'missing' : JSON.stringify(value)}`,
    path: ['spec', field],
    value,
  })),
);

const BASE: WithSpec = { spec: { fixed: 'a' } };

function specWith(schema: StructuralSchema, base: WithSpec, edits: readonly Mutation[]): object {
  return (mutate(schema, base, edits) as WithSpec).spec;
}

/** Objects with each value alone, and with several. */
export function befores(schema: StructuralSchema, several: number, seed: number): Before[] {
  const many = fc.sample(fc.array(fc.constantFrom(...EDITS), { minLength: 2, maxLength: 8 }), {
    numRuns: several,
    seed,
  });
  return [[], ...EDITS.map((edit) => [edit]), ...many].map((edits, index) => ({
    name: `shift-${index}`,
    spec: specWith(schema, BASE, edits),
  }));
}

/** Of each object: nothing changed, each other value where it has one, and something else beside what it has. */
export function updates(schema: StructuralSchema, objects: readonly Before[], seed: number): Update[] {
  // What may be the identity of an object inside is judged online only, as it is when one is created.
  const wrong = mutationsOf(schema).filter(({ path }) => path.length < 5 && path[1] !== 'inner');
  const anything = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...EDITS) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong) },
  );
  return objects.flatMap((before, index) => {
    const own = EDITS.filter(
      ({ path: [, field] }) => field !== 'fixed' && Object.hasOwn(before.spec, String(field)),
    );
    const others = fc.sample(fc.array(anything, { minLength: 1, maxLength: 3 }), {
      numRuns: 6,
      seed: seed + index,
    });
    return [[], ...own.map((edit) => [edit]), ...others].map((edits) => ({
      name: `${before.name} ${JSON.stringify(before.spec)} then ${edits.map(({ name }) => name).join(' and ') || 'the same'}`,
      before,
      spec: specWith(schema, before as WithSpec, edits),
    }));
  });
}
