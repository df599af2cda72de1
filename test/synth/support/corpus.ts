import fc from 'fast-check';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import type { Path } from '../../../src/validate/problem.js';
import { mutationsOf } from './mutations.js';
import type { Mutation } from './mutations.js';
import { sample } from './samples.js';

/** A custom resource to be judged, and what is special about it. */
export interface Case {
  readonly name: string;
  readonly object: object;
}

export interface CorpusOptions {
  readonly schema: StructuralSchema;
  /** A right object; every case is made of it. */
  readonly base: object;
  /** Mutations that no schema tells, such as those that break one rule. @default - none */
  readonly more?: readonly Mutation[];
  /** How many cases have several mutations at once. */
  readonly random: number;
  readonly seed: number;
}

/** Objects that are right and wrong in every way that a schema speaks of. The same options give the same objects. */
export function corpus({ schema, base, more = [], random, seed }: CorpusOptions): Case[] {
  const mutations = [...mutationsOf(schema), ...literalsOfRules(schema), ...more];
  const single = mutations.map((mutation) => ({
    name: mutation.name,
    object: mutate(schema, base, [mutation]),
  }));
  const several = fc
    .sample(fc.array(fc.constantFrom(...mutations), { minLength: 2, maxLength: 4 }), {
      numRuns: random,
      seed,
    })
    .map((chosen) => ({
      name: chosen.map(({ name }) => name).join(' and '),
      object: mutate(schema, base, chosen),
    }));
  return [{ name: 'nothing', object: base }, ...single, ...several];
}

/** The literals of each rule, at each field that the rule names. */
function literalsOfRules(schema: StructuralSchema, path: Path = []): Mutation[] {
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly { rule: string }[];
  const own = rules.flatMap(({ rule }) => {
    const values = [...rule.matchAll(/["']([^"']*)["']|(?<![\w.])(\d+)/g)].map(([, text, digits]) =>
      digits === undefined ? text : Number(digits),
    );
    const fields = Object.keys(schema.properties ?? {})
      .filter((name) => rule.includes(escaped(name)))
      // Of the metadata, which the API server reads before it looks at any rule, a rule can speak of the name only.
      .filter((name) => path.length > 0 || name !== 'metadata');
    return fields.flatMap((field) =>
      values.map((value) => ({
        name: `${[...path, field].join('.')} ${JSON.stringify(value)} of ${rule}`,
        path: [...path, field],
        value,
      })),
    );
  });
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    literalsOfRules(property, [...path, name]),
  );
  return [...own, ...below, ...(schema.items ? literalsOfRules(schema.items, [...path, 0]) : [])];
}

function escaped(name: string): string {
  return name
    .replaceAll('-', '__dash__')
    .replaceAll('.', '__dot__')
    .replace(/(?<=under)__(?=score)/, '__underscores__');
}

export function mutate(schema: StructuralSchema, base: object, mutations: readonly Mutation[]): object {
  return mutations.reduce((object, { path, value }) => set(schema, object, path, value) as object, base);
}

/** A copy with another value at a path; what is missing around it is made as the schema wants it. */
function set(schema: StructuralSchema | undefined, object: unknown, path: Path, value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === 'number') {
    const list = Array.isArray(object) ? [...(object as unknown[])] : [sample(schema?.items ?? {})];
    const item = set(schema?.items, list[step], rest, value);
    if (item === undefined) list.splice(step, 1);
    else list[step] = item;
    return list;
  }
  const isMap = object !== null && typeof object === 'object' && !Array.isArray(object);
  const map = { ...((isMap ? object : sample(schema ?? {})) as Record<string, unknown>) };
  const { properties, additionalProperties } = schema ?? {};
  const below =
    properties?.[step] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
  const member = set(below, map[step], rest, value);
  if (member === undefined) return Object.fromEntries(Object.entries(map).filter(([key]) => key !== step));
  return { ...map, [step]: member };
}
