import type { CelValue } from '@bufbuild/cel';
import type { StructuralSchema } from '../../contract/crd.js';
import { isMap } from '../../contract/object.js';
import type { Path, Problem } from '../problem.js';
import { isUnchanged, oldItem, partOf } from '../unchanged.js';
import type { Pair } from '../unchanged.js';
import { typedList } from './lists.js';
import { compileRule, judge, rulesOf } from './rule.js';
import type { Rule, UnknownRule } from './rule.js';
import { objectSchema, toCelValue } from './values.js';

/** The rules of a schema. */
export interface Rules {
  /** Those that aren't judged here, whatever the value is. */
  readonly unknown: readonly UnknownRule[];
  /**
   * Judges a value that has passed the schema. Rules that compare it with what it was (`oldSelf`) are judged only
   * where there is an old value.
   */
  judge(value: unknown, old?: unknown): Problem[];
}

/** The rules of a part of a schema, and of the parts below. */
interface Node {
  /** Describes the values. */
  readonly schema: StructuralSchema;
  readonly rules: readonly Rule[];
  readonly properties: ReadonlyMap<string, Node>;
  readonly additional?: Node;
  readonly items?: Node;
}

/** Compiles all rules of a schema, whose root describes a whole object. */
export function compileRules(schema: StructuralSchema): Rules {
  const unknown: UnknownRule[] = [];
  const root = nodeOf(objectSchema(schema), unknown);
  const pairOf = (value: unknown, old: unknown): Pair | undefined =>
    old === undefined ? undefined : { schema, value, old };
  return {
    unknown,
    judge: (value, old) => {
      const problems: Problem[] = [];
      const pair = pairOf(value, old);
      if (root) walk(root, { value, old, path: [], pair, nearest: pair }, problems);
      return problems;
    },
  };
}

/** @returns nothing if there are no rules */
function nodeOf(given: StructuralSchema | boolean | undefined, unknown: UnknownRule[]): Node | undefined {
  if (typeof given !== 'object') return undefined;
  const schema = given['x-kubernetes-embedded-resource'] === true ? objectSchema(given) : given;
  const rules: Rule[] = [];
  for (const source of rulesOf(schema)) {
    const rule = compileRule(source);
    if ('why' in rule) unknown.push(rule);
    else rules.push(rule);
  }
  const properties = new Map<string, Node>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const node = nodeOf(property, unknown);
    if (node) properties.set(name, node);
  }
  const additional = nodeOf(schema.additionalProperties, unknown);
  const items = nodeOf(schema.items, unknown);
  if (rules.length + properties.size === 0 && !additional && !items) return undefined;
  return { schema, rules, properties, ...(additional && { additional }), ...(items && { items }) };
}

interface Place {
  readonly value: unknown;
  /** What was there before; undefined if nothing was, or nobody can say what. */
  readonly old: unknown;
  readonly path: Path;
  /** Both as the schema of the kind has them; nothing where they can't be compared. */
  readonly pair: Pair | undefined;
  /** The same, or else of the nearest part around it: where that is as it was, what was wrong before isn't refused. */
  readonly nearest: Pair | undefined;
}

function walk(node: Node, place: Place, problems: Problem[]): void {
  const { value, old } = place;
  if (value === null || value === undefined) return;
  judgeAll(node, place, problems);
  if (Array.isArray(value)) {
    const { items } = node;
    if (!items) return;
    value.forEach((item: unknown, index) => {
      walk(items, below(place, index, item, oldItem(node.schema, old, item)), problems);
    });
  } else if (typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      const child = node.properties.get(key) ?? node.additional;
      const before = isMap(old) && Object.hasOwn(old, key) ? old[key] : undefined;
      if (child) walk(child, below(place, key, member, before), problems);
    }
  }
}

function below(place: Place, step: string | number, value: unknown, old: unknown): Place {
  const pair = place.pair && partOf(place.pair, step);
  return { value, old, path: [...place.path, step], pair, nearest: pair ?? place.nearest };
}

function judgeAll({ rules, schema }: Node, place: Place, problems: Problem[]): void {
  if (rules.length === 0) return;
  const { value, old, path, nearest } = place;
  const self = toCelValue(value, schema);
  const oldSelf = old === undefined || old === null ? undefined : toCelValue(old, schema);
  for (const rule of rules) {
    const { usesOldSelf } = rule.program;
    const optional = rule.source.optionalOldSelf === true;
    if (usesOldSelf && oldSelf === undefined && !optional) continue;
    const before = optional ? optionalOf(oldSelf) : oldSelf;
    const failure = judge(rule, { self, ...(before !== undefined && { oldSelf: before }) }, value, path);
    if (!failure) continue;
    // What can't be evaluated is refused however old it is.
    const wasThere = !usesOldSelf && !failure.isError && nearest !== undefined && isUnchanged(nearest);
    if (!wasThere) problems.push(failure.problem);
  }
}

function optionalOf(value: CelValue | undefined): CelValue {
  return typedList(value === undefined ? [] : [value]);
}
